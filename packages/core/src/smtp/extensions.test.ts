import { describe, expect, test } from 'vitest';
import { utf8 } from '../hash.ts';
import { type Extensions, parseExtensions } from './extensions.ts';
import { EMPTY_READER, readReply } from './reply.ts';

function extensions(text: string): Extensions {
  const step = readReply(EMPTY_READER, utf8(text));
  if (step.kind !== 'reply') throw new Error(step.kind);
  return parseExtensions(step.reply);
}

describe('case 14: answers to EHLO of old servers', () => {
  test.each([
    [
      'both AUTH and AUTH=',
      '250-mail.example.net\r\n250-SIZE 20480000\r\n250-AUTH PLAIN LOGIN\r\n250-AUTH=PLAIN LOGIN\r\n250-STARTTLS\r\n250 8BITMIME\r\n',
      { mechanisms: ['PLAIN', 'LOGIN'], starttls: true, size: 20_480_000 },
    ],
    [
      'small letters',
      '250-mail.example.net greets you\r\n250-size\r\n250-auth login  plain\r\n250-starttls\r\n250 help\r\n',
      { mechanisms: ['LOGIN', 'PLAIN'], starttls: true, size: 0 },
    ],
    [
      'odd lines, which are passed over',
      '250-mail.example.net\r\n250-X=Y;Z\r\n250-\r\n250-AUTH PLAIN XOAUTH2 \r\n250 ok\r\n',
      { mechanisms: ['PLAIN'], starttls: false, size: null },
    ],
  ])('%s', (_what, text, expected) => {
    expect(extensions(text)).toEqual({ dsn: false, ...expected });
  });
});

describe('an answer to EHLO', () => {
  const none = { mechanisms: [], starttls: false, size: null, dsn: false };

  test.each([
    ['of one line offers nothing', '250 STARTTLS\r\n', none],
    ['with AUTH and nothing behind it offers no login', '250-x\r\n250 AUTH\r\n', none],
    ['with AUTH= alone offers none either', '250-x\r\n250 AUTH=\r\n', none],
    ['with only the old keyword', '250-x\r\n250 Auth=Login\r\n', { ...none, mechanisms: ['LOGIN'] }],
    ['on two lines', '250-x\r\n250-AUTH LOGIN\r\n250 AUTH PLAIN\r\n', { ...none, mechanisms: ['LOGIN', 'PLAIN'] }],
    ['with a keyword that only begins alike', '250-x\r\n250-STARTTLSX\r\n250 SIZEX 5\r\n', none],
    ['with a keyword inside a word', '250-x\r\n250-X-STARTTLS\r\n250 XAUTH PLAIN\r\n', none],
    ['with reports', '250-x\r\n250 dsn\r\n', { ...none, dsn: true }],
    ['with a size that is no number', '250-x\r\n250 SIZE much\r\n', { ...none, size: 0 }],
    ['with a size of zero', '250-x\r\n250 SIZE 0\r\n', { ...none, size: 0 }],
    ['with blanks around', '250-x\r\n250-  STARTTLS  \r\n250 SIZE\t77 \r\n', { ...none, starttls: true, size: 77 }],
  ])('%s', (_what, text, expected) => {
    expect(extensions(text)).toEqual(expected);
  });
});
