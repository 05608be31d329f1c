import { createComposer } from '@pmail/mime/compose.ts';
import { readMail } from '@pmail/mime/read-mail.ts';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { MailboxRig, MINUTE, type SendOptions } from './mailbox.fixture.ts';

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

it('a key answers with the same bytes after its message was put back from its copy, whatever the message says', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        subject: line,
        name: line,
        sender: line,
        filename: line.map((name) => `${name}.txt`),
        signature: fc.option(anything),
        text: fc.option(anything),
        html: fc.option(anything),
      }),
      async ({ subject, name, sender, filename, signature, text, html }) => {
        const rig = new MailboxRig();
        rig.composer = createComposer();
        rig.parse = readMail;
        const back = rig.storage.pointInTime();
        rig.clock.now += MINUTE;
        const options: SendOptions = {
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
        };
        const first = await rig.submit(options);
        expect(first, JSON.stringify(first)).toMatchObject({ ok: true });
        back();
        rig.restart();
        await rig.engine.rebuildLedger(true);
        const again = await rig.submit(options);
        expect(again).toEqual({ ...first, deduplicated: true });
      },
    ),
    { numRuns: 150 },
  );
});
