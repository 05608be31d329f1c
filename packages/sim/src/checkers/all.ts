import { countersMatch, holdsAddUp } from './books.ts';
import { sameBytes } from './bytes.ts';
import { endsTrue } from './ends.ts';
import { eventsInOrder, noOrphans, reportsUnderstood } from './events.ts';
import type { Evidence, Violation } from './evidence.ts';
import { oneMessagePerKey, refusalsTrue } from './keys.ts';
import { limitsKept } from './limits.ts';
import { mailboxCounts } from './mailbox-counts.ts';
import { canceledUnsent, nothingLost, oneCall } from './sends.ts';
import { sendersMaySend, suppressionsKept } from './standing.ts';
import { allowedTransitions } from './statuses.ts';
import { everythingTold } from './told.ts';
import { threadsInTurn } from './turns.ts';
import { webhooksTold } from './webhooks.ts';

type Checker = (evidence: Evidence) => Violation[];

/** What holds at any moment, with work still under way. */
const WHEN_CALM: readonly Checker[] = [holdsAddUp, oneCall, allowedTransitions, limitsKept];

/** What holds when nothing is left to do. */
const AT_REST: readonly Checker[] = [
  oneCall,
  oneMessagePerKey,
  refusalsTrue,
  nothingLost,
  endsTrue,
  allowedTransitions,
  canceledUnsent,
  countersMatch,
  mailboxCounts,
  limitsKept,
  threadsInTurn,
  sameBytes,
  sendersMaySend,
  suppressionsKept,
  eventsInOrder,
  everythingTold,
  reportsUnderstood,
  webhooksTold,
  noOrphans,
];

export function checkWhenCalm(evidence: Evidence): Violation[] {
  return WHEN_CALM.flatMap((check) => check(evidence));
}

/** What reads the order of things from their times, which is no order once clocks were turned. */
const BY_TIMES: readonly Checker[] = [webhooksTold, suppressionsKept, threadsInTurn];

export function checkAtRest(evidence: Evidence): Violation[] {
  const { turned } = evidence.deployment.universe;
  return AT_REST.filter((check) => !turned || !BY_TIMES.includes(check)).flatMap((check) => check(evidence));
}
