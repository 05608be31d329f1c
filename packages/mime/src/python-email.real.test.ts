import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createComposer } from './compose.ts';
import { COMPOSE_CASES, type ComposeCase } from './compose-cases.ts';
import {
  attachment,
  composeInput,
  expectedReading,
  normalizedBody,
  type Reading,
  safeFilename,
  sortAttachments,
} from './test-support.ts';

/**
 * Python's email package under its strict policy: a reader that shares no code with the composer or our parser, and
 * that reports every deviation from the grammar. Needs `python3`; nothing is installed.
 */
type PythonReading = Reading & { defects: string[]; message_id: string; references: string[] };

function python(): string | null {
  const found = spawnSync('python3', ['-c', 'import email'], { encoding: 'utf8' });
  return found.status === 0 ? 'python3' : null;
}

const text = fc.string({ unit: 'grapheme', maxLength: 120, size: 'max' });

/** The same made-up messages on every run. */
const RANDOM_CASES: ComposeCase[] = fc
  .sample(fc.record({ subject: text, name: text, body: text, filename: text, header: text }), {
    seed: 4471,
    numRuns: 200,
  })
  .map(({ subject, name, body, filename, header }, index) => ({
    name: `random ${index}`,
    input: composeInput({
      subject,
      from: { address: 'desk@acme.example.com', name },
      text: body,
      headers: header.trim() === '' ? [] : [{ name: 'X-Random', value: header }],
      attachments: [attachment({ filename: safeFilename(filename) })],
    }),
  }));

const CASES = [...COMPOSE_CASES, ...RANDOM_CASES];
const PYTHON = python();

describe.skipIf(PYTHON === null)("Python's email package (skipped where python3 is missing)", async () => {
  const composer = createComposer();
  const mails = await Promise.all(CASES.map(({ input }) => composer.compose(input)));
  const run = spawnSync(PYTHON ?? '', [join(import.meta.dirname, 'python-email.py')], {
    input: JSON.stringify(mails.map(({ mime }) => Buffer.from(mime).toString('base64'))),
    encoding: 'utf8',
    maxBuffer: 256 * 1024 * 1024,
    env: { ...process.env, PYTHONIOENCODING: 'utf-8' },
  });
  if (run.status !== 0) throw new Error(`python3 failed: ${run.stderr}`);
  const readings = JSON.parse(run.stdout) as PythonReading[];

  /** Python up to 3.11 puts a blank between two encoded-words of a name, which RFC 2047 section 6.2 forbids. */
  function withoutNameBlanks(reading: Reading): Reading {
    const strip = (list: [string, string][]): [string, string][] =>
      list.map(([name, address]) => [/[^\x20-\x7e]|=\?/.test(name) ? name.replace(/\s/gu, '') : name, address]);
    const { from, reply_to, to, cc } = reading;
    return { ...reading, from: strip(from), reply_to: strip(reply_to), to: strip(to), cc: strip(cc) };
  }

  it.each(CASES.map(({ name, input }, index) => ({ name, input, index })))('reads $name', ({ input, index }) => {
    const mail = mails[index];
    const found = readings[index];
    if (mail === undefined || found === undefined) throw new Error('no reading');
    const { defects, message_id, references, ...reading } = found;
    expect(defects).toEqual([]);
    expect(message_id).toBe(`<${mail.rfc_message_id}>`);
    expect(references).toEqual(input.references.map((id) => `<${id}>`));
    const read = withoutNameBlanks({
      ...reading,
      text: normalizedBody(reading.text),
      html: normalizedBody(reading.html),
      attachments: sortAttachments(reading.attachments),
    });
    expect(read).toEqual(withoutNameBlanks(expectedReading(input, mail)));
  });
});
