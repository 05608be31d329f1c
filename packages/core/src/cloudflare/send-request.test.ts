import { describe, expect, test } from 'vitest';
import type { OutgoingMessage } from '../transport/types.ts';
import { cloudflareFault, cloudflareMail } from './send-request.ts';

const JOURNAL = 'journal+01jd9q3v7m8x2c4n6b5k1r0e9t.01jd9q3v7m8x2c4n6b5k1r0e9s@agents.example';

function message(changes: Partial<OutgoingMessage> = {}): OutgoingMessage {
  return {
    message_id: 'msg_01JD9Q3V7M8X2C4N6B5K1R0E9T',
    from: { address: 'desk@acme.example.com', name: 'Désk' },
    reply_to: 'desk+t01.abcdefgh@acme.example.com',
    to: ['jo@example.net'],
    cc: [],
    bcc: [],
    subject: 'Your booking',
    text: 'Hello',
    html: null,
    headers: [],
    attachments: [],
    mime: new Uint8Array(9),
    journal_bcc: null,
    ...changes,
  };
}

const file = (changes: object = {}): OutgoingMessage['attachments'][number] => ({
  filename: 'a.pdf',
  content_type: 'application/pdf',
  disposition: 'attachment',
  content_id: null,
  content: Uint8Array.of(1, 2, 3),
  ...changes,
});

describe('the fields of a message', () => {
  test('hold what it has, and nothing where it has nothing', () => {
    expect(cloudflareMail(message())).toEqual({
      from: { email: 'desk@acme.example.com', name: 'Désk' },
      replyTo: { email: 'desk+t01.abcdefgh@acme.example.com', name: 'Désk' },
      to: ['jo@example.net'],
      subject: 'Your booking',
      text: 'Hello',
    });
  });

  test('hold everything there is', () => {
    const full = message({
      cc: ['kim@example.net'],
      bcc: ['lee@example.net'],
      reply_to: null,
      html: '<p>Hello</p>',
      headers: [
        { name: 'In-Reply-To', value: '<a@b.example>' },
        { name: 'X-A', value: '1' },
      ],
      attachments: [file(), file({ disposition: 'inline', content_id: 'logo', filename: 'logo.png' })],
      names: { 'jo@example.net': 'Jo' },
      journal_bcc: JOURNAL,
    });
    expect(cloudflareMail(full)).toEqual({
      from: { email: 'desk@acme.example.com', name: 'Désk' },
      to: [{ email: 'jo@example.net', name: 'Jo' }],
      cc: ['kim@example.net'],
      bcc: ['lee@example.net', JOURNAL],
      subject: 'Your booking',
      text: 'Hello',
      html: '<p>Hello</p>',
      headers: { 'In-Reply-To': '<a@b.example>', 'X-A': '1' },
      attachments: [
        { disposition: 'attachment', filename: 'a.pdf', type: 'application/pdf', content: Uint8Array.of(1, 2, 3) },
        {
          disposition: 'inline',
          contentId: 'logo',
          filename: 'logo.png',
          type: 'application/pdf',
          content: Uint8Array.of(1, 2, 3),
        },
      ],
    });
  });

  test('show nobody who gets the message blind, also when nobody else is left', () => {
    const mail = cloudflareMail(message({ to: [], bcc: ['lee@example.net', 'kim@example.net'], journal_bcc: JOURNAL }));
    expect(mail).not.toHaveProperty('to');
    expect(mail).not.toHaveProperty('cc');
    expect(mail.bcc).toEqual(['lee@example.net', 'kim@example.net', JOURNAL]);
  });

  test('name no one without a name, and have a body even when it is empty', () => {
    const mail = cloudflareMail(message({ from: { address: 'desk@acme.example.com', name: '' }, text: null }));
    expect(mail).toMatchObject({
      from: { email: 'desk@acme.example.com', name: '' },
      replyTo: 'desk+t01.abcdefgh@acme.example.com',
      text: '',
    });
  });
});

describe('before the call', () => {
  const people = (n: number): string[] => Array.from({ length: n }, (_, index) => `r${index}@example.net`);

  test.each([
    ['a plain message', {}],
    ['49 recipients and the hidden one', { to: people(49), journal_bcc: JOURNAL }],
    ['50 recipients', { to: people(20), cc: people(30).slice(20), bcc: ['x@example.net'] }],
    ['32 attachments', { attachments: Array.from({ length: 32 }, () => file()) }],
    ['the longest subject', { subject: '№'.repeat(998) }],
    ['the largest message', { mime: new Uint8Array(5_242_880) }],
  ])('%s passes', (_what, changes) => {
    expect(cloudflareFault(message(changes))).toBeNull();
  });

  test.each<[string, string, Partial<OutgoingMessage>]>([
    ['E_FIELD_MISSING', 'nobody', { to: [], journal_bcc: JOURNAL }],
    ['E_TOO_MANY_RECIPIENTS', '51', { to: people(51) }],
    ['E_TOO_MANY_RECIPIENTS', '50 and the hidden one', { to: people(50), journal_bcc: JOURNAL }],
    ['E_VALIDATION_ERROR', 'a recipient that is none', { to: ['jo'] }],
    ['E_VALIDATION_ERROR', 'two in one', { to: ['a@example.net, b@example.net'] }],
    ['E_VALIDATION_ERROR', 'a header in an address', { bcc: ['a@example.net>\r\nBcc: <eve@evil.example'] }],
    ['E_VALIDATION_ERROR', 'an address that is not as we write it', { cc: ['JO@example.net'] }],
    ['E_VALIDATION_ERROR', 'a From that is none', { from: { address: 'desk', name: '' } }],
    ['E_VALIDATION_ERROR', 'a line end in a name', { from: { address: 'desk@acme.example.com', name: 'a\r\nb' } }],
    ['E_VALIDATION_ERROR', 'a line end in the name of another', { names: { 'jo@example.net': 'a\nb' } }],
    ['E_VALIDATION_ERROR', 'a line end in the subject', { subject: 'a\r\nBcc: eve@evil.example' }],
    ['E_VALIDATION_ERROR', 'a subject of 999', { subject: 'x'.repeat(999) }],
    ['E_VALIDATION_ERROR', 'a Reply-To that is none', { reply_to: 'nobody' }],
    ['E_CONTENT_TOO_LARGE', 'a byte too much', { mime: new Uint8Array(5_242_881) }],
    ['E_TOO_MANY_ATTACHMENTS', '33 attachments', { attachments: Array.from({ length: 33 }, () => file()) }],
    ['E_VALIDATION_ERROR', 'an attachment without a name', { attachments: [file({ filename: '' })] }],
    ['E_VALIDATION_ERROR', 'a line end in a file name', { attachments: [file({ filename: 'a\r\nb' })] }],
    ['E_VALIDATION_ERROR', 'an attachment of no type', { attachments: [file({ content_type: 'pdf' })] }],
    ['E_VALIDATION_ERROR', 'parameters in a type', { attachments: [file({ content_type: 'text/plain; x="\r\n"' })] }],
    ['E_VALIDATION_ERROR', 'an inline part without its id', { attachments: [file({ content_id: '' })] }],
    ['E_HEADER_NOT_ALLOWED', 'a header of its own', { headers: [{ name: 'Date', value: 'now' }] }],
  ])('%s for %s', (code, _what, changes) => {
    expect(cloudflareFault(message(changes))?.code).toBe(code);
  });
});
