import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SES_MESSAGE_TAG, sesWireId } from '../ses/names.ts';
import type { DeliveryEvent } from './events.ts';
import { type SesEnvelope, type SesParse, sesEvent } from './ses-event.ts';

type Tree = Record<string, unknown>;

const ID = '0102019ab3c4d5e6-11223344-5566-7788-99aa-bbccddeeff00-000000';
const ENVELOPE: SesEnvelope = {
  notification_id: 'sns-1',
  at: Date.UTC(2026, 10, 30, 8, 45),
  region: 'eu-west-1',
};
const AT = Date.UTC(2026, 10, 30, 8, 41);
const TIMESTAMP = '2026-11-30T08:41:00.000Z';

function mail(to: string[] = ['jo@example.net'], changes: Tree = {}): Tree {
  return {
    timestamp: '2026-11-30T08:40:01.000Z',
    source: 'desk@acme.example.com',
    sendingAccountId: '111122223333',
    messageId: ID,
    destination: to,
    headersTruncated: false,
    headers: [{ name: 'Message-ID', value: `<${ID}@eu-west-1.amazonses.com>` }],
    commonHeaders: {
      from: ['"Desk, Acme" <desk@acme.example.com>'],
      to,
      messageId: ID,
      subject: 'Your booking 4471',
    },
    tags: { 'ses:configuration-set': ['pylota-mail'], 'ses:from-domain': ['acme.example.com'] },
    ...changes,
  };
}

function bounce(recipient: Tree, changes: Tree = {}): Tree {
  return {
    eventType: 'Bounce',
    bounce: {
      bounceType: 'Permanent',
      bounceSubType: 'General',
      bouncedRecipients: [{ emailAddress: 'jo@example.net', ...recipient }],
      timestamp: TIMESTAMP,
      feedbackId: '0102-b1',
      ...changes,
    },
    mail: mail(),
  };
}

function events(body: unknown, envelope = ENVELOPE): DeliveryEvent[] {
  const parsed = sesEvent(body, envelope);
  if (parsed.kind !== 'events') throw new Error(`not events: ${parsed.kind}`);
  return parsed.events;
}

function only(body: unknown, envelope = ENVELOPE): DeliveryEvent {
  const [event, ...others] = events(body, envelope);
  if (event === undefined || others.length > 0) throw new Error('not one event');
  return event;
}

describe('the id that recipients see (R1)', () => {
  it('has the region in its domain, everywhere but in the first one', () => {
    expect(sesWireId('0100-a', 'us-east-1')).toBe('0100-a@email.amazonses.com');
    expect(sesWireId('0102-a', 'eu-west-1')).toBe('0102-a@eu-west-1.amazonses.com');
  });

  it.each([
    ['the bare id', ID],
    ['the id we had composed', '<01jd9q3v7m8x2c4n6b5k1r0e9t@acme.example.com>'],
    ['nothing', undefined],
  ])('is learned from Send, which holds %s as its header', (_what, messageId) => {
    const commonHeaders = { from: ['desk@acme.example.com'], messageId };
    expect(
      sesEvent({ eventType: 'Send', send: {}, mail: mail(['jo@example.net'], { commonHeaders }) }, ENVELOPE),
    ).toEqual({
      kind: 'learned',
      learned: {
        sender: 'desk@acme.example.com',
        provider_message_id: ID,
        rfc_message_id: `${ID}@eu-west-1.amazonses.com`,
        our_message_id: null,
        occurred_at: Date.UTC(2026, 10, 30, 8, 40, 1),
      },
    } satisfies SesParse);
  });
});

describe('case 30: the report spells the recipient in another case', () => {
  const body = {
    ...bounce({
      emailAddress: 'Reader@Example.NET',
      action: 'failed',
      status: '5.1.1',
      diagnosticCode: 'smtp; 550 5.1.1 unknown',
    }),
    mail: mail(['Reader@Example.NET']),
  };

  it('is about the address in the form in which it is stored, and hard', () => {
    expect(only(body)).toEqual({
      source: 'ses',
      event_id: 'ses:sns-1:reader@example.net',
      provider_message_id: ID,
      rfc_message_id: `${ID}@eu-west-1.amazonses.com`,
      our_message_id: null,
      sender: 'desk@acme.example.com',
      recipient: 'reader@example.net',
      subject: 'Your booking 4471',
      kind: 'bounced',
      hard: true,
      smtp_code: '550',
      enhanced_code: '5.1.1',
      smtp_response: '550 5.1.1 unknown',
      outcome: 'bounced',
      suppress: 'hard_bounce',
      occurred_at: AT,
    });
  });
});

