import { toCrlf } from '@pmail/core/compose/bodies.ts';
import fc from 'fast-check';
import { simpleParser } from 'mailparser';
import { expect, it } from 'vitest';
import { createComposer } from './compose.ts';
import { headerText } from './encoded-word.ts';
import { parseMail } from './parse.ts';
import { attachment, composeInput, expectSoundWire, headerOf, safeFilename } from './test-support.ts';

const composer = createComposer();

/** Any code points, lone surrogates and control characters too, and the characters that headers give a meaning. */
const anything = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'binary', maxLength: 30 }),
      fc.string({ unit: 'grapheme', maxLength: 40 }),
      fc.constantFrom(
        '=?',
        '?=',
        '=?utf-8?Q?x?=',
        '"',
        '\\',
        '<',
        '>',
        ',',
        ';',
        ':',
        '(',
        ' ',
        '  ',
        '\r\n',
        '\ud800',
        '%',
      ),
      fc.integer({ min: 1, max: 300 }).map((length) => 'w'.repeat(length)),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(''));

/** A body as any reader shows it: one kind of line end, no byte order mark, nothing at the end. */
function shown(text: string): string {
  return toCrlf(text.toWellFormed())
    .replaceAll('\r\n', '\n')
    .replace(/^\ufeff/, '')
    .trimEnd();
}

it('any subject, name, value and body comes back, in sound lines, the same every time', async () => {
  await fc.assert(
    fc.asyncProperty(anything, anything, anything, anything, async (subject, name, value, text) => {
      const input = composeInput({
        subject,
        from: { address: 'desk@acme.example.com', name },
        to: [
          { address: 'jo@example.org', name },
          { address: 'kim@example.org', name: '' },
        ],
        headers: [{ name: 'X-Value', value }],
        text,
        html: `<p>${text}</p>`,
      });
      const { mime } = await composer.compose(input);
      expectSoundWire(mime);
      expect(Buffer.from((await composer.compose(input)).mime).equals(Buffer.from(mime))).toBe(true);

      const mail = await parseMail(mime);
      expect(mail.subject).toBe(headerText(subject));
      expect(mail.from).toEqual({ address: 'desk@acme.example.com', name: headerText(name).trim() });
      expect(mail.to).toEqual([
        { address: 'jo@example.org', name: headerText(name).trim() },
        { address: 'kim@example.org', name: '' },
      ]);
      expect(mail.headers.find((header) => header.name === 'X-Value')?.value).toBe(headerText(value));
      expect(shown(mail.text ?? '')).toBe(shown(text));
      expect(shown(mail.html ?? '')).toBe(shown(`<p>${text}</p>`));
    }),
    { numRuns: 300 },
  );
});

it('any file name comes back through both parsers', async () => {
  await fc.assert(
    fc.asyncProperty(anything, async (name) => {
      const filename = safeFilename(name);
      const { mime } = await composer.compose(composeInput({ attachments: [attachment({ filename })] }));
      expectSoundWire(mime);
      const theirs = await simpleParser(Buffer.from(mime));
      expect(theirs.attachments.map((part) => part.filename)).toEqual([filename]);
      // postal-mime decodes what looks encoded, also in a name that was not written that way.
      if (filename.includes('=?')) return;
      expect((await parseMail(mime)).attachments.map((part) => part.filename)).toEqual([filename]);
    }),
    { numRuns: 300 },
  );
});

it('ids of any length are folded only between them', async () => {
  const id = fc
    .tuple(fc.stringMatching(/^[a-z0-9.$+=]{1,300}$/), fc.constantFrom('@x.example', ''))
    .map((parts) => parts.join(''));
  await fc.assert(
    fc.asyncProperty(fc.array(id, { maxLength: 20 }), async (references) => {
      const { mime } = await composer.compose(composeInput({ references }));
      expectSoundWire(mime);
      const written = references.map((entry) => `<${entry}>`).join(' ');
      expect(headerOf(mime, 'References') ?? '').toBe(written);
    }),
    { numRuns: 100 },
  );
});
