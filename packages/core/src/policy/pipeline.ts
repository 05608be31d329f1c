import type { Refusal } from '../result.ts';
import type { LateStep, PolicyStep } from './step.ts';
import { identityExists } from './steps/01-identity-exists.ts';
import { tenantActive } from './steps/02-tenant-active.ts';
import { identityNotPaused } from './steps/03-identity-not-paused.ts';
import { ownerPresent } from './steps/04-owner-present.ts';
import { targetVisible } from './steps/05-target-visible.ts';
import { recipientsValid } from './steps/06-recipients-valid.ts';
import { recipientCount } from './steps/07-recipient-count.ts';
import { testModeRecipients } from './steps/08-test-mode-recipients.ts';
import { marketingRequirements } from './steps/09-marketing-requirements.ts';
import { autoReply } from './steps/10-auto-reply.ts';
import { headers } from './steps/11-headers.ts';
import { content } from './steps/12-content.ts';
import { fromAddress } from './steps/13-from-address.ts';
import { domainReady } from './steps/14-domain-ready.ts';
import { transportUsable } from './steps/15-transport-usable.ts';
import { recipientFilters } from './steps/16-recipient-filters.ts';
import { size } from './steps/17-size.ts';
import { quota } from './steps/18-quota.ts';
import { threadLock } from './steps/19-thread-lock.ts';
import type { AddressFacts, LateFacts, SendContext, SendDraft } from './types.ts';

/**
 * The policy of a send, in order. The first step that refuses gives the answer and nothing is stored, so the order is
 * part of the API: it decides which of several faults a caller hears.
 */
export const POLICY_STEPS: readonly PolicyStep[] = [
  identityExists,
  tenantActive,
  identityNotPaused,
  ownerPresent,
  targetVisible,
  recipientsValid,
  recipientCount,
  testModeRecipients,
  marketingRequirements,
  autoReply,
  headers,
  content,
  fromAddress,
  domainReady,
  transportUsable,
  recipientFilters,
  size,
  quota,
  threadLock,
];

/** A draft that has passed every step of the request phase. */
export interface SendPlan extends SendDraft {
  from: AddressFacts;
}

export function newDraft(context: SendContext): SendDraft {
  return { recipients: [], from: null, headers: [], hop: 1, kind: context.body.kind ?? 'transactional' };
}

/** Runs steps 1 to 16, which need nothing but the request and the directory. */
export function planSend(context: SendContext): { ok: true; value: SendPlan } | Refusal {
  const draft = newDraft(context);
  for (const step of POLICY_STEPS) {
    if (step.phase !== 'request') continue;
    const refusal = step.check(context, draft);
    if (refusal !== null) return refusal;
  }
  const { from } = draft;
  if (from === null) throw new Error('step 13 passed without choosing a From address');
  return { ok: true, value: { ...draft, from } };
}

/** Runs the one step of a later phase. */
export function checkLate(
  phase: LateStep['phase'],
  context: SendContext,
  plan: SendPlan,
  late: LateFacts,
): Refusal | null {
  for (const step of POLICY_STEPS) {
    if (step.phase === 'request' || step.phase !== phase) continue;
    const refusal = step.check(context, plan, late);
    if (refusal !== null) return refusal;
  }
  return null;
}
