import { unstuffed } from '@pmail/testkit/smtp/script.ts';
import { describe, expect, test } from 'vitest';
import {
  ALL,
  AUTH,
  BODY,
  DATA,
  DESK,
  EHLO,
  ENVELOPE,
  GREETING,
  HOST,
  JO,
  KIM,
  LEE,
  LOGGED_IN,
  letter,
  MAIL,
  QUIT,
  RCPT,
  RFC_ID,
  RSET,
  rig,
  STARTTLS,
  script,
  UP_TO_DATA,
  UP_TO_TLS,
} from './relay.fixture.ts';

/** Every row of the exchange with a relay, played against a relay in virtual time. */

const EHLO_LINE = 'EHLO api.pmail.test';
const AUTH_LINE = `AUTH PLAIN ${btoa('\0acme-desk\0correct horse')}`;
const MAIL_LINE = `MAIL FROM:<${DESK}> SIZE=${letter().mime.length}`;
const rcpt = (address: string): string => `RCPT TO:<${address}>`;
const toAll = letter({ to: [JO], cc: [KIM], bcc: [LEE] });

describe('a message that everyone takes', () => {
  test('on port 465: one command after the other, and the stored bytes', async () => {
    const { send, lines, relay } = rig([script(...ALL)]);
    expect(await send()).toEqual({
      kind: 'accepted',
      provider_message_id: `smtp:${HOST}:${RFC_ID}`,
      rfc_message_id: RFC_ID,
      refused: [],
      deferred: [],
      scheduled: [],
      copies: [],
    });
    expect(lines()).toEqual([EHLO_LINE, AUTH_LINE, MAIL_LINE, rcpt(JO), 'DATA', 'QUIT']);
    const [session] = relay.sessions;
    expect(session?.player.bodies.map((body) => new Uint8Array(unstuffed(body)))).toEqual([letter().mime]);
    expect([session?.plain, session?.closed, relay.open_now]).toEqual(['', true, 0]);
  });

  test('on port 587: nothing but EHLO and STARTTLS before the handshake, and EHLO again behind it', async () => {
    const ehlo = { expect: '^EHLO ', send: [`250-${HOST}`, '250 AUTH LOGIN PLAIN'] };
    const steps = [...UP_TO_TLS, STARTTLS, ehlo, ...ALL.slice(2)];
    const { send, lines, relay } = rig([script(...steps)]);
    expect(await send()).toMatchObject({ kind: 'accepted' });
    expect(relay.sessions[0]?.plain).toBe(`${EHLO_LINE}\r\nSTARTTLS\r\n`);
    // What the server said before the handshake counts no more: it offers no SIZE now.
    expect(lines().slice(2)).toEqual([EHLO_LINE, AUTH_LINE, `MAIL FROM:<${DESK}>`, rcpt(JO), 'DATA', 'QUIT']);
  });

  test('goes to each in to, cc and bcc, in one transaction', async () => {
    const { send, lines } = rig([script(...LOGGED_IN, MAIL, RCPT, RCPT, RCPT, DATA, BODY, QUIT)]);
    expect(await send(toAll)).toMatchObject({ kind: 'accepted', refused: [], deferred: [] });
    expect(lines().filter((line) => line.startsWith('RCPT'))).toEqual([JO, KIM, LEE].map(rcpt));
  });

  test.each(['251 2.1.5 Will forward', '252 2.1.5 Will try'])('also when RCPT is answered %s', async (line) => {
    const { send } = rig([script(...LOGGED_IN, MAIL, { ...RCPT, send: [line] }, DATA, BODY, QUIT)]);
    expect(await send()).toMatchObject({ kind: 'accepted' });
  });

  test('also when another positive answer than 250 follows the final dot', async () => {
    const { send } = rig([script(...UP_TO_DATA, { ...BODY, send: ['252 2.0.0 Accepted'] }, QUIT)]);
    expect(await send()).toMatchObject({ kind: 'accepted' });
  });

  test.each([
    ['is refused', { ...QUIT, send: ['500 What?'] }],
    ['is never answered', { expect: '^QUIT$' }],
    ['is answered with nonsense', { expect: '^QUIT$', raw: 'bye\r\n' }],
    ['meets a closed door', { close: true }],
    ['meets a broken line', { reset: true }],
  ])('whatever becomes of QUIT: it %s', async (_what, end) => {
    const { send, relay } = rig([script(...UP_TO_DATA, BODY, end)]);
    expect(await send()).toMatchObject({ kind: 'accepted' });
    expect(relay.clock.now()).toBeLessThanOrEqual(1_000);
    expect(relay.open_now).toBe(0);
  });
});

