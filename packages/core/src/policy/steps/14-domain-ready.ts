import { refuse } from '../../result.ts';
import type { RequestStep } from '../step.ts';

/**
 * Only a domain never proven yet is refused here. One that is failing or suspended is accepted: what happens to the
 * send is decided when it leaves, by the state at that time.
 */
export const domainReady: RequestStep = {
  number: 14,
  name: 'domain ready',
  phase: 'request',
  check: (_context, draft) => {
    const from = draft.from;
    if (from === null) return null;
    const { state } = from.domain;
    if (state === 'pending' || state === 'verifying') return refuse('domain_not_ready', { state });
    return from.status === 'pending' ? refuse('domain_not_ready', { state: 'pending' }) : null;
  },
};
