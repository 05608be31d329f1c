import { describe, expect, test } from 'vitest';
import { fromBase64, utf8 } from '../hash.ts';
import { EMPTY_READER, type ReadStep, readReply, type SmtpReply } from './reply.ts';

/** Reads pieces one after the other, up to the first reply or fault. */
function read(...pieces: Uint8Array[]): ReadStep {
  let step: ReadStep = { kind: 'more', reader: EMPTY_READER };
  for (const piece of pieces) {
    if (step.kind !== 'more') throw new Error('it was done before');
    step = readReply(step.reader, piece);
  }
  return step;
}

function reply(...texts: string[]): SmtpReply {
  const step = read(...texts.map(utf8));
  if (step.kind !== 'reply') throw new Error(step.kind);
  return step.reply;
}

const latin1 = (text: string): Uint8Array => Uint8Array.from(text, (char) => char.charCodeAt(0));

describe('a reply', () => {
  test.each([
    ['one line', '250 2.1.0 Ok\r\n', '250', '2.1.0', 'Ok'],
    ['several lines', '250-first\r\n250-second\r\n250 third\r\n', '250', null, 'first second third'],
    ['nothing but codes', '250-\r\n250\r\n', '250', null, ''],
    ['a code and a blank', '250 \r\n', '250', null, ''],
    ['a code and no blank', '354\r\n', '354', null, ''],
    ['an enhanced code and no text', '550 5.1.1\r\n', '550', '5.1.1', ''],
    ['an enhanced code on its second line alone', '550-No\r\n550 5.1.1 such user\r\n', '550', '5.1.1', 'No such user'],
    ['an enhanced code of another class', '550 2.1.1 Well\r\n', '550', null, '2.1.1 Well'],
    ['what only looks like an enhanced code', '550 5.1.1234 x\r\n', '550', null, '5.1.1234 x'],
    ['a number that goes on', '550 5.1.1.2 x\r\n', '550', null, '5.1.1.2 x'],
    ['bare line feeds', '250-a\n250 b\n', '250', null, 'a b'],
    ['more than one CR', '250 a\r\r\n', '250', null, 'a'],
    ['control characters', '250 a\0b\tc\x1b[31md\x7f\r\n', '250', null, 'a b c [31md'],
    ['a CR inside', '250 a\rb\r\n', '250', null, 'a b'],
    ['a hyphen in its text', '250 -a\r\n', '250', null, '-a'],
    ['umlauts', '550 5.1.1 unbekannter Empfänger\r\n', '550', '5.1.1', 'unbekannter Empfänger'],
  ])('with %s', (_what, text, code, enhanced, said) => {
    expect(reply(text)).toMatchObject({ code, enhanced, text: said });
    expect(reply(...Array.from(text))).toEqual(reply(text));
  });

  test('that is not UTF-8 is read as Latin-1, not lost', () => {
    const step = read(latin1('550 boîte inconnue\r\n'));
    expect(step).toMatchObject({ kind: 'reply', reply: { text: 'boîte inconnue' } });
  });

  test('keeps its lines as they came', () => {
    expect(reply('250-mail.example.net\r\n250 SIZE 1\r\n').lines).toEqual(['mail.example.net', 'SIZE 1']);
  });

  test('ends where it ends: what follows is left', () => {
    const bytes = utf8('250 a\r\n250 b\r\n');
    const step = readReply(EMPTY_READER, bytes);
    expect(step).toMatchObject({ kind: 'reply', used: 7 });
    expect(readReply(EMPTY_READER, bytes, 7)).toMatchObject({ kind: 'reply', reply: { text: 'b' }, used: 14 });
  });

  test('waits for its end', () => {
    for (const part of ['', '2', '250', '250-', '250 ok', '250 ok\r', '250-ok\r\n', '250-ok\r\n250']) {
      expect(read(utf8(part)).kind).toBe('more');
    }
  });
});

describe('what is no reply', () => {
  test.each([
    ['an empty line', '\r\n'],
    ['words', 'Hello\r\n'],
    ['two digits', '25 ok\r\n'],
    ['four digits', '2500 ok\r\n'],
    ['a code of a class that is none', '650 ok\r\n'],
    ['a code of zeros', '050 ok\r\n'],
    ['a blank before the code', ' 250 ok\r\n'],
    ['another separator', '250_ok\r\n'],
    ['a tab', '250\tok\r\n'],
    ['two codes', '250-ok\r\n251 ok\r\n'],
    ['an empty line inside', '250-ok\r\n\r\n250 ok\r\n'],
    ['digits of another script', '２５０ ok\r\n'],
  ])('is seen by its first wrong line: %s', (_what, text) => {
    expect(read(utf8(text))).toEqual({ kind: 'fault', fault: 'malformed' });
  });
});

describe('the bounds', () => {
  const line = (length: number): string => `250 ${'x'.repeat(length - 4)}`;

  test.each([
    ['a line of 4,096 bytes', `${line(4_096)}\r\n`, 'reply'],
    ['a line of 4,096 bytes and a bare LF', `${line(4_096)}\n`, 'reply'],
    ['a line of 4,097 bytes', `${line(4_097)}\r\n`, 'fault'],
    ['4,096 bytes and a CR, no end yet', `${line(4_096)}\r`, 'more'],
    ['4,098 bytes, no end yet', line(4_098), 'fault'],
    ['128 lines', `${'250-x\r\n'.repeat(127)}250 x\r\n`, 'reply'],
    ['128 lines that go on', '250-x\r\n'.repeat(128), 'fault'],
  ])('hold for %s', (_what, text, kind) => {
    expect(read(utf8(text)).kind).toBe(kind);
    const bytes = utf8(text);
    let step: ReadStep = { kind: 'more', reader: EMPTY_READER };
    for (let at = 0; at < bytes.length && step.kind === 'more'; at++) {
      step = readReply(step.reader, bytes.subarray(at, at + 1));
    }
    expect(step.kind).toBe(kind);
  });

  test('count bytes, not characters', () => {
    expect(read(utf8(`250 ${'é'.repeat(2_046)}\r\n`)).kind).toBe('reply');
    expect(read(utf8(`250 ${'é'.repeat(2_047)}\r\n`))).toEqual({ kind: 'fault', fault: 'line_too_long' });
  });

  test('are named apart', () => {
    expect(read(utf8('x'.repeat(5_000)))).toEqual({ kind: 'fault', fault: 'line_too_long' });
    expect(read(utf8('250-\r\n'.repeat(200)))).toEqual({ kind: 'fault', fault: 'too_many_lines' });
  });
});

test('case 22: a character cut in two, and a cut between CR and LF', () => {
  const chunks = [
    'NTUwIDUuMS4xIDxqb0BleGFtcGxlLm5ldD46IGFkcmVzc2UgcmVmdXPD',
    'qWUsIGJvww==',
    'rnRlIGluY29ubnVlDQ==',
    'Cg==',
  ];
  const step = read(...chunks.map((chunk) => fromBase64(chunk) ?? new Uint8Array()));
  expect(step).toMatchObject({
    kind: 'reply',
    reply: { code: '550', enhanced: '5.1.1', text: '<jo@example.net>: adresse refusée, boîte inconnue' },
  });
  expect(JSON.stringify(step)).not.toContain('\ufffd');
});