describe('a relay that takes an envelope id (R6)', () => {
  const EHLO_DSN = { ...EHLO, send: [`250-${HOST}`, '250-dsn', '250 AUTH PLAIN'] };

  test('gets it, so that reports of a bounce can name it', async () => {
    const { send, lines } = rig([script(GREETING, EHLO_DSN, AUTH, MAIL, RCPT, DATA, BODY, QUIT)]);
    expect(await send()).toMatchObject({ kind: 'accepted' });
    expect(lines()).toContain(`MAIL FROM:<${DESK}> RET=HDRS ENVID=${ENVELOPE}`);
  });

  test('gets the message without it when there is none to be had', async () => {
    const { send, lines } = rig([script(GREETING, EHLO_DSN, AUTH, MAIL, RCPT, DATA, BODY, QUIT)], {
      envelopeIdOf: () => Promise.reject(new Error('no key')),
    });
    expect(await send()).toMatchObject({ kind: 'accepted' });
    expect(lines()).toContain(`MAIL FROM:<${DESK}>`);
  });
});

describe('a refusal for good (5xx)', () => {
  const everyone = [JO, KIM, LEE];

  test.each([
    ['MAIL', [...LOGGED_IN], '^MAIL', '550 5.7.1 Not from there'],
    ['DATA', [...LOGGED_IN, MAIL, RCPT, RCPT, RCPT], '^DATA$', '554 5.5.1 No'],
    ['the final dot', [...LOGGED_IN, MAIL, RCPT, RCPT, RCPT, DATA], 'BODY', '554 5.7.1 Spam'],
  ])('of %s rejects the message for everyone, with the reply', async (_what, steps, expected, line) => {
    const { send, lines, checks } = rig([script(...steps, { expect: expected, send: [line] }, QUIT)]);
    const [code = '', enhanced = ''] = line.split(' ');
    const detail = line.slice(code.length + enhanced.length + 2);
    expect(await send(toAll)).toEqual({
      kind: 'rejected',
      reason: 'provider_validation',
      code,
      detail: line,
      refused: everyone.map((address) => ({ address, smtp_code: code, enhanced_code: enhanced, detail })),
    });
    expect(lines().at(-1)).toBe('QUIT');
    expect(checks).toEqual([]);
  });

  test('of one recipient keeps its reply, and the others get the message (T4)', async () => {
    const refusal = { expect: `^RCPT TO:<${KIM}>`, send: ['550 5.1.1 No such user'] };
    const { send, lines } = rig([script(...LOGGED_IN, MAIL, RCPT, refusal, RCPT, DATA, BODY, QUIT)]);
    expect(await send(toAll)).toMatchObject({
      kind: 'accepted',
      refused: [{ address: KIM, smtp_code: '550', enhanced_code: '5.1.1', detail: 'No such user' }],
      deferred: [],
    });
    expect(lines()).toContain(rcpt(LEE));
  });

  test('of every recipient rejects the message, without DATA', async () => {
    const no = (text: string) => ({ expect: '^RCPT TO:', send: [text] });
    const { send, lines } = rig([
      script(...LOGGED_IN, MAIL, no('550 5.1.1 One'), no('553'), no('550 Three'), RSET, QUIT),
    ]);
    expect(await send(toAll)).toEqual({
      kind: 'rejected',
      reason: 'provider_validation',
      code: '550',
      detail: '550 5.1.1 One',
      refused: [
        { address: JO, smtp_code: '550', enhanced_code: '5.1.1', detail: 'One' },
        { address: KIM, smtp_code: '553', enhanced_code: null, detail: '553' },
        { address: LEE, smtp_code: '550', enhanced_code: null, detail: 'Three' },
      ],
    });
    expect(lines().slice(-2)).toEqual(['RSET', 'QUIT']);
  });

  test('of the final dot leaves those refused before with their own replies', async () => {
    const refusal = { expect: `^RCPT TO:<${JO}>`, send: ['550 5.1.1 No such user'] };
    const wait = { expect: `^RCPT TO:<${KIM}>`, send: ['450 4.2.0 Greylisted'] };
    const { send } = rig([
      script(...LOGGED_IN, MAIL, refusal, wait, RCPT, DATA, { expect: 'BODY', send: ['552 5.3.4 Too big'] }, QUIT),
    ]);
    expect(await send(toAll)).toMatchObject({
      kind: 'rejected',
      code: '552',
      refused: [
        { address: JO, smtp_code: '550', enhanced_code: '5.1.1' },
        { address: KIM, smtp_code: '552', enhanced_code: '5.3.4' },
        { address: LEE, smtp_code: '552', enhanced_code: '5.3.4' },
      ],
    });
  });
});

