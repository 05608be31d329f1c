import type { MarkName } from '@pmail/engine/marks.ts';
import type { CaseId } from './case-list.ts';

/** Which cases a crash, a failed call or a word of an engine is. */

const CRASHES: Partial<Record<MarkName, readonly CaseId[]>> = {
  'submit.planned': ['S1'],
  'submit.composed': ['S1'],
  'submit.stored': ['S2'],
  'submit.reserved': ['S2', 'S10'],
  'submit.in_transaction': ['S5', 'S10'],
  'submit.committed': ['S6', 'E1'],
  'dispatch.after_send': ['E4'],
  'consume.claimed': ['C5'],
  'consume.message_read': ['C5'],
  'consume.transport_done': ['O1'],
  'consume.recorded': ['O4'],
  'claim.in_transaction': ['C7'],
  'claim.committed': ['C5'],
  'outcome.in_transaction': ['O1'],
  'event.in_transaction': ['V7'],
  'event.applied': ['V7'],
  'event.suppressed': ['V7'],
  'event.outcome_recorded': ['V7'],
  'webhook.answered': ['V10 crash'],
};

export function casesOfCrash(mark: MarkName): readonly CaseId[] {
  return CRASHES[mark] ?? [];
}

interface Seen {
  label: RegExp;
  /** Who calls; everybody when left out. */
  from?: RegExp;
  /** The case when the call had no effect, and when its answer was lost. */
  lost?: CaseId;
  answer_lost?: CaseId;
}

const CALLS: readonly Seen[] = [
  { label: /^put .*\/out\//, lost: 'S3', answer_lost: 'S3' },
  { label: /^put /, from: /^pm-inbound/, lost: 'V11', answer_lost: 'V11' },
  { label: /^submit /, answer_lost: 'S6' },
  { label: /^reserve/, lost: 'S11', answer_lost: 'S11' },
  { label: /^directory/, from: /^(request|mailbox)/, lost: 'S13 down', answer_lost: 'S13 down' },
  { label: /^send to pm-outbound/, from: /^mailbox/, lost: 'E2', answer_lost: 'E3' },
  { label: /^begin /, lost: 'C4', answer_lost: 'C4' },
  { label: /^outcome /, lost: 'O3' },
];

export function caseOfCall(from: string, label: string, harm: 'lost' | 'answer_lost'): CaseId | undefined {
  return CALLS.find((seen) => seen.label.test(label) && (seen.from?.test(from) ?? true))?.[harm];
}

/** What a call has become when a statement inside it threw. */
const STORAGE: readonly [RegExp, CaseId][] = [
  [/^submit /, 'S4'],
  [/^begin /, 'C7'],
  [/^outcome /, 'O1'],
  [/^event /, 'V7'],
];

export function caseOfStorageFault(label: string): CaseId | undefined {
  return STORAGE.find(([pattern]) => pattern.test(label))?.[1];
}

/** What engines and consumers say when a case has come to them. */
const WORDS: Readonly<Record<string, CaseId>> = {
  late_transport_result: 'C6',
  delivery_unroutable_total: 'V4',
  delivery_orphaned_total: 'V4',
};

export function caseOfWord(event: string): CaseId | undefined {
  return WORDS[event];
}
