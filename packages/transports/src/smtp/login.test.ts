import type { ScriptStep } from '@pmail/testkit/smtp/script.ts';
import { describe, expect, test } from 'vitest';
import { ALL, BODY, DATA, GREETING, HOST, LOGIN, MAIL, QUIT, RCPT, rig, script } from './relay.fixture.ts';

/** Logging in: which mechanism, what a refusal is about, and that nothing of it is ever shown. */

const offers = (...mechanisms: string[]): ScriptStep => ({
  expect: '^EHLO ',
  send: [`250-${HOST}`, ...mechanisms.map((line) => `250-${line}`), '250 8BITMIME'],
});
const BOTH = offers('AUTH PLAIN LOGIN');
const TOKEN = btoa(`\0${LOGIN.username}\0${LOGIN.password}`);
const AS_LOGIN: ScriptStep[] = [
  { expect: '^AUTH LOGIN$', send: ['334 VXNlcm5hbWU6'] },
  { expect: `^${btoa(LOGIN.username)}$`, send: ['334 UGFzc3dvcmQ6'] },
  { expect: `^${btoa(LOGIN.password)}$`, send: ['235 2.7.0 Ok'] },
];
const AFTER = [MAIL, RCPT, DATA, BODY, QUIT];
const refuses = (line: string): ScriptStep => ({ expect: '^AUTH PLAIN ', send: [line] });

describe('the mechanism', () => {
  test.each([
    ['PLAIN, however they are ordered', offers('AUTH LOGIN CRAM-MD5 PLAIN'), [`AUTH PLAIN ${TOKEN}`]],
    ['PLAIN, in small letters', offers('auth plain'), [`AUTH PLAIN ${TOKEN}`]],
  ])('is %s', async (_what, ehlo, said) => {
    const { send, lines } = rig([script(GREETING, ehlo, ...ALL.slice(2))]);
    expect(await send()).toMatchObject({ kind: 'accepted' });
    expect(lines().slice(1, -4)).toEqual(said);
  });

  test.each([
    ['alone', offers('AUTH LOGIN')],
    ['by the old keyword', offers('AUTH=LOGIN')],
    ['beside others that we do not know', offers('AUTH XOAUTH2 LOGIN')],
  ])('is LOGIN when it is offered %s', async (_what, ehlo) => {
    const { send } = rig([script(GREETING, ehlo, ...AS_LOGIN, ...AFTER)]);
    expect(await send()).toMatchObject({ kind: 'accepted' });
  });

  test('with a response that does not fit into a command line waits to be asked for it', async () => {
    const long = { username: 'u'.repeat(300), password: 'p'.repeat(300) };
    const token = btoa(`\0${long.username}\0${long.password}`);
    const { send, ports, lines } = rig([
      script(
        GREETING,
        BOTH,
        { expect: '^AUTH PLAIN$', send: ['334 '] },
        { expect: `^${token}$`, send: ['235 Ok'] },
        ...AFTER,
      ),
    ]);
    const settings = await ports.relayOf('acme.example.com');
    ports.relayOf = async () => (settings === null ? null : { ...settings, ...long });
    expect(await send()).toMatchObject({ kind: 'accepted' });
    expect(lines().filter((line) => line.length > 510)).toEqual([token]);
  });

  test('whose response the server asks for once more is given it once more, and no third time', async () => {
    const asks = { expect: TOKEN.replace(/[+/=]/g, '.'), send: ['334 '] };
    const once = rig([script(GREETING, BOTH, asks, { expect: `^${TOKEN}$`, send: ['235 Ok'] }, ...AFTER)]);
    expect(await once.send()).toMatchObject({ kind: 'accepted' });
    const twice = rig([script(GREETING, BOTH, asks, asks)]);
    expect(await twice.send()).toMatchObject({ kind: 'retry_later', code: 'smtp_out_of_step' });
  });

  test('carries credentials in UTF-8', async () => {
    const { send, ports, lines } = rig([script(GREETING, BOTH, ...ALL.slice(2))]);
    const settings = await ports.relayOf('acme.example.com');
    ports.relayOf = async () => (settings === null ? null : { ...settings, password: 'größe €' });
    expect(await send()).toMatchObject({ kind: 'accepted' });
    const token = Buffer.from(lines()[1]?.slice(11) ?? '', 'base64').toString('utf8');
    expect(token).toBe('\0acme-desk\0größe €');
  });
});

