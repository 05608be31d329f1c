import type { ScriptStep } from '@pmail/testkit/smtp/script.ts';
import { describe, expect, test } from 'vitest';
import {
  ALL,
  AUTH,
  BODY,
  DATA,
  EHLO,
  GREETING,
  HOST,
  JO,
  KIM,
  LOGGED_IN,
  letter,
  MAIL,
  MINUTE,
  QUIT,
  RCPT,
  rig,
  STARTTLS,
  script,
  UP_TO_DATA,
  UP_TO_TLS,
} from './relay.fixture.ts';

/** Relays that go away, hang or talk out of turn, at every point of the exchange. */

/** The exchange up to an answer, and what the client has said by then. */
const POINTS: [string, ScriptStep[], string][] = [
  ['the greeting', [], '^$connect'],
  ['the answer to EHLO', [GREETING], '^EHLO '],
  ['the answer to AUTH', [GREETING, EHLO], '^AUTH '],
  ['the answer to MAIL', LOGGED_IN, '^MAIL'],
  ['the answer to RCPT', [...LOGGED_IN, MAIL], '^RCPT'],
  ['the answer to DATA', [...LOGGED_IN, MAIL, RCPT], '^DATA$'],
  ['the answer to the message', UP_TO_DATA, 'BODY'],
];

const BROKEN: [string, ScriptStep][] = [
  ['it closes', { close: true }],
  ['the line breaks', { reset: true }],
  ['it says nothing', {}],
  ['it says half a line and closes', { raw: '250 2.0.0 O', close: true }],
  ['it says half a reply and closes', { raw: '250-2.0.0 Ok\r\n', close: true }],
  ['it says half a reply and nothing more', { raw: '250-2.0.0 Ok\r\n' }],
  ['it goes (421)', { send: ['421 4.3.2 Shutting down'], close: true }],
  ['it says 421 on several lines', { raw: '421-4.3.2 Shutting\r\n421 4.3.2 down\r\n' }],
  ['it talks nonsense', { send: ['HTTP/1.1 400 Bad Request'] }],
  ['it says nothing in words', { raw: '\r\n' }],
  ['it changes its code', { raw: '250-Ok\r\n550 No\r\n' }],
  ['it answers with a code that is none', { send: ['600 Ok'] }],
  ['it answers with 1xx', { send: ['150 Wait'] }],
  ['it answers with 3xx', { send: ['399 Go on'] }],
];

describe.each(POINTS)('instead of %s', (_point, before, expected) => {
  test.each(BROKEN)('%s (T1, T2, T3)', async (what, step) => {
    const { send, relay, checks } = rig([script(...before, { expect: expected, ...step })]);
    const result = await send();
    if (expected === 'BODY') {
      const timeout = /nothing( more)?$/.test(what);
      expect(result).toMatchObject({
        kind: 'unknown',
        reason: timeout ? 'transport_timeout' : 'transport_connection_lost',
      });
    } else {
      expect(result).toMatchObject({ kind: 'retry_later', class: 'relay', refused: [] });
    }
    // No farewell to somebody who does not listen, and no message to check the domain for.
    expect(relay.sessions[0]?.player.lines).not.toContain('QUIT');
    expect(relay.sessions[0]?.closed).toBe(true);
    expect(relay.open_now).toBe(0);
    expect(checks).toEqual([]);
  });
});