describe('a refusal for now (4xx)', () => {
  test.each([
    ['EHLO', [GREETING], '^EHLO ', '450 4.3.2 Busy'],
    ['AUTH', LOGGED_IN.slice(0, 2), '^AUTH ', '454 4.7.0 Temporary'],
    ['MAIL', LOGGED_IN, '^MAIL', '451 4.3.0 Later'],
    ['DATA', [...LOGGED_IN, MAIL, RCPT], '^DATA$', '451 4.3.0 Later'],
    ['the final dot', UP_TO_DATA, 'BODY', '451 4.4.2 Timeout'],
  ])('of %s puts the message off (T1)', async (what, steps, expected, line) => {
    const { send, lines } = rig([script(...steps, { expect: expected, send: [line] }, QUIT)]);
    const result = await send();
    expect(result).toMatchObject({ kind: 'retry_later', class: 'relay', code: line.slice(0, 3), refused: [] });
    if (result.kind === 'retry_later' && what !== 'AUTH') expect(result.detail).toBe(line);
    expect(lines().at(-1)).toBe('QUIT');
  });

  test.each(['554 5.3.2 No service', '450 Later'])('of the connection (%s) puts the message off', async (line) => {
    const { send, lines } = rig([script({ ...GREETING, send: [line] }, QUIT)]);
    expect(await send()).toMatchObject({ kind: 'retry_later', code: line.slice(0, 3), detail: line });
    expect(lines()).toEqual(['QUIT']);
  });

  test('EHLO refused for good puts the message off too: no older greeting is tried', async () => {
    const { send, lines } = rig([script(GREETING, { expect: '^EHLO ', send: ['502 5.5.1 Unknown'] }, QUIT)]);
    expect(await send()).toMatchObject({ kind: 'retry_later', code: '502' });
    expect(lines()).toEqual([EHLO_LINE, 'QUIT']);
  });

  test('of one recipient defers that one, and the others get the message (T4)', async () => {
    const grey = { expect: `^RCPT TO:<${KIM}>`, send: ['451 4.7.1 Greylisted'] };
    const { send } = rig([script(...LOGGED_IN, MAIL, RCPT, grey, RCPT, DATA, BODY, QUIT)]);
    expect(await send(toAll)).toMatchObject({ kind: 'accepted', refused: [], deferred: [KIM] });
  });

  test('of every recipient: no DATA, RSET, QUIT', async () => {
    const grey = { expect: '^RCPT TO:', send: ['451 4.7.1 Greylisted'] };
    const { send, lines } = rig([script(...LOGGED_IN, MAIL, grey, grey, grey, RSET, QUIT)]);
    expect(await send(toAll)).toMatchObject({ kind: 'retry_later', code: '451', detail: '451 4.7.1 Greylisted' });
    expect(lines().slice(-3)).toEqual([rcpt(LEE), 'RSET', 'QUIT']);
  });

  test('of some, the others refused for good: tried again for those alone', async () => {
    const grey = { expect: '^RCPT TO:', send: ['451 4.7.1 Greylisted'] };
    const no = { expect: '^RCPT TO:', send: ['550 5.1.1 No'] };
    const { send, lines } = rig([script(...LOGGED_IN, MAIL, no, grey, no, RSET, QUIT)]);
    expect(await send(toAll)).toMatchObject({
      kind: 'retry_later',
      code: '451',
      refused: [{ address: JO }, { address: LEE }],
    });
    expect(lines()).not.toContain('DATA');
  });

  test('of the final dot keeps the refusals of recipients', async () => {
    const no = { expect: '^RCPT TO:', send: ['550 5.1.1 No'] };
    const later = { expect: 'BODY', send: ['452 4.3.1 Full'] };
    const { send } = rig([script(...LOGGED_IN, MAIL, no, RCPT, RCPT, DATA, later, QUIT)]);
    expect(await send(toAll)).toMatchObject({ kind: 'retry_later', code: '452', refused: [{ address: JO }] });
  });
});