describe('a refusal', () => {
  test.each([
    '504 5.5.4 Unrecognized authentication type',
    '534 5.7.9 Authentication mechanism is too weak',
    '535 5.7.4 Security features not supported',
    '538 5.7.11 Encryption required',
    '502 5.5.1 PLAIN is disabled',
    '550 5.7.4 No',
    '501',
  ])('of PLAIN (%s) is about the mechanism: LOGIN is tried', async (line) => {
    const { send, lines, checks } = rig([script(GREETING, BOTH, refuses(line), ...AS_LOGIN, ...AFTER)]);
    expect(await send()).toMatchObject({ kind: 'accepted' });
    expect(lines()).toContain('AUTH LOGIN');
    expect(checks).toEqual([]);
  });

  const bad = { expect: `^${btoa(LOGIN.password)}$`, send: ['535 5.7.8 No'] };

  test.each([
    ['535', [BOTH, refuses('535 5.7.8 Bad credentials')], '535 5.7.8'],
    ['535 without an enhanced code', [BOTH, refuses('535 No')], '535'],
    ['535 about basic authentication', [BOTH, refuses('535 5.7.139 Disabled')], '535 5.7.139'],
    ['of the last mechanism', [offers('AUTH PLAIN'), refuses('504 5.7.4 No')], '504 5.7.4'],
    ['of LOGIN after PLAIN', [BOTH, refuses('504'), ...AS_LOGIN.slice(0, 2), bad], '535 5.7.8'],
    ['of LOGIN itself', [offers('AUTH LOGIN'), { expect: '^AUTH LOGIN$', send: ['504 No'] }], '504'],
  ])('%s is about the credentials: rejected, and the domain is checked (N14)', async (_what, steps, codes) => {
    const { send, lines, checks } = rig([script(GREETING, ...steps, QUIT)]);
    expect(await send()).toEqual({
      kind: 'rejected',
      reason: 'sender_domain_unavailable',
      code: codes.slice(0, 3),
      detail: `${codes} the relay refused the login`,
      refused: [],
    });
    expect(lines().at(-1)).toBe('QUIT');
    expect(lines().some((line) => line.startsWith('MAIL'))).toBe(false);
    expect(checks).toEqual([{ domain: 'acme.example.com', issue: 'smtp_auth_failed' }]);
  });

  test.each([
    ['no login at all', offers()],
    ['none that we know', offers('AUTH CRAM-MD5 XOAUTH2')],
  ])('is the same when the relay offers %s', async (_what, ehlo) => {
    const { send, lines, checks } = rig([script(GREETING, ehlo, QUIT)]);
    expect(await send()).toMatchObject({ reason: 'sender_domain_unavailable', code: 'smtp_auth_unavailable' });
    expect(lines().slice(1)).toEqual(['QUIT']);
    expect(checks).toEqual([{ domain: 'acme.example.com', issue: 'smtp_auth_failed' }]);
  });

  test('whose check cannot be asked for is the same refusal', async () => {
    const { send } = rig([script(GREETING, BOTH, refuses('535 No'), QUIT)], {
      requestDomainCheck: () => Promise.reject(new Error('no monitor')),
    });
    expect(await send()).toMatchObject({ kind: 'rejected', reason: 'sender_domain_unavailable' });
  });

  test.each(['454 4.7.0 Temporary', '432 4.7.12 Password transition'])('for now (%s) is tried again', async (line) => {
    const { send, checks } = rig([script(GREETING, BOTH, refuses(line), QUIT)]);
    expect(await send()).toMatchObject({ kind: 'retry_later', code: line.slice(0, 3) });
    expect(checks).toEqual([]);
  });
});

describe('nothing secret is shown', () => {
  const echo = `${TOKEN} ${LOGIN.password} ${btoa(LOGIN.password)}`;

  test.each([
    ['AUTH', [BOTH, refuses(`535 5.7.8 You said ${echo}`)]],
    ['AUTH, for now', [BOTH, refuses(`454 4.7.0 You said ${echo}`)]],
    ['AUTH, with 421', [BOTH, refuses(`421 4.7.0 You said ${echo}`)]],
    ['MAIL', [BOTH, refuses('235 Ok'), { expect: '^MAIL', send: [`550 5.7.1 ${echo}`] }]],
    ['MAIL, over two lines', [BOTH, refuses('235 Ok'), { expect: '^MAIL', send: ['550-No', `550 ${TOKEN}`] }]],
    [
      'RCPT',
      [
        BOTH,
        refuses('235 Ok'),
        MAIL,
        { expect: '^RCPT', send: [`550 ${LOGIN.password}`] },
        { expect: '^RSET$', send: ['250 Ok'] },
      ],
    ],
    [
      'RCPT, for now',
      [
        BOTH,
        refuses('235 Ok'),
        MAIL,
        { expect: '^RCPT', send: [`450 ${LOGIN.password}`] },
        { expect: '^RSET$', send: ['250 Ok'] },
      ],
    ],
  ])('by a server that repeats it behind %s', async (_what, steps) => {
    const { send } = rig([script(GREETING, ...steps, QUIT)]);
    const shown = JSON.stringify(await send());
    expect(shown).toMatch(/"(535|454|421|550|450)"/);
    for (const secret of [TOKEN, LOGIN.password, btoa(LOGIN.password)]) expect(shown).not.toContain(secret);
  });
});
