import { describe, expect, it } from 'vitest';
import type { DsnRecipient, DsnReport } from './dsn.ts';
import { composedFor, type DsnEnvelope, dsnEvents, isJudgedByDsn, ourMessageIn } from './dsn-verdict.ts';
import type { DeliveryEvent } from './events.ts';

const DESK = 'desk@acme.example.com';
const OURS = '01jd9q3v7m8x2c4n6b5k1r0e9t@acme.example.com';
const ENVELOPE: DsnEnvelope = {
  report_id: 'msg_01JD9Q3V7M8X2C4N6B5K1R0E9V',
  sender: DESK,
  null_sender: true,
  envelope_proof: true,
  received_at: Date.UTC(2026, 10, 30, 9),
};

function entry(changes: Partial<DsnRecipient> = {}): DsnRecipient {
  return {
    final_recipient: 'rfc822; jo@example.net',
    original_recipient: null,
    action: 'failed',
    status: null,
    diagnostic_code: null,
    remark: null,
    ...changes,
  };
}

function report(recipients: DsnRecipient[], changes: Partial<DsnReport> = {}): DsnReport {
  return {
    reporting_mta: null,
    original_envelope_id: null,
    original_message_id: OURS,
    message_ids: [OURS],
    returned_ids: [OURS],
    recipients,
    mentioned: [],
    ...changes,
  };
}

function judge(
  changes: Partial<DsnRecipient>,
  envelope: Partial<DsnEnvelope> = {},
  to = ['jo@example.net'],
): DeliveryEvent | undefined {
  const [event, ...others] = dsnEvents(report([entry(changes)]), { ...ENVELOPE, ...envelope }, to);
  expect(others).toEqual([]);
  return event;
}

describe('only relay mail is judged by reports that come as mail (R6)', () => {
  it.each([
    ['smtp', true],
    ['ses', false],
    ['cloudflare', false],
    ['simulator', false],
    ['loopback', false],
    [null, false],
  ] as const)('%s: %s', (provider, judged) => {
    expect(isJudgedByDsn(provider)).toBe(judged);
  });

  it('and only by those that come from nobody', () => {
    expect(judge({ status: '5.1.1' }, { null_sender: false })).toBeUndefined();
  });
});

