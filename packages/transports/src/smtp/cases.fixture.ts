import type { RelayScript, ScriptStep } from '@pmail/testkit/smtp/script.ts';
import {
  ALL,
  AUTH,
  BODY,
  DATA,
  EHLO,
  GREETING,
  LOGGED_IN,
  MAIL,
  QUIT,
  RCPT,
  script,
  UP_TO_DATA,
} from './relay.fixture.ts';

/** What went wrong for others between a client and a relay, as scripts. The numbers are those of the reports. */

export const HEALTHY: RelayScript = script(...ALL);

/** 12: replies that are only a code. */
export const BARE_CODES: RelayScript = script(
  { expect: '^$connect', raw: '220-This server belongs to\r\n220-example.net\r\n220\r\n' },
  { expect: '^EHLO ', raw: '250-smtp.relay.example.net\r\n250-AUTH PLAIN\r\n250\r\n' },
  { expect: '^AUTH PLAIN ', raw: '235\r\n' },
  { expect: '^MAIL FROM:', raw: '250\r\n' },
  { expect: '^RCPT TO:', raw: '250 \r\n' },
  { expect: '^DATA$', raw: '354\r\n' },
  { expect: 'BODY', raw: '250\r\n' },
  { expect: '^QUIT$', raw: '221\r\n' },
);

/** 13: an enhanced code on each line of a reply; two recipients, the first `gone@example.net`. */
export const CODE_ON_EVERY_LINE: RelayScript = script(
  GREETING,
  EHLO,
  AUTH,
  MAIL,
  {
    expect: '^RCPT TO:<gone',
    raw: [
      '550-5.1.1 There is no such account. Please check',
      '550-5.1.1 the address for typing errors or',
      '550-5.1.1 extra blanks. See',
      '550 5.1.1 https://support.example.net/?p=NoUser k1s2.3 - gs',
      '',
    ].join('\r\n'),
  },
  { ...RCPT, expect: '^RCPT TO:<jo' },
  DATA,
  { expect: 'BODY', send: ['250 2.0.0 Ok'] },
);

/** 22: a reply cut inside a character and between CR and LF. */
export const CUT_CHARACTER: RelayScript = script(
  ...LOGGED_IN,
  MAIL,
  {
    expect: '^RCPT TO:',
    chunks: [
      'NTUwIDUuMS4xIDxqb0BleGFtcGxlLm5ldD46IGFkcmVzc2UgcmVmdXPD',
      'qWUsIGJvww==',
      'rnRlIGluY29ubnVlDQ==',
      'Cg==',
    ],
  },
  { expect: '^RSET$', send: ['250 Ok'] },
  QUIT,
);

/** 25: a permanent refusal of MAIL. */
export const MAIL_REFUSED: RelayScript = script(...LOGGED_IN, {
  expect: '^MAIL FROM:',
  send: ['550 5.1.7 invalid envelope sender'],
});

/** 3 (sends twice): a complete 4xx answer to the final dot, then the door. */
export const DOT_DEFERRED: RelayScript = script(
  ...UP_TO_DATA,
  { expect: 'BODY', send: ['451 4.4.2 Timeout waiting for data from client.'] },
  { close: true },
);

/** The same relay where one recipient is greylisted and another refused. */
export function mixed(...answers: string[]): RelayScript {
  const recipients: ScriptStep[] = answers.map((line) => ({ expect: '^RCPT TO:', send: [line] }));
  return script(...LOGGED_IN, MAIL, ...recipients, DATA, BODY, QUIT);
}
