import { refuse } from '../../result.ts';
import type { RequestStep } from '../step.ts';

/** What is answered, forwarded or continued must exist in this mailbox and be visible to the key. */
export const targetVisible: RequestStep = {
  number: 5,
  name: 'target visible',
  phase: 'request',
  check: ({ operation, body, target, thread, can_review_quarantine }) => {
    if (operation === 'send') {
      return body.thread_id !== undefined && thread === null ? refuse('thread_not_found') : null;
    }
    if (target === null || target.status === 'hidden' || target.status === 'throttled') {
      return refuse('message_not_found');
    }
    return target.status === 'quarantined' && !can_review_quarantine ? refuse('message_not_found') : null;
  },
};
