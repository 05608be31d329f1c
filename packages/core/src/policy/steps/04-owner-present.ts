import { refuse } from '../../result.ts';
import type { RequestStep } from '../step.ts';

/** Every send has an accountable human behind it. */
export const ownerPresent: RequestStep = {
  number: 4,
  name: 'owner present',
  phase: 'request',
  check: ({ directory: { identity } }) =>
    identity.owner_name && identity.owner_email ? null : refuse('identity_owner_required'),
};
