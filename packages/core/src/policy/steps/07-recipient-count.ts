import { LIMITS } from '../../limits.ts';
import { refuse } from '../../result.ts';
import type { RequestStep } from '../step.ts';

/** 49 at most whatever the policy says: a transport takes 50 and the journal copy may need one of them. */
export const recipientCount: RequestStep = {
  number: 7,
  name: 'recipient count',
  phase: 'request',
  check: ({ directory }, draft) => {
    const limit = Math.min(directory.tenant.policy.max_recipients, LIMITS.recipients_count_max);
    return draft.recipients.length > limit ? refuse('too_many_recipients', { limit }) : null;
  },
};
