import { refuse } from '../../result.ts';
import type { RequestStep } from '../step.ts';

/** An identity that is being erased, or is erased, looks exactly like one that never was. */
export const identityExists: RequestStep = {
  number: 1,
  name: 'identity exists',
  phase: 'request',
  check: ({ directory }) => {
    const { status } = directory.identity;
    return status === 'deleting' || status === 'deleted' ? refuse('identity_not_found') : null;
  },
};
