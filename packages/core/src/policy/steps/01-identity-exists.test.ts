import { describe, expect, it } from 'vitest';
import { runStep } from '../context.fixture.ts';
import { identityExists } from './01-identity-exists.ts';

describe('step 1: the identity exists', () => {
  it.each(['active', 'paused'] as const)('lets an identity pass that is %s', (status) => {
    expect(runStep(identityExists, { identity: { status } }).refusal).toBeNull();
  });

  it.each(['deleting', 'deleted'] as const)('answers for one that is %s as if it never was', (status) => {
    expect(runStep(identityExists, { identity: { status } }).refusal).toEqual({
      ok: false,
      code: 'identity_not_found',
    });
  });
});
