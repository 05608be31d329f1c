import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type DsnParts, type DsnReport, readDsn } from './dsn.ts';

const OURS = '01jd9q3v7m8x2c4n6b5k1r0e9t@acme.example.com';

function read(parts: Partial<DsnParts>): DsnReport {
  return readDsn({ delivery_status: [], returned: [], headers: [], text: null, ...parts });
}

const header = (name: string, value: string): { name: string; value: string } => ({ name, value });

describe('the groups of fields', () => {
  it('are one about the message and one for each address', () => {
    const report = read({
      delivery_status: [
        'Reporting-MTA: dns; mx.example.net\r\nOriginal-Envelope-Id: env-1\r\n\r\n' +
          'Final-Recipient: rfc822; gone@example.net\r\nAction: failed\r\nStatus: 5.1.1\r\n' +
          'Diagnostic-Code: smtp; 550 5.1.1\r\n\tno such user\r\n\r\n' +
          'Final-Recipient: rfc822; full@example.net\r\nAction: delayed\r\nStatus: 4.2.2\r\n',
      ],
    });
    expect(report).toMatchObject({ reporting_mta: 'mx.example.net', original_envelope_id: 'env-1' });
    expect(report.recipients).toEqual([
      {
        final_recipient: 'rfc822; gone@example.net',
        original_recipient: null,
        action: 'failed',
        status: '5.1.1',
        diagnostic_code: 'smtp; 550 5.1.1 no such user',
        remark: null,
      },
      expect.objectContaining({
        final_recipient: 'rfc822; full@example.net',
        action: 'delayed',
        diagnostic_code: null,
      }),
    ]);
  });

  it('are found although the first one is missing, lines end in any way, and names come in any case', () => {
    const report = read({
      delivery_status: ['\n\nFINAL-RECIPIENT : rfc822;a@example.net\rACTION: failed\r \rx\r\r\r'],
    });
    expect(report.recipients).toMatchObject([{ final_recipient: 'rfc822;a@example.net', action: 'failed' }]);
    expect(report.reporting_mta).toBeNull();
  });

  it('may stand in several parts', () => {
    const report = read({ delivery_status: ['Final-Recipient: rfc822; a@example.net', 'Action: failed', ''] });
    expect(report.recipients).toHaveLength(2);
  });

  it('case 46: an empty Status is no status', () => {
    const [recipient] = read({
      delivery_status: [
        'X-Relay-QueueID: 515172155\nX-Relay-Sender: \nArrival-Date: 2026-11-28 18-21-01\n\n' +
          'Final-Recipient: rfc822; jo@example.net\nOriginal-Recipient: rfc822; jo@example.net\n' +
          'Action: expired\nStatus: \nDiagnostic-Code: Connection timed out\n',
      ],
    }).recipients;
    expect(recipient).toMatchObject({ action: 'expired', status: null, diagnostic_code: 'Connection timed out' });
  });

  it('case 58: about nobody are about nobody, and the message is known all the same', () => {
    const report = read({
      delivery_status: ['Reporting-MTA: dns; mx.example.net\nX-Queue-ID: B1C79423C925\n'],
      returned: [header('Message-ID', `<${OURS}>`)],
      text: '\t--- report not available ---',
    });
    expect(report).toMatchObject({ recipients: [], mentioned: [], message_ids: [OURS], original_message_id: OURS });
  });

  it('case 54: with nothing but 5.0.0 have their detail in the lines for people', () => {
    const report = read({
      delivery_status: [
        'Reporting-MTA: dns; mx.example.net\n\nFinal-Recipient: rfc822; gone@example.net\nAction: failed\n' +
          'Status: 5.0.0\n\nFinal-Recipient: rfc822; full@example.net\nAction: failed\nStatus: 5.0.0\n',
      ],
      text: 'gone@example.net: 550 5.1.1 <gone@example.net>: User unknown\nfull@example.net: 552 5.2.2 <full@example.net>: Mailbox full\n',
    });
    expect(report.recipients.map(({ remark }) => remark)).toEqual([
      '550 5.1.1 <gone@example.net>: User unknown',
      '552 5.2.2 <full@example.net>: Mailbox full',
    ]);
  });
});

