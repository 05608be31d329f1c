import type { Refusal } from '../result.ts';
import type { LateFacts, SendContext, SendDraft } from './types.ts';

interface Step {
  /** Place in the order, from 1; the design's number. */
  number: number;
  name: string;
}

/** A step that needs only the request and the directory. It may write what it worked out into the draft. */
export interface RequestStep extends Step {
  phase: 'request';
  check: (context: SendContext, draft: SendDraft) => Refusal | null;
}

/** A step that needs the composed message (`size`), the answer of the quota, or the thread's lock. */
export interface LateStep extends Step {
  phase: 'size' | 'quota' | 'lock';
  check: (context: SendContext, draft: SendDraft, late: LateFacts) => Refusal | null;
}

/** One step of the policy: a pure check. Null lets the send pass. */
export type PolicyStep = RequestStep | LateStep;