describe('time', () => {
  test.each([
    ['the greeting', 30_000],
    ['the answer to EHLO', 30_000],
    ['the answer to MAIL', 30_000],
    ['the answer to the message', 60_000],
  ])('for %s is over when the design says', async (what, ms) => {
    const [, before, expected] = POINTS.find(([point]) => point === what) ?? ['', [], ''];
    const { send, relay } = rig([script(...before, { expect: expected, silent_s: 600 })]);
    const result = await send();
    expect(relay.clock.now()).toBe(ms);
    expect(result.kind).toBe(expected === 'BODY' ? 'unknown' : 'retry_later');
    if (result.kind === 'retry_later') expect(result.code).toBe('smtp_timeout');
  });

  test('for a connection that never stands is ten seconds', async () => {
    const { send, relay } = rig(['hangs']);
    expect(await send()).toMatchObject({ kind: 'retry_later', code: 'smtp_timeout' });
    expect(relay.clock.now()).toBeGreaterThanOrEqual(10_000);
  });

  test('for it over, the connection is given up, and holds its place no longer', async () => {
    const { relay } = rig(['hangs']);
    let givenUp: number | null = null;
    const { send } = rig([], {
      clock: relay.clock,
      open: (target, unwanted) => {
        unwanted.addEventListener('abort', () => {
          givenUp = relay.clock.now();
        });
        return relay.open(target);
      },
    });
    await send();
    expect(givenUp).toBe(10_000);
  });

  test('goes on while an answer drips: the whole answer must come in time', async () => {
    const drips = Array.from({ length: 40 }, () => ({ silent_s: 1, raw: '2' }));
    const { send, relay } = rig([script(...LOGGED_IN, { expect: '^MAIL' }, ...drips)]);
    expect(await send()).toMatchObject({ kind: 'retry_later', code: 'smtp_timeout' });
    expect(relay.clock.now()).toBe(30_000);
  });

  test('for the whole exchange is four minutes, however fast each answer is', async () => {
    const slow = { expect: '^RCPT TO:', silent_s: 29, send: ['250 Ok'] };
    const to = Array.from({ length: 12 }, (_, n) => `p${n}@example.net`);
    const { send, relay } = rig([script(...LOGGED_IN, MAIL, ...to.map(() => slow), DATA, BODY, QUIT)]);
    expect(await send(letter({ to }))).toMatchObject({ kind: 'retry_later', code: 'smtp_timeout' });
    expect(relay.clock.now()).toBe(4 * MINUTE);
  });

  test('for the whole exchange over behind the final dot: unknown', async () => {
    const slow = { ...RCPT, silent_s: 28 };
    const to = Array.from({ length: 8 }, (_, n) => `p${n}@example.net`);
    const { send, relay } = rig([
      script(...LOGGED_IN, MAIL, ...to.map(() => slow), DATA, { expect: 'BODY', silent_s: 59, send: ['250 Ok'] }),
    ]);
    expect(await send(letter({ to }))).toMatchObject({ kind: 'unknown', reason: 'transport_timeout' });
    expect(relay.clock.now()).toBe(4 * MINUTE);
  });

  test('for a connection refused is none', async () => {
    const { send, relay } = rig(['refuses']);
    expect(await send()).toMatchObject({ kind: 'retry_later', code: 'smtp_connect_failed' });
    expect(relay.clock.now()).toBe(0);
  });
});

describe('the message half written', () => {
  const long = letter({ mime: new TextEncoder().encode(`Subject: x\r\n\r\n${'0123456789\r\n'.repeat(60_000)}`) });

  test.each([
    ['and the line breaks', { reset: true }, 'smtp_connection_lost'],
    ['and the relay closes', { close: true }, 'smtp_connection_lost'],
    ['and the relay goes', { send: ['421 4.3.2 Shutting down'], close: true }, '421'],
    ['and the relay has had enough', { send: ['552 5.3.4 Too big'] }, '552'],
    ['and the relay says that all is well', { send: ['250 2.0.0 Ok'] }, 'smtp_out_of_step'],
    ['and the relay begins to speak', { raw: '250' }, 'smtp_out_of_step'],
  ])('%s: nothing was sent, no final dot follows (T2)', async (_what, step, code) => {
    const { send, relay } = rig([script(...UP_TO_DATA, { expect_body_bytes: 100_000, ...step })]);
    expect(await send(long)).toMatchObject({ kind: 'retry_later', code, refused: [] });
    expect(relay.sessions[0]?.secure).not.toContain('\r\n.\r\n');
  });
});

