import { describe, expect, it } from 'vitest';
import { runStep } from '../context.fixture.ts';
import { tenantActive } from './02-tenant-active.ts';

describe('step 2: the tenant is active', () => {
  it('lets an active tenant pass', () => {
    expect(runStep(tenantActive).refusal).toBeNull();
  });

  it.each(['suspended', 'erasing', 'erased'] as const)('refuses for a tenant that is %s', (status) => {
    expect(runStep(tenantActive, { tenant: { status } }).refusal).toEqual({ ok: false, code: 'tenant_suspended' });
  });
});
