import { describe, expect, it } from 'vitest';
import { recipient, runStep } from '../context.fixture.ts';
import { testModeRecipients } from './08-test-mode-recipients.ts';

const TEST = { tenant: { mode: 'test' as const }, directory: { local_addresses: ['desk@acme.example.com'] } };

describe('step 8: a test tenant writes only to itself', () => {
  it('lets a live tenant write to anyone', () => {
    expect(runStep(testModeRecipients, {}, { recipients: [recipient('jo@example.net')] }).refusal).toBeNull();
  });

  it.each([
    'delivered@simulator.invalid',
    'anything@simulator.invalid',
    'bounce+case7@simulator.invalid',
    'desk@acme.example.com',
    'desk+t03k.9f2mq7xa@acme.example.com',
  ])('lets a test tenant write to %s', (to) => {
    expect(runStep(testModeRecipients, TEST, { recipients: [recipient(to)] }).refusal).toBeNull();
  });

  it.each([
    'jo@example.net',
    'other@acme.example.com',
    'delivered@sub.simulator.invalid',
    'delivered@simulator.invalid.example.net',
    'simulator.invalid@example.net',
    '+desk@acme.example.com',
  ])('refuses %s', (to) => {
    expect(runStep(testModeRecipients, TEST, { recipients: [recipient(to)] }).refusal).toEqual({
      ok: false,
      code: 'test_mode_recipient',
      details: { recipients: [to] },
    });
  });

  it('refuses all when one is outside and names only that one, whatever its field', () => {
    const recipients = [recipient('delivered@simulator.invalid'), recipient('jo@example.net', 'bcc')];
    expect(runStep(testModeRecipients, TEST, { recipients }).refusal).toMatchObject({
      details: { recipients: ['jo@example.net'] },
    });
  });
});