describe('a server that talks out of turn (T11)', () => {
  test.each(ALL.slice(0, -2).map((step, n) => [step.expect, n] as const))(
    'with more than an answer to %s: no command follows',
    async (_expect, n) => {
      const early = { ...ALL[n], send: [...(ALL[n]?.send ?? []), '250 2.0.0 Ok'] };
      const { send, lines, relay } = rig([script(...ALL.slice(0, n), early, ...ALL.slice(n + 1))]);
      expect(await send()).toMatchObject({ kind: 'retry_later', code: 'smtp_out_of_step', refused: [] });
      expect(lines()).toHaveLength(Math.max(n, 0));
      expect(relay.sessions[0]?.player.bodies).toEqual([]);
    },
  );

  test('with half an answer more is out of step as well', async () => {
    const { send } = rig([script(GREETING, { ...EHLO, raw: '', send: [...(EHLO.send ?? []), '2'] }, AUTH)]);
    expect(await send()).toMatchObject({ kind: 'retry_later', code: 'smtp_out_of_step' });
  });

  test('with the answer to the message before the message: no dot, no message', async () => {
    const eager = { ...DATA, send: ['354 Go on', '250 2.0.0 Queued'] };
    const { send, relay } = rig([script(...UP_TO_DATA.slice(0, -1), eager, BODY)]);
    expect(await send()).toMatchObject({ kind: 'retry_later', code: 'smtp_out_of_step' });
    expect(relay.sessions[0]?.player.bodies).toEqual([]);
  });

  test('behind the answer to the message changes nothing any more', async () => {
    const { send } = rig([script(...UP_TO_DATA, { ...BODY, send: ['250 2.0.0 Ok', '221 Bye'], close: true })]);
    expect(await send()).toMatchObject({ kind: 'accepted' });
  });

  test('makes answers about recipients doubtful: nobody is called refused then', async () => {
    const no = { ...RCPT, send: ['550 5.1.1 No'] };
    const twice = { ...RCPT, send: ['250 2.1.5 Ok', '250 2.1.5 Ok'] };
    const { send } = rig([script(...LOGGED_IN, MAIL, no, twice)]);
    expect(await send(letter({ to: [JO, KIM] }))).toMatchObject({ kind: 'retry_later', refused: [] });
  });

  test('or breaks off: who was refused before stays refused', async () => {
    const no = { ...RCPT, send: ['550 5.1.1 No'] };
    const { send } = rig([script(...LOGGED_IN, MAIL, no, { expect: '^RCPT', close: true })]);
    expect(await send(letter({ to: [JO, KIM] }))).toMatchObject({ kind: 'retry_later', refused: [{ address: JO }] });
  });

  test.each([
    ['in one piece with the answer', { send: ['220 2.0.0 Ready', '250-AUTH PLAIN', '250 Ok'], tls: HOST }],
    ['in a piece of its own', { chunks: [btoa('220 Ready\r\n'), btoa('250 AUTH PLAIN\r\n')], tls: HOST }],
    ['as half a line', { raw: '220 2.0.0 Ready\r\n250', tls: HOST }],
  ])('at STARTTLS, %s: the exchange ends and nothing secret was sent', async (_what, injected) => {
    const { send, relay } = rig([script(...UP_TO_TLS, { expect: '^STARTTLS$', ...injected })]);
    expect((await send()).kind).toBe('retry_later');
    expect(relay.sessions[0]?.plain).not.toContain('AUTH');
    expect(relay.sessions[0]?.secure).toBe('');
  });

  test('byte by byte, or in pieces that cut every line, is understood all the same', async () => {
    const bytewise = (steps: ScriptStep[]): ScriptStep[] => steps.map((step) => ({ ...step, bytewise: true }));
    const { send } = rig([script(...bytewise(ALL))]);
    expect(await send()).toMatchObject({ kind: 'accepted' });
    const secure = rig([script(...bytewise([...UP_TO_TLS, STARTTLS, EHLO, ...ALL.slice(2)]))]);
    expect(await secure.send()).toMatchObject({ kind: 'accepted' });
  });

  test.each([
    ['a line of 1 MB', { raw: `250 ${'x'.repeat(1_048_576)}\r\n` }],
    ['a line without end', { endless: 'x'.repeat(1_000) }],
    ['a reply without end', { endless: '250-2.0.0 and so on\r\n' }],
    ['empty lines without end', { endless: '\r\n' }],
    ['a reply of 129 lines', { raw: `${'250-Ok\r\n'.repeat(128)}250 Ok\r\n` }],
    ['a line of 4,097 bytes', { raw: `250 ${'x'.repeat(4_093)}\r\n` }],
  ])('with %s is hung up on', async (_what, step: ScriptStep) => {
    for (const [before, expected, kind] of [
      [LOGGED_IN, '^MAIL', 'retry_later'],
      [UP_TO_DATA, 'BODY', 'unknown'],
    ] as const) {
      const { send, relay } = rig([script(...before, { expect: expected, ...step })]);
      const result = await send();
      expect(result.kind).toBe(kind);
      if (result.kind === 'retry_later') expect(result.code).toBe('smtp_bad_reply');
      expect(relay.clock.now()).toBe(0);
      // What had been sent by then, beside the piece under way, is little.
      expect(relay.sessions[0]?.unread_most).toBeLessThan((step.raw ?? step.endless ?? '').length * 2 + 200);
    }
  });

  test.each([
    ['128 lines', `${'250-Ok\r\n'.repeat(127)}250 Ok\r\n`],
    ['a line of 4,096 bytes', `250 ${'x'.repeat(4_092)}\r\n`],
    ['bare line feeds', '250-2.1.0 Ok\n250 2.1.0 Ok\n'],
  ])('with %s is still understood', async (_what, raw) => {
    const { send } = rig([script(...LOGGED_IN, { expect: '^MAIL', raw }, ...ALL.slice(4))]);
    expect(await send()).toMatchObject({ kind: 'accepted' });
  });
});
