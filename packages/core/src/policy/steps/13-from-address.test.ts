import { describe, expect, it } from 'vitest';
import { address, runStep } from '../context.fixture.ts';
import { fromAddress } from './13-from-address.ts';

describe('step 13: the From address', () => {
  it('writes the chosen address into the draft', () => {
    const { refusal, draft } = runStep(fromAddress);
    expect(refusal).toBeNull();
    expect(draft.from).toEqual(address());
  });

  it('refuses an address that cannot be used, with its path', () => {
    const { refusal, draft } = runStep(fromAddress, { body: { from_address: 'someone@example.net' } });
    expect(refusal).toEqual({
      ok: false,
      code: 'invalid_request',
      details: { errors: [{ path: 'from_address', message: 'is not an active address of this identity' }] },
    });
    expect(draft.from).toBeNull();
  });
});
