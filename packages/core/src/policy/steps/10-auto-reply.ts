import { refuse } from '../../result.ts';
import type { RequestStep } from '../step.ts';

/**
 * An automatic reply answers only a message written by a person (or an invitation), only where tenant and identity
 * allow it, and only so many times in a row.
 */
export const autoReply: RequestStep = {
  number: 10,
  name: 'auto reply',
  phase: 'request',
  check: ({ operation, target, thread, directory }, draft) => {
    if (draft.kind !== 'auto_reply') return null;
    const { auto_reply: policy } = directory.tenant.policy;
    const isReply = operation === 'reply' || operation === 'reply_all';
    const answersPerson = target?.kind === 'normal' || target?.kind === 'calendar';
    const allowed = policy.allowed && directory.identity.send_policy.auto_reply !== 'denied';
    const underCap = (thread?.automatic_exchanges ?? 0) < policy.max_automatic_exchanges;
    return isReply && answersPerson && allowed && underCap ? null : refuse('auto_reply_not_allowed');
  },
};
