import { describe, expect, it } from 'vitest';
import { runStep } from '../context.fixture.ts';
import { ownerPresent } from './04-owner-present.ts';

describe('step 4: an owner is set', () => {
  it('lets an identity with name and address of its owner pass', () => {
    expect(runStep(ownerPresent).refusal).toBeNull();
  });

  it.each([
    { owner_name: null },
    { owner_email: null },
    { owner_name: null, owner_email: null },
    { owner_name: '' },
    { owner_email: '' },
  ])('refuses one without: %o', (identity) => {
    expect(runStep(ownerPresent, { identity }).refusal).toEqual({ ok: false, code: 'identity_owner_required' });
  });
});
