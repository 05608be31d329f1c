import { describe, expect, it } from 'vitest';
import { recipient, runStep, target } from '../context.fixture.ts';
import { recipientsValid } from './06-recipients-valid.ts';

describe('step 6: the recipients are valid', () => {
  it('writes the recipients into the draft, duplicates dropped', () => {
    const { refusal, draft } = runStep(recipientsValid, {
      body: { to: ['Jo@Example.net', 'kim@example.org'], cc: ['jo@example.NET'] },
    });
    expect(refusal).toBeNull();
    expect(draft.recipients).toEqual([recipient('jo@example.net'), recipient('kim@example.org')]);
  });

  it('refuses an address that is none', () => {
    const { refusal, draft } = runStep(recipientsValid, { body: { to: ['jo@example.net', 'jo'] } });
    expect(refusal).toMatchObject({ code: 'address_invalid', details: { errors: [{ path: 'to[1]' }] } });
    expect(draft.recipients).toEqual([]);
  });

  it('refuses a local part outside ASCII with a code of its own', () => {
    const { refusal } = runStep(recipientsValid, { body: { cc: [{ address: 'jürgen@example.net' }] } });
    expect(refusal).toMatchObject({ code: 'address_unsupported', details: { errors: [{ path: 'cc[0].address' }] } });
  });

  it('refuses a send that reaches nobody', () => {
    expect(runStep(recipientsValid, { body: { to: [] } }).refusal).toMatchObject({
      code: 'invalid_request',
      details: { errors: [{ path: 'to' }] },
    });
    const noSender = target({ from: null });
    expect(runStep(recipientsValid, { operation: 'reply', target: noSender }).refusal).toMatchObject({
      code: 'invalid_request',
    });
  });
});