describe('case 32: an undetermined bounce with nothing in it', () => {
  it('is soft, without codes, and nobody is suppressed', () => {
    const [bare] = events({
      ...bounce({}, { bounceType: 'Undetermined', bounceSubType: 'Undetermined' }),
    });
    expect(bare).toMatchObject({
      kind: 'bounced',
      hard: false,
      smtp_code: null,
      enhanced_code: null,
      smtp_response: null,
      outcome: 'other',
      suppress: null,
    });
  });
});

describe('a bounce', () => {
  it.each([
    // The word of SES decides between hard and soft, the code about the suppression (R5).
    ['Permanent', '5.1.1', true, 'bounced', 'hard_bounce'],
    ['Permanent', '5.2.1', true, 'bounced', 'hard_bounce'],
    ['Permanent', '5.3.0', true, 'bounced', null],
    ['Permanent', '5.4.4', true, 'bounced', null],
    ['Permanent', '5.5.0', true, 'bounced', null],
    ['Permanent', '5.6.1', true, 'bounced', null],
    ['Permanent', '5.7.1', true, 'bounced', null],
    ['Permanent', '5.2.3', true, 'bounced', null],
    ['Permanent', undefined, true, 'bounced', 'hard_bounce'],
    ['Permanent', '5.2.2', false, 'other', null],
    ['Transient', '5.1.1', false, 'other', null],
    ['Transient', '4.4.7', false, 'other', null],
    ['Undetermined', '5.1.1', false, 'other', null],
    // Of a type nobody knows only the code speaks.
    ['Peculiar', '5.1.1', true, 'bounced', 'hard_bounce'],
    [undefined, '4.2.0', false, 'other', null],
    [undefined, undefined, false, 'other', null],
  ])('%s with %s', (bounceType, status, hard, outcome, suppress) => {
    expect(only(bounce({ status }, { bounceType }))).toMatchObject({ kind: 'bounced', hard, outcome, suppress });
  });

  it('takes the code from the diagnostic where the status says nothing', () => {
    const event = only(bounce({ status: '5.0.0', diagnosticCode: 'smtp; 552 5.2.3 too long' }));
    expect(event).toMatchObject({ enhanced_code: '5.2.3', smtp_code: '552', suppress: null });
    expect(only(bounce({ diagnosticCode: 'smtp; 554 no' }))).toMatchObject({ enhanced_code: null, smtp_code: '554' });
  });

  it.each(['Suppressed', 'OnAccountSuppressionList'])('of %s was never sent: the list of the provider', (subtype) => {
    const event = only(bounce({ status: '5.1.1' }, { bounceSubType: subtype }));
    expect(event).toMatchObject({ kind: 'bounced', hard: true, suppress: 'provider' });
    const soft = only(bounce({}, { bounceType: 'Transient', bounceSubType: subtype }));
    expect(soft).toMatchObject({ hard: false, suppress: null });
  });

  it('of several is one event for each, which shares nothing with the others but the report', () => {
    const many = bounce(
      {},
      {
        bouncedRecipients: [
          { emailAddress: 'Jo@example.net', status: '5.1.1' },
          { emailAddress: '"Kim" <kim@example.net>', status: '5.7.1' },
          { emailAddress: 'jo@EXAMPLE.net', status: '5.7.1' },
          { emailAddress: 'nobody' },
          'lee@example.net',
        ],
      },
    );
    expect(events(many).map(({ event_id, suppress }) => [event_id, suppress])).toEqual([
      ['ses:sns-1:jo@example.net', 'hard_bounce'],
      ['ses:sns-1:kim@example.net', null],
      ['ses:sns-1:lee@example.net', 'hard_bounce'],
    ]);
  });

  it('keeps at most 512 characters of what the other side said', () => {
    expect(only(bounce({ diagnosticCode: `smtp; 550 ${'x'.repeat(2_000)}` })).smtp_response).toHaveLength(512);
  });
});

