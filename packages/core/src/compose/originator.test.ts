import { describe, expect, test } from 'vitest';
import { utf8 } from '../hash.ts';
import { messageIdOf, rewriteOriginator } from './originator.ts';

const BODY =
  'Subject: From: not this one\r\nMessage-ID: <01jd@acme.example.com>\r\n\r\nFrom: nor this\r\n\r\nReply-To: nor this\r\n';
const PLATFORM = 'desk.acme@agents.example';
const TOKEN = 'desk.acme+t01.abcdefgh@agents.example';

function rewritten(head: string, replyTo: string | null = TOKEN): string {
  return new TextDecoder().decode(rewriteOriginator(utf8(`${head}${BODY}`), PLATFORM, replyTo));
}

describe('whom a message is from', () => {
  test.each([
    ['a name', 'From: Desk <desk@acme.example.com>\r\n', 'From: Desk <desk.acme@agents.example>\r\n'],
    ['no name', 'From: desk@acme.example.com\r\n', 'From: desk.acme@agents.example\r\n'],
    ['brackets alone', 'From: <"a b"@acme.example.com>\r\n', 'From: desk.acme@agents.example\r\n'],
    [
      'a quoted name with brackets in it',
      'From: "Desk <x@y.example>, Acme" <desk@acme.example.com>\r\n',
      'From: "Desk <x@y.example>, Acme" <desk.acme@agents.example>\r\n',
    ],
    [
      'a folded name',
      'From: =?UTF-8?Q?D=C3=A9sk?=\r\n =?UTF-8?Q?_Acme?= <desk@acme.example.com>\r\n',
      'From: =?UTF-8?Q?D=C3=A9sk?=\r\n =?UTF-8?Q?_Acme?= <desk.acme@agents.example>\r\n',
    ],
  ])('changes with %s', (_what, before, after) => {
    expect(rewritten(before, null)).toBe(`${after}${BODY}`);
  });

  test('folds the address where it would make a long line', () => {
    const name = 'N'.repeat(60);
    expect(rewritten(`From: ${name} <a@b.example>\r\n`)).toBe(
      `From: ${name}\r\n <desk.acme@agents.example>\r\nReply-To: ${name}\r\n <${TOKEN}>\r\n${BODY}`,
    );
  });

  test('takes Reply-To along, with the same name, and leaves it out when there is none', () => {
    const head = 'From: Desk <desk@acme.example.com>\r\nReply-To: Desk\r\n <desk+t01.abcdefgh@acme.example.com>\r\n';
    const from = 'From: Desk <desk.acme@agents.example>\r\n';
    expect(rewritten(head)).toBe(`${from}Reply-To: Desk <${TOKEN}>\r\n${BODY}`);
    expect(rewritten(head, null)).toBe(`${from}${BODY}`);
  });

  test('done twice is done once', () => {
    const once = rewriteOriginator(utf8(`From: Desk <desk@acme.example.com>\r\n${BODY}`), PLATFORM, TOKEN);
    expect(rewriteOriginator(once, PLATFORM, TOKEN)).toEqual(once);
  });

  test('leaves the body as it is, whatever its bytes', () => {
    const body = Uint8Array.from({ length: 512 }, (_, index) => index % 256);
    const head = utf8('From: a@b.example\r\n\r\n');
    const out = rewriteOriginator(Uint8Array.from([...head, ...body]), PLATFORM, null);
    expect(out.slice(-body.length)).toEqual(body);
  });

  test('cannot change in what we have not composed', () => {
    expect(() => rewriteOriginator(utf8('Subject: x\r\n\r\n'), PLATFORM, null)).toThrow();
  });
});

test('the Message-ID of a message is that of its header', () => {
  expect(messageIdOf(utf8(`From: a@b.example\r\n${BODY}`))).toBe('01jd@acme.example.com');
  expect(messageIdOf(utf8('From: a@b.example\r\n\r\nMessage-ID: <x@y.example>\r\n'))).toBeNull();
  expect(messageIdOf(new Uint8Array(0))).toBeNull();
});
