import { refuse } from '../../result.ts';
import type { RequestStep } from '../step.ts';

export const identityNotPaused: RequestStep = {
  number: 3,
  name: 'identity not paused',
  phase: 'request',
  check: ({ directory: { identity } }) =>
    identity.status === 'paused' ? refuse('identity_paused', { reason: identity.pause_reason }) : null,
};
