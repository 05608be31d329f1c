import type { RouteId } from '@pmail/contracts/routes.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { expect } from 'vitest';
import { arrive, blockAddress, keyed, type Letter, letter, makeLab, post, suppressAddress } from '../mail.ts';
import { addDomain, call, paths, send, sql } from '../support.ts';
import { type Also, type Provocation, type Provoked, somebody, type World } from './world.ts';

/** What the policy of a send refuses, in the order of its steps. */

const SEND: RouteId[] = ['messages.send'];

interface Attempt {
  /** Ann unless said otherwise. */
  from?: string;
  body?: Partial<Letter>;
}

/** A send with something wrong about it; also as a dry run, which must get the same answer. */
function refused(
  code: Provocation['code'],
  when: string,
  attempt: Attempt | ((world: World) => Promise<Attempt>),
  also?: Also,
): Provocation {
  return {
    code,
    when,
    routes: SEND,
    provoke: async (world, route) => {
      const { from = world.ann, body = {} } = typeof attempt === 'function' ? await attempt(world) : attempt;
      const call = { params: { identity_id: from }, body: letter(body) };
      const dry = await send(world.key, route, { ...call, query: { dry_run: 'true' } });
      const real = await send(world.key, route, { ...call, headers: keyed() });
      expect((await dry.json<{ error: { code: string } }>()).error.code).toBe(code);
      return real;
    },
    ...(also === undefined ? {} : { also }),
  };
}

const details =
  (expected: object): Also =>
  (answer) =>
    expect(answer.details).toEqual(expected);
const named =
  (...expected: string[]): Also =>
  ({ details: given }: Provoked) =>
    expect(paths(given ?? {})).toEqual(expected);

const sender: Provocation[] = [
  {
    code: 'tenant_suspended',
    when: 'and its identities with it',
    routes: SEND,
    provoke: async (world) => {
      const lab = await makeLab(world.root, 'halted');
      await call(world.root, 'tenants.update', { params: { tenant_id: lab.tenant }, body: { status: 'suspended' } });
      return post(lab.key, lab.ann);
    },
  },
  refused(
    'identity_paused',
    'by hand',
    async (world) => {
      const from = await somebody(world);
      await call(world.key, 'identities.update', { params: { identity_id: from }, body: { status: 'paused' } });
      return { from };
    },
    details({ reason: 'manual' }),
  ),
  refused(
    'identity_paused',
    'for abuse',
    async (world) => {
      const from = await somebody(world);
      await sql("UPDATE identities SET status = 'paused', pause_reason = 'abuse_threshold' WHERE id = ?", from);
      return { from };
    },
    details({ reason: 'abuse_threshold' }),
  ),
  refused('identity_owner_required', 'there is none', async (world) => ({
    from: await somebody(world, { owner: null }),
  })),
];

const recipients: Provocation[] = [
  refused(
    'address_invalid',
    'some are no addresses',
    {
      body: {
        to: ['nobody', { address: 'a@b' }, 'ok@simulator.invalid'],
        cc: ['x@@y.example'],
        bcc: ['a b@c.example'],
      },
    },
    named('to[0]', 'to[1].address', 'cc[0]', 'bcc[0]'),
  ),
  refused(
    'address_invalid',
    'a line break would end the address',
    { body: { to: ['a@b.example\r\nBcc: evil@example.com'] } },
    named('to[0]'),
  ),
  refused(
    'address_unsupported',
    'the part before the @ is not ASCII',
    { body: { to: ['jörg@example.com'] } },
    named('to[0]'),
  ),
  refused(
    'invalid_request',
    'a name has a control character',
    { body: { to: [{ address: 'a@simulator.invalid', name: 'A\r\nBcc: evil@example.com' }] } },
    named('to[0].name'),
  ),
  refused(
    'too_many_recipients',
    'there are more than the policy has',
    { body: { to: Array.from({ length: 11 }, (_, n) => `r${n}@simulator.invalid`) } },
    details({ limit: 10 }),
  ),
  refused(
    'test_mode_recipient',
    'the mail of a test tenant would leave',
    { body: { to: ['delivered@simulator.invalid', 'bob.lab@agents.example'], bcc: ['real@example.com'] } },
    details({ recipients: ['real@example.com'] }),
  ),
];

const consent = { basis: 'signed up', recorded_at: '2026-01-01T00:00:00Z' };
const unsubscribe = { url: 'https://example.com/out' };

