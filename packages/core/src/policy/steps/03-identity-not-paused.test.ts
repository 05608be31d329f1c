import { describe, expect, it } from 'vitest';
import { runStep } from '../context.fixture.ts';
import { identityNotPaused } from './03-identity-not-paused.ts';

describe('step 3: the identity is not paused', () => {
  it('lets an active identity pass', () => {
    expect(runStep(identityNotPaused).refusal).toBeNull();
  });

  it.each(['manual', 'abuse_threshold', 'tenant_suspended'] as const)(
    'refuses a paused one and says why it is paused: %s',
    (pause_reason) => {
      expect(runStep(identityNotPaused, { identity: { status: 'paused', pause_reason } }).refusal).toEqual({
        ok: false,
        code: 'identity_paused',
        details: { reason: pause_reason },
      });
    },
  );
});
