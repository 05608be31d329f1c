import { env } from 'cloudflare:workers';
import type { RouteId } from '@pmail/contracts/routes.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { expect, vi } from 'vitest';
import {
  accepted,
  arrive,
  blockAddress,
  keyed,
  letter,
  makeLab,
  quotaRemote,
  suppressAddress,
  waiting,
} from '../mail.ts';
import { call, paths, send, sql } from '../support.ts';
import { onDomain } from './policy.ts';
import { withoutWaiting } from './quota.ts';
import { type Also, operator, type Provocation, type Provoked, somebody, type World, withPolicy } from './world.ts';

/** What the policy refuses of answers and forwards, whose recipients and thread come from another message. */

const REPLIES: RouteId[] = ['messages.reply', 'messages.reply_all'];
const ALL: RouteId[] = [...REPLIES, 'messages.forward'];

interface Attempt {
  /** Whose key; an operator's unless said otherwise. */
  key?: string;
  from?: string;
  /** What is answered or forwarded; mail from the simulator unless said otherwise. */
  target?: string;
  body?: object;
}

let arrived = 0;

/** Mail from somebody whom a test tenant may write to. */
function question(to: string, changes: { from?: string; to?: string; headers?: string } = {}): Promise<string> {
  arrived++;
  const { from = 'delivered@simulator.invalid', to: others = 'them@simulator.invalid', headers = '' } = changes;
  return arrive(
    to,
    `From: ${from}\nTo: ${others}\nMessage-ID: <q${arrived}@simulator.invalid>\nSubject: Q${arrived}\n${headers}\nHow much?`,
  );
}

let writers: Promise<string[]> | undefined;
let turn = 0;

/** One of several who answer in turn, so that none is limited. */
async function writer(world: World): Promise<string> {
  writers ??= Promise.all(Array.from({ length: 5 }, () => somebody(world)));
  turn++;
  return (await writers)[turn % 5] ?? '';
}

/** One of them, and mail that came for them. */
async function asked(world: World, changes: Parameters<typeof question>[1]): Promise<Attempt> {
  const from = await writer(world);
  return { from, target: await question(from, changes) };
}

async function callOf(world: World, route: RouteId, attempt: Attempt) {
  const { from = await writer(world), target, body } = attempt;
  const usual = route === 'messages.forward' ? { to: ['delivered@simulator.invalid'], text: 'Look' } : { text: 'Yes' };
  return {
    params: { identity_id: from, message_id: target ?? (await question(from)) },
    body: { ...usual, ...body },
  };
}

