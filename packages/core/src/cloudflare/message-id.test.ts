import { describe, expect, test } from 'vitest';
import { parseAddress } from '../address/address.ts';
import { derivedMessageId, journalAddress, learnableId, readJournal } from './message-id.ts';

const MESSAGE = 'msg_01JD9Q3V7M8X2C4N6B5K1R0E9T';
const IDENTITY = 'idn_01JD9Q3V7M8X2C4N6B5K1R0E9S';
const JOURNAL = 'journal+01jd9q3v7m8x2c4n6b5k1r0e9t.01jd9q3v7m8x2c4n6b5k1r0e9s@agents.example';

describe('a journal address', () => {
  test('names message and mailbox, and is an address like any other', () => {
    expect(journalAddress(MESSAGE, IDENTITY, 'agents.example')).toBe(JOURNAL);
    expect(JOURNAL.indexOf('@')).toBe(61);
    expect(parseAddress(JOURNAL)).toEqual({ ok: true, address: JOURNAL });
    expect(readJournal(JOURNAL)).toEqual({ message_id: MESSAGE, identity_id: IDENTITY });
    expect(readJournal(JOURNAL.toUpperCase())).toEqual({ message_id: MESSAGE, identity_id: IDENTITY });
  });

  test.each([
    'journal@agents.example',
    'journal+@agents.example',
    'journal+01jd9q3v7m8x2c4n6b5k1r0e9t@agents.example',
    'journal+01jd9q3v7m8x2c4n6b5k1r0e9t.01jd9q3v7m8x2c4n6b5k1r0e9s.x@agents.example',
    'journal+01jd9q3v7m8x2c4n6b5k1r0e9.01jd9q3v7m8x2c4n6b5k1r0e9s@agents.example',
    'journal+01jd9q3v7m8x2c4n6b5k1r0e9u.01jd9q3v7m8x2c4n6b5k1r0e9s@agents.example',
    'journals+01jd9q3v7m8x2c4n6b5k1r0e9t.01jd9q3v7m8x2c4n6b5k1r0e9s@agents.example',
    'desk@agents.example',
  ])('is not %s', (address) => {
    expect(readJournal(address)).toBeUndefined();
  });
});

describe("the id in the provider's answer", () => {
  test.each([
    '0101019ab3c4-msg-4471',
    '',
    '7c1e@mx.cf.example',
    '<7c1e>',
    '<a@b@c.example>',
    '<@mx.example>',
    '<a b@c.example>',
  ])('gives no Message-ID: %j (case 38)', (id) => {
    expect(derivedMessageId(id)).toBeNull();
  });

  test('is one where it has the form', () => {
    expect(derivedMessageId('<7c1E@MX.cf.example>')).toBe('7c1E@mx.cf.example');
  });
});

describe('an id that can be learned', () => {
  test.each([
    ['<7c1e@mx.cf.example>', null],
    [' <7c1e@mx.cf.example> ', 'mx.cf.example'],
    ['7c1e@MX.CF.example', 'cf.example'],
  ])('%j from %j', (header, domain) => {
    expect(learnableId(header, domain)).toBe('7c1e@mx.cf.example');
  });

  test.each([
    ['<7c1e@mx.cf.example>', 'example.net'],
    ['<7c1e@evilcf.example>', 'cf.example'],
    ['<7c1e>', null],
    ['<@mx.cf.example>', null],
    ['<7c1e@localhost>', null],
    ['<7c1e@mx_cf.example>', null],
    ['', null],
  ])('is not %j from %j', (header, domain) => {
    expect(learnableId(header, domain)).toBeNull();
  });
});