const kinds: Provocation[] = [
  refused(
    'marketing_requirements_missing',
    'there is neither link nor consent',
    { body: { kind: 'marketing' } },
    named('unsubscribe.url', 'consent'),
  ),
  refused(
    'marketing_requirements_missing',
    'the link is not https',
    { body: { kind: 'marketing', unsubscribe: { url: 'http://example.com/out' }, consent } },
    named('unsubscribe.url'),
  ),
  refused('auto_reply_not_allowed', 'it answers nothing', { body: { kind: 'auto_reply' } }),
  ...['Bcc', 'Message-ID', 'DKIM-Signature', 'X-Pylota-Mail-Hop', `X-${'n'.repeat(100)}`, 'X-Bad Name'].map((name) =>
    refused(
      'header_not_allowed',
      `it is ${name.slice(0, 20)}`,
      { body: { headers: { [name]: 'x' } } },
      named(`headers.${name}`),
    ),
  ),
  refused(
    'invalid_request',
    'the value of a header has a line break',
    { body: { headers: { 'X-Good': 'a\r\nBcc: evil@example.com' } } },
    named('headers.X-Good'),
  ),
  refused(
    'loop_detected',
    'the mail it follows has gone nine hops',
    async (world) => {
      const id = await arrive(world.ann, 'From: m@example.org\nSubject: Loop\nX-Pylota-Mail-Hop: 9\n\nAgain');
      const { thread_id } = await call(world.key, 'messages.get', {
        params: { identity_id: world.ann, message_id: id },
      });
      return { body: { thread_id } };
    },
    details({ hop: 10 }),
  ),
  refused('invalid_request', 'it says nothing', { body: { text: '' } }, named('text')),
  refused(
    'invalid_request',
    "the sender is not the identity's",
    { body: { from_address: 'bob.lab@agents.example' } },
    named('from_address'),
  ),
];

let domains = 0;

/** A sender whose primary address is on a domain of the tenant that has become what `column` says. */
export async function onDomain(world: World, column: 'state' | 'transport', value: string): Promise<{ from: string }> {
  domains++;
  const domain = await addDomain(world.tenant, `d${domains}.example`);
  const from = await somebody(world, { domain_id: domain });
  await sql(`UPDATE domains SET ${column} = ? WHERE id = ?`, value, domain);
  return { from };
}

const transports: Provocation[] = [
  ...['pending', 'verifying'].map((state) =>
    refused('domain_not_ready', `it is ${state}`, (world) => onDomain(world, 'state', state), details({ state })),
  ),
  refused(
    'domain_not_ready',
    'the address is pending',
    async (world) => {
      const from = await somebody(world);
      await sql("UPDATE addresses SET status = 'pending' WHERE identity_id = ?", from);
      return { from };
    },
    details({ state: 'pending' }),
  ),
  refused(
    'transport_unavailable',
    'SES is not set up',
    (world) => onDomain(world, 'transport', 'ses'),
    details({ reason: 'ses_not_configured' }),
  ),
  refused(
    'transport_unavailable',
    'relays are off',
    (world) => onDomain(world, 'transport', 'smtp'),
    details({ reason: 'smtp_relay_disabled' }),
  ),
  refused(
    'transport_unavailable',
    'Cloudflare carries no marketing',
    { body: { kind: 'marketing', unsubscribe, consent } },
    details({ reason: 'marketing_needs_ses' }),
  ),
  refused(
    'message_too_large',
    'the files are too large together',
    {
      body: {
        attachments: ['a', 'b'].map((filename) => ({
          filename,
          content_type: 'application/octet-stream',
          content_base64: 'A'.repeat(2_700_000),
        })),
      },
    },
    details({ limit: LIMITS.composed_bytes_max, size: expect.any(Number) as number }),
  ),
];

const dryRuns: Provocation[] = [
  {
    code: 'all_recipients_suppressed',
    when: 'each is on the list',
    routes: SEND,
    provoke: async (world, route) => {
      await suppressAddress(world.tenant, 'gone@simulator.invalid', 'hard_bounce');
      await suppressAddress(world.tenant, 'angry@simulator.invalid', 'complaint');
      const body = letter({ to: ['gone@simulator.invalid'], bcc: ['Angry@simulator.invalid'] });
      return send(world.key, route, { params: { identity_id: world.ann }, body, query: { dry_run: 'true' } });
    },
    also: details({
      recipients: [
        { address: 'gone@simulator.invalid', field: 'to', status: 'suppressed', reason: 'hard_bounce' },
        { address: 'angry@simulator.invalid', field: 'bcc', status: 'suppressed', reason: 'complaint' },
      ],
    }),
  },
  {
    code: 'recipient_blocked',
    when: 'one of them by a rule',
    routes: SEND,
    provoke: async (world, route) => {
      await suppressAddress(world.tenant, 'left@simulator.invalid', 'unsubscribe');
      await blockAddress(world.tenant, 'blocked@simulator.invalid');
      const body = letter({ to: ['left@simulator.invalid', 'blocked@simulator.invalid'] });
      return send(world.key, route, { params: { identity_id: world.ann }, body, query: { dry_run: 'true' } });
    },
    also: details({
      recipients: [
        { address: 'left@simulator.invalid', field: 'to', status: 'suppressed', reason: 'unsubscribe' },
        { address: 'blocked@simulator.invalid', field: 'to', status: 'suppressed', reason: 'send_block' },
      ],
    }),
  },
];

export const policies: Provocation[] = [...sender, ...recipients, ...kinds, ...transports, ...dryRuns];
