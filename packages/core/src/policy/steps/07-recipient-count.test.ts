import { describe, expect, it } from 'vitest';
import { recipient, runStep } from '../context.fixture.ts';
import { recipientCount } from './07-recipient-count.ts';

function many(count: number) {
  const fields = ['to', 'cc', 'bcc'] as const;
  return Array.from({ length: count }, (_, i) => recipient(`r${i}@example.net`, fields[i % 3] ?? 'to'));
}

describe('step 7: the number of recipients', () => {
  it('takes as many as the policy says, in all three fields together', () => {
    expect(runStep(recipientCount, {}, { recipients: many(10) }).refusal).toBeNull();
    expect(runStep(recipientCount, { policy: { max_recipients: 3 } }, { recipients: many(3) }).refusal).toBeNull();
  });

  it('refuses one more and names the limit', () => {
    expect(runStep(recipientCount, {}, { recipients: many(11) }).refusal).toEqual({
      ok: false,
      code: 'too_many_recipients',
      details: { limit: 10 },
    });
    expect(runStep(recipientCount, { policy: { max_recipients: 1 } }, { recipients: many(2) }).refusal).toMatchObject({
      details: { limit: 1 },
    });
  });

  it('never takes more than 49, whatever the policy says', () => {
    const policy = { max_recipients: 1_000 };
    expect(runStep(recipientCount, { policy }, { recipients: many(49) }).refusal).toBeNull();
    expect(runStep(recipientCount, { policy }, { recipients: many(50) }).refusal).toEqual({
      ok: false,
      code: 'too_many_recipients',
      details: { limit: 49 },
    });
  });
});