describe('no TLS, no login (N16)', () => {
  const bare = { expect: '^EHLO ', send: [`250-${HOST}`, '250-AUTH PLAIN LOGIN', '250 SIZE 1000'] };
  const unsecured = { ...script(GREETING, bare, QUIT), relay: { ...script().relay, port: 587 } };
  const refused = script(...UP_TO_TLS, { expect: '^STARTTLS$', send: ['502 5.5.1 No'] }, QUIT);

  test.each([
    ['does not offer STARTTLS', unsecured, 'smtp_tls_required', [EHLO_LINE, 'QUIT']],
    ['refuses STARTTLS for good', refused, '502', [EHLO_LINE, 'STARTTLS', 'QUIT']],
  ] as const)(
    'a relay on 587 that %s: rejected, checked, and nothing secret was sent',
    async (_what, play, code, said) => {
      const { send, lines, relay, checks } = rig([play]);
      expect(await send()).toMatchObject({ kind: 'rejected', reason: 'sender_domain_unavailable', code, refused: [] });
      expect(lines()).toEqual(said);
      expect(relay.sessions[0]?.plain).not.toMatch(/AUTH|MAIL/);
      expect(checks).toEqual([{ domain: 'acme.example.com', issue: 'smtp_tls_required' }]);
    },
  );

  test('a relay that refuses STARTTLS for now is tried again', async () => {
    const { send, checks } = rig([script(...UP_TO_TLS, { expect: '^STARTTLS$', send: ['454 4.7.0 Later'] }, QUIT)]);
    expect(await send()).toMatchObject({ kind: 'retry_later', code: '454' });
    expect(checks).toEqual([]);
  });

  test('a handshake that fails is tried again later (T1)', async () => {
    const broken = { expect: '^STARTTLS$', send: ['220 2.0.0 Ready'], broken_tls: true };
    const other = { expect: '^STARTTLS$', send: ['220 2.0.0 Ready'], tls: 'other.example.net' };
    for (const step of [broken, other]) {
      const { send, relay } = rig([script(...UP_TO_TLS, step)]);
      expect(await send()).toMatchObject({ kind: 'retry_later', code: 'smtp_tls_failed' });
      expect(relay.sessions[0]?.secure).toBe('');
      expect(relay.open_now).toBe(0);
    }
  });
});
