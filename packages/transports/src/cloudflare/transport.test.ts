import { describe, expect, test } from 'vitest';
import { transportContract } from '../contract.ts';
import { BindingDouble, coded, JOURNAL, outgoing } from './binding.fixture.ts';
import { cloudflareTransport } from './transport.ts';

for (const journal_bcc of [JOURNAL, null]) {
  transportContract(`cloudflare ${journal_bcc === null ? 'without' : 'with'} a journal`, (situation) => {
    if (situation === 'takes_some') return null;
    const double = new BindingDouble(situation);
    const transport = cloudflareTransport({ send: double.send, suppressions: null }, 'journal');
    return { transport, message: outgoing({ journal_bcc }), taken: () => double.taken };
  });
}

transportContract('cloudflare, a message that cannot be right', (situation) => {
  if (situation !== 'refuses') return null;
  // The double takes anything, as the local provider does.
  const double = new BindingDouble('accepts');
  const transport = cloudflareTransport({ send: double.send, suppressions: null }, 'journal');
  const headers = [{ name: 'X-A', value: 'a\r\nBcc: eve@evil.example' }];
  return { transport, message: outgoing({ headers }), taken: () => double.taken };
});

transportContract('cloudflare, a recipient that it suppresses', (situation) => {
  if (situation !== 'refuses') return null;
  const send = (): Promise<unknown> => Promise.reject(coded('E_RECIPIENT_SUPPRESSED'));
  return { transport: cloudflareTransport({ send, suppressions: null }, 'none'), message: outgoing(), taken: () => [] };
});

describe('a call', () => {
  test('is made once, in fields, with the hidden copy among those who get it blind', async () => {
    const double = new BindingDouble('accepts');
    await cloudflareTransport({ send: double.send, suppressions: null }, 'journal').send(outgoing(), 1_000);
    expect(double.calls).toEqual([
      {
        from: { email: 'desk.acme@agents.example', name: 'Desk' },
        replyTo: { email: 'desk.acme+t01.abcdefgh@agents.example', name: 'Desk' },
        to: ['jo@example.net'],
        cc: ['kim@example.org'],
        bcc: ['audit@example.com', JOURNAL],
        subject: 'Your booking 4471',
        text: 'Confirmed.',
        headers: { 'X-Pylota-Mail-Hop': '1' },
      },
    ]);
  });

  test('is not made for what cannot be right', async () => {
    const double = new BindingDouble('accepts');
    const transport = cloudflareTransport({ send: double.send, suppressions: null }, 'journal');
    expect(await transport.send(outgoing({ subject: 'a\r\nb' }), 1_000)).toMatchObject({
      kind: 'rejected',
      reason: 'provider_validation',
      code: 'E_VALIDATION_ERROR',
    });
    expect(double.calls).toEqual([]);
  });

  test('ends with its time, whatever the binding does later', async () => {
    const result = await cloudflareTransport(
      { send: new BindingDouble('silent').send, suppressions: null },
      'none',
    ).send(outgoing(), 20);
    expect(result).toEqual({ kind: 'unknown', reason: 'transport_timeout', detail: 'no answer in 20 ms' });
  });
});

describe('the id in the answer (case 38)', () => {
  const answering = (answer: unknown, strategy: 'journal' | 'derived' | 'none' = 'journal') =>
    cloudflareTransport({ send: async () => answer, suppressions: null }, strategy).send(outgoing(), 1_000);

  test.each(['journal', 'derived', 'none'] as const)(
    'is the provider_message_id and no Message-ID: %s',
    async (strategy) => {
      expect(await answering({ messageId: '0101019ab3c4-msg-4471' }, strategy)).toMatchObject({
        kind: 'accepted',
        provider_message_id: '0101019ab3c4-msg-4471',
        rfc_message_id: null,
      });
    },
  );

  test('is both where it has the form of a Message-ID and the strategy says so', async () => {
    const answer = { messageId: '<7c1e@mx.cf.example>' };
    expect(await answering(answer, 'derived')).toMatchObject({ rfc_message_id: '7c1e@mx.cf.example' });
    expect(await answering(answer, 'journal')).toMatchObject({ rfc_message_id: null });
  });

  test.each([undefined, null, {}, { messageId: '' }, { messageId: 7 }])(
    'may be missing: %j is an acceptance all the same',
    async (answer) => {
      expect(await answering(answer)).toMatchObject({ kind: 'accepted', provider_message_id: null });
    },
  );
});

test('whom it suppresses is known only where somebody may ask', async () => {
  const suppressions = [{ address: 'jo@example.net', reason: 'manual', expires_at: null }];
  const { send } = new BindingDouble('accepts');
  const message = outgoing();
  expect(await cloudflareTransport({ send, suppressions: null }, 'none').findSuppressed?.(message)).toEqual([]);
  const asking = cloudflareTransport({ send, suppressions: async () => suppressions }, 'none');
  expect(await asking.findSuppressed?.(message)).toEqual(suppressions);
});
