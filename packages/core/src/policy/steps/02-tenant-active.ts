import { refuse } from '../../result.ts';
import type { RequestStep } from '../step.ts';

/**
 * Stands before the pause check because suspending a tenant pauses its identities too, and the caller should hear the
 * cause. A tenant that is being erased sends no more than a suspended one.
 */
export const tenantActive: RequestStep = {
  number: 2,
  name: 'tenant active',
  phase: 'request',
  check: ({ directory }) => (directory.tenant.status === 'active' ? null : refuse('tenant_suspended')),
};