describe('an entry becomes an event', () => {
  it('with its codes and the words of the server, named after the report', () => {
    expect(judge({ status: '5.1.1', diagnostic_code: 'smtp; 550 5.1.1 no such user' })).toEqual({
      source: 'dsn',
      event_id: `dsn:${ENVELOPE.report_id}:jo@example.net`,
      provider_message_id: null,
      message_ids: [OURS],
      our_message_id: 'msg_01JD9Q3V7M8X2C4N6B5K1R0E9T',
      sender: DESK,
      recipient: 'jo@example.net',
      subject: null,
      kind: 'bounced',
      hard: true,
      outcome: 'bounced',
      suppress: 'hard_bounce',
      smtp_code: '550',
      enhanced_code: '5.1.1',
      smtp_response: '550 5.1.1 no such user',
      occurred_at: ENVELOPE.received_at,
    });
  });

  it.each([
    ['failed', '5.1.1', { kind: 'bounced', hard: true, suppress: 'hard_bounce' }],
    ['failed', '5.7.1', { kind: 'bounced', hard: true, suppress: null }],
    ['failed', '5.2.2', { kind: 'bounced', hard: false, suppress: null }],
    ['failed', '5.0.0', { kind: 'bounced', hard: true, suppress: 'hard_bounce' }],
    ['failed', '4.4.7', { kind: 'bounced', hard: false, suppress: null }],
    ['failed', '2.0.0', { kind: 'bounced', hard: false, suppress: null }],
    ['failed', null, { kind: 'bounced', hard: false, suppress: null }],
    ['Failed (gave up)', '5.1.1', { kind: 'bounced', hard: true, suppress: 'hard_bounce' }],
    ['failure', '5.1.1', { kind: 'bounced', hard: true }],
    ['delayed', '4.3.0', { kind: 'deferred', outcome: null, suppress: null }],
    ['delayed', '5.1.1', { kind: 'deferred', suppress: null }],
    ['delivered', '2.0.0', { kind: 'delivered', outcome: 'delivered' }],
    ['relayed', '2.0.0', { kind: 'delivered' }],
    ['EXPANDED', null, { kind: 'delivered' }],
    // Without a word the status speaks.
    [null, '5.1.1', { kind: 'bounced', hard: true, suppress: 'hard_bounce' }],
    [null, '4.2.0', { kind: 'deferred' }],
    [null, '2.1.5', { kind: 'delivered' }],
  ] as const)('%s with %s', (action, status, expected) => {
    expect(judge({ action, status })).toMatchObject(expected);
  });

  it.each([
    ['a word that nobody knows', { action: 'constructor', status: '5.1.1' }],
    ['neither word nor status', { action: null }],
    ['no address', { final_recipient: null, status: '5.1.1' }],
    ['an address that is none', { final_recipient: 'rfc822; jo', status: '5.1.1' }],
    ['an address we did not write to', { final_recipient: 'rfc822; eve@example.net', status: '5.1.1' }],
  ])('unless it has %s', (_what, changes) => {
    expect(judge(changes)).toBeUndefined();
  });

  it('case 46: given up after its time is soft, whatever else it says', () => {
    const soft = { kind: 'bounced', hard: false, outcome: 'other', suppress: null };
    expect(judge({ action: 'expired', diagnostic_code: 'Connection timed out' })).toMatchObject({
      ...soft,
      smtp_code: null,
      enhanced_code: null,
      smtp_response: 'Connection timed out',
    });
    expect(judge({ action: 'expired', status: '5.4.7' })).toMatchObject(soft);
    expect(judge({ action: 'expired', diagnostic_code: 'smtp; 550 5.1.1 no' })).toMatchObject(soft);
  });

  it('case 54: takes the detail that 5.0.0 leaves out from the words', () => {
    const said = (remark: string) => judge({ status: '5.0.0', remark });
    expect(said('550 5.1.1 <gone@example.net>: User unknown')).toMatchObject({ hard: true, enhanced_code: '5.1.1' });
    expect(said('552 5.2.2 <full@example.net>: Mailbox full')).toMatchObject({ hard: false, enhanced_code: '5.2.2' });
    expect(said('554 no')).toMatchObject({ hard: true, smtp_code: '554', enhanced_code: '5.0.0' });
  });

  it('case 57: is about the address we wrote to, not the one it forwards to', () => {
    const forwarded = {
      final_recipient: 'rfc822; jo.box7@store.example.net',
      original_recipient: 'rfc822;bookings+2B4471@example.net',
      action: 'delayed',
      status: '4.3.0',
      diagnostic_code: 'x-unix; Quota exceeded, could not write /var/mail/box/u/00/INBOX',
    };
    expect(judge(forwarded, {}, ['bookings+4471@example.net'])).toMatchObject({
      recipient: 'bookings+4471@example.net',
      kind: 'deferred',
      enhanced_code: '4.3.0',
      smtp_response: 'Quota exceeded, could not write /var/mail/box/u/00/INBOX',
    });
    // The same characters may also stand for themselves.
    expect(judge(forwarded, {}, ['bookings+2b4471@example.net'])?.recipient).toBe('bookings+2b4471@example.net');
  });

  it.each(['jo@example.net', '<Jo@Example.NET>', 'RFC822;<jo@example.net>', 'rfc822 ; jo@example.net'])(
    'from an address written as %s',
    (final_recipient) => {
      expect(judge({ final_recipient, status: '5.1.1' })?.recipient).toBe('jo@example.net');
    },
  );

  it('once for an address of ours that several entries are about, with the worst that happened', () => {
    const original_recipient = 'rfc822; all@example.net';
    const entries = [
      entry({ final_recipient: 'rfc822; a@example.org', original_recipient, action: 'relayed' }),
      entry({ final_recipient: 'rfc822; b@example.org', original_recipient, action: 'failed', status: '5.7.1' }),
      entry({ final_recipient: 'rfc822; c@example.org', original_recipient, action: 'delayed' }),
      entry({ final_recipient: 'rfc822; d@example.org', original_recipient, action: 'failed', status: '5.1.1' }),
    ];
    expect(dsnEvents(report(entries), ENVELOPE, ['all@example.net'])).toMatchObject([
      { recipient: 'all@example.net', kind: 'bounced', enhanced_code: '5.7.1' },
    ]);
  });
});

describe('without proof that the reporter had our envelope (R6)', () => {
  const unproven = { envelope_proof: false };

  it('the status changes, and nothing that would outlast it', () => {
    expect(judge({ status: '5.1.1' }, unproven)).toMatchObject({
      kind: 'bounced',
      hard: true,
      outcome: null,
      suppress: null,
    });
    expect(judge({ action: 'delivered' }, unproven)).toMatchObject({ kind: 'delivered', outcome: null });
  });
});

describe('the id that relay mail was composed with', () => {
  it('names our message', () => {
    expect(composedFor(OURS, DESK)).toBe('msg_01JD9Q3V7M8X2C4N6B5K1R0E9T');
  });

  it.each([
    '01jd9q3v7m8x2c4n6b5k1r0e9t@other.example',
    '01JD9Q3V7M8X2C4N6B5K1R0E9T@acme.example.com',
    'x01jd9q3v7m8x2c4n6b5k1r0e9t@acme.example.com',
    '01jd9q3v7m8x2c4n6b5k1r0e9t',
    'bounce@acme.example.com',
    '',
  ])('is not %j', (id) => {
    expect(composedFor(id, DESK)).toBeNull();
  });

  it('is looked for in all ids of a report', () => {
    const changes = { message_ids: ['new@relay.example', OURS] };
    expect(ourMessageIn(report([], changes), DESK)).toBe('msg_01JD9Q3V7M8X2C4N6B5K1R0E9T');
    expect(ourMessageIn(report([], { message_ids: [] }), DESK)).toBeNull();
  });
});
