import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { arrive } from './inbound.fixture.ts';
import { KIM, MailboxRig } from './mailbox.fixture.ts';

let rig: MailboxRig;

beforeEach(() => {
  rig = new MailboxRig();
});

function find(q: string): string[] {
  return rig.engine.listMessages({ q }, 100, null, false).items.map(({ subject }) => subject ?? '');
}

describe('a search', () => {
  beforeEach(async () => {
    await rig.send({
      body: {
        to: [{ address: KIM, name: 'Kim Lindqvist' }],
        subject: 'Faktura 88213',
        text: 'Der Zug fährt um 9:30 nach Zürich.',
        attachments: [{ filename: 'Rechnung-Mai.pdf', content_type: 'application/pdf', content_base64: '' }],
      },
    });
    await arrive(rig, { parsed: { subject: 'Opening hours', text: 'When do you open? "Now", he said: AND why NOT.' } });
  });

  test.each([
    ['the subject', 'faktura', ['Faktura 88213']],
    ['the body', 'zug', ['Faktura 88213']],
    ['another case', 'ZÜRICH', ['Faktura 88213']],
    ['letters without their marks', 'zurich', ['Faktura 88213']],
    ['people', 'lindqvist', ['Faktura 88213']],
    ['addresses', 'kim@example.net', ['Faktura 88213']],
    ['the sender', 'jo@example.net', ['Opening hours']],
    ['file names', 'rechnung', ['Faktura 88213']],
    ['every word', 'faktura open', []],
    ['words in any order', 'hours opening', ['Opening hours']],
    ['what looks like syntax', 'AND NOT', ['Opening hours']],
    ['a quoted word', '"now"', ['Opening hours']],
    ['a column name', 'subject:faktura', []],
    ['a prefix sign', 'fakt*', []],
    ['nothing', '   ', []],
    ['nothing but signs', '* " ( ) - :', []],
  ])('finds by %s', (_what, q, subjects) => {
    expect(find(q)).toEqual(subjects);
  });

  test('and every other filter hold together', () => {
    expect(rig.engine.listMessages({ q: 'faktura', direction: 'inbound' }, 10, null, false).items).toEqual([]);
  });
});

test('no text that a user may type makes the search fail', async () => {
  await rig.send({ body: { subject: 'a b c', text: 'NEAR AND OR NOT "x" {y} ^z' } });
  const syntax = fc.constantFrom(
    ...['"', "'", '*', '(', ')', '{', '}', '^', '+', '-', ':', ',', '.', '\\', '\0', '\n', '\u00a0', '\u200b'],
    ...['AND', 'OR', 'NOT', 'NEAR(', 'NEAR', 'subject', 'fts', 'a', ' ', '語', '\ud800', '\ufeff', '½', '𝟘'],
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: syntax, maxLength: 40 }),
        fc.string({ unit: 'binary', maxLength: 60 }),
        fc.string({ unit: 'grapheme', maxLength: 60 }),
      ),
      (q) => {
        expect(() => find(q)).not.toThrow();
      },
    ),
    { numRuns: 2_000 },
  );
});

test.each([
  ['many words', 'word '.repeat(5_000)],
  ['one long word', 'x'.repeat(100_000)],
  ['many quotes', '"a '.repeat(5_000)],
  ['a word that ends in nothing', 'abc\0def'],
])('%s make no search fail', async (_what, q) => {
  await rig.send();
  expect(() => find(q)).not.toThrow();
});

test('mail of any length is indexed', async () => {
  await rig.send({ body: { subject: 'Long', text: `${'word '.repeat(100_000)} needle` } });
  await rig.send({ body: { subject: 'Short', text: 'needle' } });
  // The end of a very long mail is not searched.
  expect(find('needle')).toEqual(['Short']);
  expect(find('word')).toEqual(['Long']);
});
