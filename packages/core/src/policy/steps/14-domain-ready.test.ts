import { describe, expect, it } from 'vitest';
import { address, runStep } from '../context.fixture.ts';
import { domainReady } from './14-domain-ready.ts';

describe('step 14: the domain was proven once', () => {
  it.each(['healthy', 'degraded', 'failing', 'suspended', 'removing', 'removed'] as const)(
    'lets a domain pass that is %s; what becomes of the send is decided when it leaves',
    (state) => {
      expect(runStep(domainReady, {}, { from: address({ domain: { state } }) }).refusal).toBeNull();
    },
  );

  it.each(['pending', 'verifying'] as const)('refuses a domain that is %s', (state) => {
    expect(runStep(domainReady, {}, { from: address({ domain: { state } }) }).refusal).toEqual({
      ok: false,
      code: 'domain_not_ready',
      details: { state },
    });
  });

  it('refuses an address that is pending on a healthy domain', () => {
    expect(runStep(domainReady, {}, { from: address({ status: 'pending' }) }).refusal).toEqual({
      ok: false,
      code: 'domain_not_ready',
      details: { state: 'pending' },
    });
  });

  it('lets a retiring address pass', () => {
    expect(runStep(domainReady, {}, { from: address({ status: 'retiring' }) }).refusal).toBeNull();
  });
});