/** An answer with something wrong about it; also as a dry run, which must get the same answer. */
function refused(
  code: Provocation['code'],
  when: string,
  routes: RouteId[],
  attempt: Attempt | ((world: World, route: RouteId) => Promise<Attempt>),
  also?: Also,
): Provocation {
  return {
    code,
    when: `${when}, in an answer`,
    routes,
    provoke: async (world, route) => {
      const made = typeof attempt === 'function' ? await attempt(world, route) : attempt;
      const input = await callOf(world, route, made);
      const key = made.key ?? (await operator());
      const dry = await send(key, route, { ...input, query: { dry_run: 'true' } });
      expect((await dry.json<{ error: { code: string } }>()).error.code).toBe(code);
      return send(key, route, { ...input, headers: keyed() });
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

let labs = 0;

const sender: Provocation[] = [
  refused('tenant_suspended', 'and its identities with it', ALL, async (world) => {
    const lab = await makeLab(world.root, `answering${++labs}`);
    const target = await question(lab.ann);
    await call(world.root, 'tenants.update', { params: { tenant_id: lab.tenant }, body: { status: 'suspended' } });
    return { key: lab.key, from: lab.ann, target };
  }),
  refused(
    'identity_paused',
    'by hand',
    ALL,
    async (world) => {
      const from = await somebody(world);
      const target = await question(from);
      await call(world.key, 'identities.update', { params: { identity_id: from }, body: { status: 'paused' } });
      return { from, target };
    },
    details({ reason: 'manual' }),
  ),
  refused('identity_owner_required', 'there is none', ALL, async (world) => ({
    from: await somebody(world, { owner: null }),
  })),
];

const TWO = ['a@simulator.invalid', 'b@simulator.invalid'];

const recipients: Provocation[] = [
  refused(
    'address_invalid',
    'some are no addresses',
    ['messages.forward'],
    { body: { to: ['nobody'], cc: [{ address: 'a@b' }] } },
    named('to[0]', 'cc[0].address'),
  ),
  refused(
    'address_unsupported',
    'the part before the @ is not ASCII',
    ['messages.forward'],
    { body: { to: ['jörg@example.com'] } },
    named('to[0]'),
  ),
  {
    code: 'too_many_recipients',
    when: 'the message answered had more than the policy has now',
    routes: ALL,
    provoke: async (world, route) => {
      const from = await writer(world);
      const key = await operator();
      const { id: target } = await accepted(key, from, letter({ to: TWO }));
      const body = route === 'messages.forward' ? { to: TWO } : {};
      const input = await callOf(world, route, { from, target, body });
      return withPolicy(world.tenant, { max_recipients: 1 }, () => send(key, route, { ...input, headers: keyed() }));
    },
    also: details({ limit: 1 }),
  },
  refused(
    'test_mode_recipient',
    'the mail of a test tenant would leave',
    ALL,
    async (world, route) => ({
      ...(await asked(world, { from: 'Real <real@example.com>' })),
      ...(route === 'messages.forward' ? { body: { to: ['real@example.com'] } } : {}),
    }),
    details({ recipients: ['real@example.com'] }),
  ),
  refused(
    'invalid_request',
    'nobody else had a part in it',
    ['messages.reply_all'],
    async ({ ann }) => ({
      from: ann,
      target: await question(ann, { from: 'ann.lab@agents.example', to: 'ann.lab+tag@agents.example' }),
    }),
    named('to'),
  ),
];

const content: Provocation[] = [
  refused('marketing_requirements_missing', 'an answer is none', REPLIES, { body: { kind: 'marketing' } }),
  refused('auto_reply_not_allowed', 'a machine wrote first', REPLIES, async (world) => ({
    ...(await asked(world, { headers: 'Auto-Submitted: auto-replied\n' })),
    body: { kind: 'auto_reply' },
  })),
  refused('header_not_allowed', 'it is Bcc', ALL, { body: { headers: { Bcc: 'x' } } }, named('headers.Bcc')),
  refused(
    'loop_detected',
    'it has gone nine hops',
    ALL,
    (world) => asked(world, { headers: 'X-Pylota-Mail-Hop: 9\n' }),
    details({ hop: 10 }),
  ),
  refused(
    'invalid_request',
    "the sender is not the identity's",
    ALL,
    { body: { from_address: 'bob.lab@agents.example' } },
    named('from_address'),
  ),
  ...['to', 'cc', 'bcc', 'subject', 'thread_id', 'unsubscribe', 'consent', 'include_attachments'].map((field) =>
    refused('invalid_request', `it says ${field}`, REPLIES, { body: { [field]: [] } }, named(field)),
  ),
  ...['subject', 'thread_id', 'kind', 'unsubscribe', 'consent'].map((field) =>
    refused('invalid_request', `it says ${field}`, ['messages.forward'], { body: { [field]: 'x' } }, named(field)),
  ),
  refused(
    'message_too_large',
    'the files are too large together',
    ALL,
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

const transports: Provocation[] = [
  refused(
    'domain_not_ready',
    'it is pending',
    ALL,
    async (world) => {
      const { from } = await onDomain(world, 'state', 'healthy');
      const target = await question(from);
      await sql("UPDATE domains SET state = 'pending' WHERE name LIKE 'd%.example'");
      return { from, target };
    },
    details({ state: 'pending' }),
  ),
  refused(
    'transport_unavailable',
    'SES is not set up',
    ALL,
    async (world) => onDomain(world, 'transport', 'ses'),
    details({ reason: 'ses_not_configured' }),
  ),
];

/** A dry run of an answer that would reach nobody. */
function unheard(
  code: Provocation['code'],
  when: string,
  reason: string,
  prepare: (world: World, address: string) => Promise<void>,
): Provocation {
  let tries = 0;
  return {
    code,
    when: `${when}, in an answer`,
    routes: ALL,
    provoke: async (world, route) => {
      const address = `${reason.replace('_', '')}${++tries}@simulator.invalid`;
      await prepare(world, address);
      // To the same address, so that reply-all has nobody else.
      const asking = await asked(world, { from: address, to: address });
      const body = route === 'messages.forward' ? { to: [address] } : {};
      const input = await callOf(world, route, { ...asking, body });
      const response = await send(await operator(), route, { ...input, query: { dry_run: 'true' } });
      const { error } = await response.clone().json<{ error: { details: unknown } }>();
      expect(error.details).toEqual({ recipients: [{ address, field: 'to', status: 'suppressed', reason }] });
      return response;
    },
  };
}

const dryRuns: Provocation[] = [
  unheard('all_recipients_suppressed', 'who asked is on the list', 'hard_bounce', (world, address) =>
    suppressAddress(world.tenant, address, 'hard_bounce'),
  ),
  unheard('recipient_blocked', 'who asked is blocked', 'send_block', (world, address) =>
    blockAddress(world.tenant, address),
  ),
];

const limits: Provocation[] = [
  {
    code: 'billing_limit',
    when: 'the allowance is used up, for answers too',
    routes: ALL,
    provoke: async (world, route) => {
      const lab = await makeLab(world.root, `answering${++labs}`);
      const { stub, call: context } = await quotaRemote(lab.tenant);
      await stub.takeBilling(context, { mode: 'metered', granted: { sends: 0 }, as_of: Number.MAX_SAFE_INTEGER });
      const input = await callOf(world, route, { from: lab.ann });
      return send(lab.key, route, { ...input, headers: keyed() });
    },
    also: ({ details: given }) => expect(given).toMatchObject({ feature: 'sends', granted: 0, used: 0 }),
  },
  {
    code: 'daily_cap_reached',
    when: 'the identity has none left, for answers too',
    routes: ALL,
    provoke: async (world, route) => {
      const from = await somebody(world, { send_policy: { daily_cap: 0 } });
      return send(await operator(), route, { ...(await callOf(world, route, { from })), headers: keyed() });
    },
    also: ({ details: given }) => expect(given).toMatchObject({ cap: 'identity' }),
  },
  {
    code: 'thread_busy',
    when: 'another answer of it has not left yet',
    routes: ALL,
    provoke: async (world, route) => {
      const from = await somebody(world);
      const { id: target, thread_id } = await waiting(world.key, from);
      await waiting(world.key, from, letter({ thread_id }));
      const input = await callOf(world, route, { from, target });
      const key = await operator();
      return withoutWaiting(() => send(key, route, { ...input, headers: keyed() }));
    },
    also: ({ headers }) => expect(headers.get('retry-after')).toBe('60'),
  },
];

const keys: Provocation[] = [
  {
    code: 'idempotency_conflict',
    when: 'it stands for another answer',
    routes: ALL,
    provoke: async (world, route) => {
      const key = await operator();
      const input = await callOf(world, route, {});
      const headers = keyed();
      const first = await call(key, route, { ...input, headers, status: 202 });
      const body = { ...input.body, text: 'Another' };
      const response = await send(key, route, { ...input, body, headers });
      const { error } = await response.clone().json<{ error: { details: unknown } }>();
      expect(error.details).toEqual({ original_message_id: (first as { id: string }).id });
      return response;
    },
  },
  {
    code: 'request_in_progress',
    when: 'the first answer with this key is still on its way',
    routes: ALL,
    provoke: async (world, route) => {
      const input = { ...(await callOf(world, route, {})), headers: keyed() };
      const gate = Promise.withResolvers<void>();
      const put = env.BLOBS.put.bind(env.BLOBS);
      const slow = vi.spyOn(env.BLOBS, 'put').mockImplementationOnce((async (name: string, value: Uint8Array) => {
        await gate.promise;
        return put(name, value);
      }) as never);
      const key = await operator();
      const first = send(key, route, input);
      await vi.waitFor(() => expect(slow).toHaveBeenCalled());
      const second = await send(key, route, input);
      gate.resolve();
      expect((await first).status).toBe(202);
      slow.mockRestore();
      return second;
    },
    also: ({ headers }) => expect(headers.get('retry-after')).toBe('1'),
  },
];

export const answers: Provocation[] = [
  ...sender,
  ...recipients,
  ...content,
  ...transports,
  ...dryRuns,
  ...limits,
  ...keys,
];
