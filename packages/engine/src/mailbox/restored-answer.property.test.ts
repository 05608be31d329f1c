import { createComposer } from '@pmail/mime/compose.ts';
import { readMail } from '@pmail/mime/read-mail.ts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { arriveRaw } from './answers.fixture.ts';
import { MailboxRig, MINUTE, type SendOptions, type Submitted } from './mailbox.fixture.ts';

/** What people write, and what is known to change on the way: line ends, blanks at the end, byte order marks. */
const anything = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'binary', maxLength: 10 }),
      fc.string({ unit: 'grapheme', maxLength: 10 }),
      fc.constantFrom('\n', '\r', '\r\n', ' ', '\t', '\u2028', '\u00a0', '\ufeff', '\ufffd', '\0', '=?x?=', '.'),
    ),
    { maxLength: 6 },
  )
  .map((parts) => parts.join('').toWellFormed());

/** Of that what may stand in a header; the rest is refused. */
const line = anything.map((text) => text.replace(/[\x00-\x1f\x7f-\x9f\u2028\u2029]/g, ''));

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

function word(text: string): string {
  return `=?utf-8?B?${base64(text)}?=`;
}

/** Sends, puts the mailbox back to before it, and sends again. */
async function beforeAndAfter(
  options: SendOptions | ((rig: MailboxRig) => Promise<SendOptions>),
): Promise<{ first: Submitted; again: Submitted }> {
  const rig = new MailboxRig();
  rig.composer = createComposer();
  rig.parse = readMail;
  const send = typeof options === 'function' ? await options(rig) : options;
  const back = rig.storage.pointInTime();
  rig.clock.now += MINUTE;
  const first = await rig.submit(send);
  expect(first, JSON.stringify(first)).toMatchObject({ ok: true, deduplicated: false });
  back();
  rig.restart();
  await rig.engine.rebuildLedger(true);
  return { first: { ...first, deduplicated: true } as Submitted, again: await rig.submit(send) };
}

describe('a key answers as before after its message was put back from its copy', () => {
  it('whatever a send says', async () => {
    const send = fc.record({
      subject: line,
      name: line,
      sender: line,
      filename: line.map((name) => `${name}.txt`),
      signature: fc.option(anything),
      text: fc.option(anything),
      html: fc.option(anything),
    });
    await fc.assert(
      fc.asyncProperty(send, async ({ subject, name, sender, filename, signature, text, html }) => {
        const { first, again } = await beforeAndAfter({
          key: 'late',
          body: {
            to: [{ address: 'jo@example.org', name }],
            cc: ['kim@example.org'],
            bcc: [{ address: 'lee@example.org', name }],
            subject,
            ...(text === null && html !== null ? {} : { text: text || 'a text' }),
            ...(html === null ? {} : { html: html || '<p>a text</p>' }),
            attachments: [{ filename, content_type: 'text/plain', content_base64: 'YQ==' }],
          },
          identity: { display_name: sender, signature_text: signature },
        });
        expect(again).toEqual(first);
      }),
      { numRuns: 60 },
    );
  });

  it('whatever the message says that is answered or forwarded', async () => {
    const received = fc.record({
      operation: fc.constantFrom('reply', 'reply_all', 'forward'),
      subject: anything,
      name: anything,
      type: fc.constantFrom('plain', 'html'),
      text: anything,
    });
    await fc.assert(
      fc.asyncProperty(received, async ({ operation, subject, name, type, text }) => {
        const { first, again } = await beforeAndAfter(async (rig) => {
          const { message_id: target_id } = await arriveRaw(rig, [
            `From: ${word(name)} <jo@example.org>`,
            `Cc: ${word(name)} <kim@example.org>`,
            `Subject: ${word(subject)}`,
            `Content-Type: text/${type}; charset=utf-8`,
            'Content-Transfer-Encoding: base64',
            '',
            base64(text),
          ]);
          const body = operation === 'forward' ? { to: ['lee@example.org'] } : { to: undefined, text: 'An answer' };
          return { key: 'late', operation, target_id, body: { ...body, subject: undefined } };
        });
        expect(again).toEqual(first);
      }),
      { numRuns: 60 },
    );
  });
});