describe('the ids by which a report may mean a message (R6)', () => {
  it('are those of what came back, then those of gateways, then those it answers', () => {
    const report = read({
      returned: [
        header('X-Google-Original-Message-ID', '<g@example.com>'),
        header('Message-ID', '<new@relay.example>'),
        header('X-Original-Message-ID', '<x@example.com>'),
      ],
      headers: [
        header('References', '<first@example.com> <last@example.com>'),
        header('In-Reply-To', '<answered@example.com>'),
        header('Message-ID', '<bounce@mx.example.net>'),
        header('X-Microsoft-Original-Message-ID', '<m@example.com>'),
      ],
    });
    expect(report.message_ids).toEqual([
      'new@relay.example',
      'x@example.com',
      'g@example.com',
      'm@example.com',
      'answered@example.com',
      'last@example.com',
      'first@example.com',
    ]);
    // Only what came back together names one message.
    expect(report.returned_ids).toEqual(['new@relay.example', 'x@example.com', 'g@example.com']);
    expect(report.original_message_id).toBe('new@relay.example');
  });

  it('are none where nothing says so', () => {
    expect(read({ headers: [header('Message-ID', '<bounce@mx.example.net>')] }).message_ids).toEqual([]);
  });
});

describe('a report that is only text', () => {
  const qmail = `This is the mail program at mx4.example.net.
I could not deliver your message and have stopped trying.

<jo@example.net>:
192.0.2.32 refused the recipient.
Remote host said: 550 Unknown user jo@example.net
Giving up on 192.0.2.32. (#5.1.1)

--- Below this line is a copy of the message.

Return-Path: <desk@acme.example.com>
From: Acme Desk <desk@acme.example.com>
Subject: Your
 booking 4471
Message-ID: <${OURS}>

Your booking is confirmed.
Message-ID: <in-the-body@example.net>
`;

  it('case 55: names its message in the copy that it pastes, and the address as evidence alone', () => {
    const report = read({ text: qmail });
    expect(report.recipients).toEqual([]);
    expect(report.mentioned).toMatchObject([{ final_recipient: 'jo@example.net', action: null, status: '5.1.1' }]);
    expect(report).toMatchObject({ message_ids: [OURS], original_message_id: OURS });
  });

  it('has what came back from a part before what it pastes', () => {
    const report = read({ text: qmail, returned: [header('Message-ID', '<part@example.net>')] });
    expect(report.message_ids).toEqual(['part@example.net']);
  });

  it('case 60: without a copy and in another language says nothing', () => {
    const text =
      'Ihre Nachricht an jo@example.net konnte nicht zugestellt werden.\njo wurde unter example.net nicht gefunden.\nStatuscode: 550 5.1.10\n';
    expect(read({ text })).toMatchObject({ recipients: [], mentioned: [], message_ids: [] });
  });
});

it.each([
  ['dashes', '-'.repeat(400_000)],
  ['addresses', 'a@'.repeat(200_000)],
  ['blanks', `\n${' '.repeat(400_000)}\n`],
  ['digits', '5.'.repeat(200_000)],
])('a long line of %s is read once, not over and over', (_what, long) => {
  const report = read({
    text: `${long}\n-- copy of the message\n\n${long}`,
    delivery_status: [`Action: ${long}`, long],
  });
  expect(report.message_ids).toEqual([]);
});

it('no more ids are looked at than a message can have', () => {
  const many = Array.from({ length: 500 }, (_, n) => `<${n}@example.net>`).join(' ');
  expect(read({ headers: [header('References', many)] }).message_ids).toHaveLength(50);
  expect(read({ returned: [header('X-Original-Message-ID', many)] }).returned_ids).toHaveLength(50);
});

it('can be anything: no parts break it', () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: 'binary' })),
      fc.string({ unit: fc.constantFrom('a', '@', '<', '>', ':', '\n', '\r', ' ', '-', '--- copy of the message') }),
      (delivery_status, text) => {
        read({ delivery_status, text, returned: [header('Message-ID', text)] });
      },
    ),
  );
});