describe('a complaint', () => {
  const complaint = (changes: Tree = {}): Tree => ({
    eventType: 'Complaint',
    complaint: {
      complainedRecipients: [{ emailAddress: 'jo@example.net' }],
      timestamp: TIMESTAMP,
      feedbackId: '0102-c1',
      complaintSubType: null,
      complaintFeedbackType: 'abuse',
      ...changes,
    },
    mail: mail(),
  });

  it('counts, with feedback of any kind or none', () => {
    const expected = { kind: 'complained', outcome: 'complained', suppress: 'complaint', smtp_response: null };
    expect(only(complaint())).toMatchObject(expected);
    expect(only(complaint({ complaintFeedbackType: undefined }))).toMatchObject(expected);
    expect(only(complaint({ complaintFeedbackType: 'fraud' }))).toMatchObject(expected);
  });

  it('that says it is not spam changes nothing (R3)', () => {
    expect(sesEvent(complaint({ complaintFeedbackType: 'not-spam' }), ENVELOPE)).toEqual({ kind: 'nothing' });
  });

  it('of the suppression list is mail that was never sent, and nobody has complained (R3)', () => {
    expect(only(complaint({ complaintSubType: 'OnAccountSuppressionList' }))).toMatchObject({
      kind: 'bounced',
      hard: true,
      outcome: 'other',
      suppress: 'provider',
    });
  });
});

describe('another report', () => {
  it('of a delivery names everybody who got it, with what their server said', () => {
    const body = {
      eventType: 'Delivery',
      delivery: {
        timestamp: TIMESTAMP,
        recipients: ['Jo@example.net', 'kim@example.net'],
        smtpResponse: '250 2.6.0 Message received',
      },
      mail: mail(['jo@example.net', 'kim@example.net', 'lee@example.net']),
    };
    expect(events(body)).toMatchObject([
      {
        recipient: 'jo@example.net',
        kind: 'delivered',
        smtp_code: '250',
        enhanced_code: '2.6.0',
        outcome: 'delivered',
      },
      { recipient: 'kim@example.net', kind: 'delivered', occurred_at: AT },
    ]);
  });

  it('of a delay decides nothing yet', () => {
    const recipient = { emailAddress: 'jo@example.net', status: '4.4.1', diagnosticCode: 'smtp; 421 4.4.1 Unable' };
    const delay = { delayType: 'TransientCommunicationFailure', delayedRecipients: [recipient], timestamp: TIMESTAMP };
    expect(only({ eventType: 'DeliveryDelay', deliveryDelay: delay, mail: mail() })).toMatchObject({
      kind: 'deferred',
      smtp_code: '421',
      enhanced_code: '4.4.1',
      outcome: null,
      suppress: null,
    });
    const bare = { ...delay, delayedRecipients: [{ emailAddress: 'jo@example.net' }] };
    expect(only({ eventType: 'DeliveryDelay', deliveryDelay: bare, mail: mail() }).smtp_response).toBe(
      'TransientCommunicationFailure',
    );
  });

  it.each([
    ['Reject', { reject: { reason: 'Bad content' } }, 'Bad content'],
    ['Rendering Failure', { failure: { errorMessage: 'no such field', templateName: 't' } }, 'no such field'],
    ['RenderingFailure', { failure: {} }, null],
  ])('of %s is about everybody', (eventType, details, said) => {
    const all = events({ eventType, ...details, mail: mail(['jo@example.net', 'Kim <kim@example.net>']) });
    expect(all).toMatchObject([
      { recipient: 'jo@example.net', kind: 'rejected', smtp_response: said, outcome: 'other', suppress: null },
      { recipient: 'kim@example.net', kind: 'rejected' },
    ]);
    expect(all[0]?.occurred_at).toBe(Date.UTC(2026, 10, 30, 8, 40, 1));
  });
});

