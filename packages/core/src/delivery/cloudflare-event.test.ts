import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CloudflareParse, cloudflareEvent } from './cloudflare-event.ts';

type Tree = Record<string, unknown>;

/** An event as the queue hands it over: facts nested in `payload`, the time in `metadata`. */
function raw(kind: string, payload: Tree = {}, metadata: Tree = {}): Tree {
  return {
    type: `cf.email.sending.message.${kind}`,
    source: { type: 'email.sending', zoneId: 'aaaabbbbccccddddeeeeffff00001111', domain: 'acme.example.com' },
    payload: {
      eventId: 'e7',
      messageId: '0101019ab3c4-msg-4471',
      sender: 'desk@acme.example.com',
      recipient: 'jo@example.net',
      subject: 'Your booking 4471',
      terminal: true,
      ...payload,
    },
    metadata: {
      accountId: '11112222333344445555666677778888',
      eventSchemaVersion: 1,
      eventTimestamp: '2026-11-30T08:41:00.000Z',
      ...metadata,
    },
  };
}

function parsed(body: unknown): Extract<CloudflareParse, { kind: 'event' }>['event'] {
  const result = cloudflareEvent(body);
  if (result.kind !== 'event') throw new Error(`not an event: ${result.kind}`);
  return result.event;
}

describe('a report of Cloudflare', () => {
  it('is read from its nested form, its time from the metadata', () => {
    const delivery = {
      status: 'delivered',
      smtpStatusCode: '250',
      smtpEnhancedStatusCode: '2.0.0',
      smtpResponse: 'OK',
    };
    expect(parsed(raw('delivered', { delivery }))).toEqual({
      source: 'cloudflare',
      event_id: 'e7',
      provider_message_id: '0101019ab3c4-msg-4471',
      sender: 'desk@acme.example.com',
      recipient: 'jo@example.net',
      subject: 'Your booking 4471',
      kind: 'delivered',
      hard: false,
      smtp_code: '250',
      enhanced_code: '2.0.0',
      smtp_response: 'OK',
      outcome: 'delivered',
      suppress: null,
      occurred_at: Date.UTC(2026, 10, 30, 8, 41),
    });
  });

  it('names both addresses in the form in which they are stored', () => {
    const event = parsed(raw('delivered', { sender: 'Desk@ACME.example.com', recipient: 'Jo@Example.NET' }));
    expect([event.sender, event.recipient]).toEqual(['desk@acme.example.com', 'jo@example.net']);
  });

  it('is a deferral that decides nothing yet', () => {
    const event = parsed(raw('deferred', { terminal: false, delivery: { smtpStatusCode: '451' } }));
    expect(event).toMatchObject({ kind: 'deferred', smtp_code: '451', outcome: null, suppress: null, hard: false });
  });

  it('is a bounce, hard or soft as it says, its code refining the suppression', () => {
    const bounced = (type: unknown, smtpEnhancedStatusCode: string | null) =>
      parsed(raw('bounced', { bounce: { type, reason: 'why' }, delivery: { smtpEnhancedStatusCode } }));
    expect(bounced('hard', '5.1.1')).toMatchObject({ hard: true, outcome: 'bounced', suppress: 'hard_bounce' });
    expect(bounced('hard', '5.7.1')).toMatchObject({ hard: true, outcome: 'bounced', suppress: null });
    expect(bounced('hard', '5.2.2')).toMatchObject({ hard: false, outcome: 'other', suppress: null });
    expect(bounced('soft', '5.1.1')).toMatchObject({ hard: false, outcome: 'other', suppress: null });
    expect(bounced(undefined, '5.1.1')).toMatchObject({ hard: true, suppress: 'hard_bounce' });
    expect(bounced('hard', null).smtp_response).toBe('why');
  });

  it('is a complaint, which comes without a subject', () => {
    const event = parsed(raw('complained', { subject: undefined, complaint: { type: 'abuse' } }));
    expect(event).toMatchObject({ kind: 'complained', subject: null, outcome: 'complained', suppress: 'complaint' });
  });

  it('is a failure with its reason', () => {
    const event = parsed(raw('failed', { failure: { reason: 'expired' } }));
    expect(event).toMatchObject({ kind: 'failed', smtp_response: 'expired', outcome: 'other', suppress: null });
  });

  it('is a rejection that suppresses only when the recipient stands on the list of the provider', () => {
    const rejected = (rejection: Tree) => parsed(raw('rejected', { rejection }));
    expect(rejected({ reason: 'Address is suppressed', party: 'recipient' })).toMatchObject({
      kind: 'rejected',
      outcome: 'other',
      suppress: 'provider',
    });
    expect(rejected({ reason: 'Suppressed', party: 'sender' }).suppress).toBeNull();
    expect(rejected({ reason: 'content refused', party: 'recipient' }).suppress).toBeNull();
    expect(rejected({ reason: 'suppressed' }).suppress).toBeNull();
    expect(rejected({}).suppress).toBeNull();
  });

  it('does not suppress by the words of another kind of report', () => {
    const event = parsed(raw('failed', { rejection: { reason: 'suppressed', party: 'recipient' } }));
    expect(event.suppress).toBeNull();
  });

  it('has codes as text, also where they come as numbers', () => {
    const event = parsed(raw('delivered', { eventId: 7, delivery: { smtpStatusCode: 250 } }));
    expect([event.event_id, event.smtp_code]).toEqual(['7', '250']);
  });

  it('keeps 512 characters of the reply and never half a character', () => {
    const reply = (smtpResponse: string) => parsed(raw('bounced', { delivery: { smtpResponse } })).smtp_response;
    expect(reply('x'.repeat(600))).toBe('x'.repeat(512));
    expect(reply(`${'x'.repeat(511)}😀`)).toBe('x'.repeat(511));
    expect(reply(`${'x'.repeat(510)}😀!`)).toBe(`${'x'.repeat(510)}😀`);
  });

  it('may leave out everything but id, addresses and time', () => {
    const bare = {
      type: 'cf.email.sending.message.delivered',
      payload: { eventId: 'e', sender: 'desk@acme.example.com', recipient: 'jo@example.net' },
      metadata: { eventTimestamp: '2026-11-30T08:41:00Z' },
    };
    expect(parsed(bare)).toMatchObject({
      provider_message_id: null,
      subject: null,
      smtp_code: null,
      smtp_response: null,
    });
  });
});