describe('what is missing (R2)', () => {
  it('is the name of the type: identities call it otherwise', () => {
    const { eventType, ...rest } = bounce({ status: '5.1.1' });
    expect(only({ ...rest, notificationType: eventType })).toMatchObject({ kind: 'bounced', hard: true });
  });

  it.each([
    ['the common headers', { commonHeaders: undefined }],
    ['a From in them', { commonHeaders: { to: ['jo@example.net'] } }],
    ['a readable From', { commonHeaders: { from: ['Desk'] } }],
    ['all but the source', { commonHeaders: undefined, headers: undefined, tags: undefined, destination: undefined }],
  ])('is %s: the source is the sender', (_what, changes) => {
    const event = only({ ...bounce({}), mail: mail(['jo@example.net'], changes) });
    expect(event.sender).toBe('desk@acme.example.com');
  });

  it('is the time: that of the mail, else that of the notification', () => {
    expect(only(bounce({}, { timestamp: undefined })).occurred_at).toBe(Date.UTC(2026, 10, 30, 8, 40, 1));
    const untimed = { ...bounce({}, { timestamp: 'soon' }), mail: mail(['jo@example.net'], { timestamp: undefined }) };
    expect(only(untimed).occurred_at).toBe(ENVELOPE.at);
  });

  it('is the recipient: the only one there was, but none of several', () => {
    expect(only(bounce({}, { bouncedRecipients: [] })).recipient).toBe('jo@example.net');
    const several = {
      ...bounce({}, { bouncedRecipients: undefined }),
      mail: mail(['jo@example.net', 'kim@example.net']),
    };
    expect(sesEvent(several, ENVELOPE)).toEqual({ kind: 'unparsable' });
  });

  it('is the id: the report can still name its message by the tag', () => {
    const event = only({ ...bounce({}), mail: mail(['jo@example.net'], { messageId: undefined }) });
    expect(event).toMatchObject({ provider_message_id: null, rfc_message_id: null });
    expect(sesEvent({ eventType: 'Send', mail: mail([], { messageId: undefined }) }, ENVELOPE)).toEqual({
      kind: 'unparsable',
    });
  });

  it.each([
    ['nothing', null],
    ['a text', 'Successfully validated SNS topic for Amazon SES event publishing.'],
    ['no type', { mail: mail() }],
    ['nobody who sent it', { ...bounce({}), mail: {} }],
    ['no mail', { eventType: 'Bounce' }],
  ])('is everything: %s cannot be read', (_what, body) => {
    expect(sesEvent(body, ENVELOPE)).toEqual({ kind: 'unparsable' });
  });

  it.each(['Open', 'Click', 'Subscription', 'constructor'])('%s is a type we did not ask for', (eventType) => {
    expect(sesEvent({ eventType, mail: mail() }, ENVELOPE)).toEqual({ kind: 'unknown_type' });
  });

  it('can be anything: no tree breaks it', () => {
    fc.assert(
      fc.property(fc.constantFrom('Bounce', 'Complaint', 'Delivery', 'Send', 'Reject'), fc.object(), (type, rest) => {
        sesEvent({ ...rest, eventType: type, mail: { ...mail(), ...rest } }, ENVELOPE);
        sesEvent({ eventType: type, [type.toLowerCase()]: rest, mail: rest }, ENVELOPE);
      }),
    );
  });
});

describe('our own id', () => {
  const OURS = 'msg_01JD9Q3V7M8X2C4N6B5K1R0E9T';
  const tagged = (value: unknown): DeliveryEvent =>
    only({ ...bounce({}), mail: mail(['jo@example.net'], { tags: { [SES_MESSAGE_TAG]: value } }) });

  it('comes back in the tag that the send was given', () => {
    expect(tagged([OURS]).our_message_id).toBe(OURS);
    const send = { eventType: 'Send', mail: mail(['jo@example.net'], { tags: { [SES_MESSAGE_TAG]: [OURS] } }) };
    expect(sesEvent(send, ENVELOPE)).toMatchObject({ learned: { our_message_id: OURS } });
  });

  it.each([[[]], [['idn_01JD9Q3V7M8X2C4N6B5K1R0E9T']], [['msg_1']], [OURS], [[7]], [null]])('is not %j', (value) => {
    expect(tagged(value).our_message_id).toBeNull();
  });
});