describe('a batch with late, repeated and unknown reports', () => {
  it('gives each its own kind and its own time', () => {
    const journal = 'journal+01jd9q3v7m8x2c4n6b5k1r0e9t.01jd0000000000000000000001@agents.example';
    const batch = [
      raw('delivered', { delivery: { smtpStatusCode: '250' } }),
      raw('delivered', { delivery: { smtpStatusCode: '250' } }),
      raw('deferred', { eventId: 'e8', terminal: false }, { eventTimestamp: '2026-11-30T08:40:30.000Z' }),
      raw('complained', { eventId: 'e9', subject: undefined }, { eventTimestamp: '2026-11-30T08:59:00.000Z' }),
      raw('opened', { eventId: 'e10' }),
      raw('delivered', { eventId: 'e11', recipient: journal }),
    ];
    const results = batch.map(cloudflareEvent);
    expect(results.map((result) => (result.kind === 'event' ? result.event.kind : result.kind))).toEqual([
      'delivered',
      'delivered',
      'deferred',
      'complained',
      'unknown_type',
      'delivered',
    ]);
    expect(results[0]).toEqual(results[1]);
    expect(results[2]).toMatchObject({ event: { occurred_at: Date.UTC(2026, 10, 30, 8, 40, 30) } });
    expect(results[5]).toMatchObject({ event: { recipient: journal } });
  });
});

describe('what is no report we know', () => {
  it('is of an unknown type', () => {
    for (const type of ['cf.email.sending.message.opened', 'cf.email.sending.message.', 'delivered', 'cf.r2.object']) {
      expect(cloudflareEvent({ ...raw('delivered'), type })).toEqual({ kind: 'unknown_type' });
    }
  });

  it('cannot be parsed without a type, id, address or time', () => {
    const broken: unknown[] = [
      null,
      undefined,
      'text',
      42,
      [],
      {},
      { type: null },
      { type: '' },
      { ...raw('delivered'), payload: null },
      { ...raw('delivered'), payload: [raw('delivered')] },
      { ...raw('delivered'), metadata: undefined },
      raw('delivered', { eventId: '' }),
      raw('delivered', { eventId: undefined }),
      raw('delivered', { sender: 'nobody' }),
      raw('delivered', { recipient: 'a@b@' }),
      raw('delivered', { recipient: { address: 'jo@example.net' } }),
      raw('delivered', {}, { eventTimestamp: 'yesterday' }),
      raw('delivered', {}, { eventTimestamp: '2026-02-30T00:00:00Z' }),
      raw('delivered', {}, { eventTimestamp: 1_764_492_060 }),
    ];
    for (const body of broken) expect(cloudflareEvent(body)).toEqual({ kind: 'unparsable' });
  });

  it('never throws, whatever it is', () => {
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: true, withBigInt: true }), (body) => {
        expect(['event', 'unknown_type', 'unparsable']).toContain(cloudflareEvent(body).kind);
      }),
    );
  });

  it('never throws when any part of a real one is garbage', () => {
    const part = fc.anything();
    const kind = fc.constantFrom('delivered', 'deferred', 'bounced', 'failed', 'rejected', 'complained', 'opened');
    const field = fc.constantFrom(
      'eventId',
      'messageId',
      'sender',
      'subject',
      'delivery',
      'bounce',
      'rejection',
      'failure',
    );
    fc.assert(
      fc.property(kind, fc.dictionary(field, part), part, (name, payload, timestamp) => {
        const result = cloudflareEvent(raw(name, payload, { eventTimestamp: timestamp }));
        if (result.kind !== 'event') return;
        expect(result.event.occurred_at).not.toBeNaN();
        expect((result.event.smtp_response ?? '').length).toBeLessThanOrEqual(512);
      }),
    );
  });
});
