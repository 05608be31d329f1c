import { env } from 'cloudflare:workers';
import { SEND_ROUTES } from '@pmail/contracts/routes/sends.ts';
import { type RouteId, routeSpec } from '@pmail/contracts/routes.ts';
import type { ErrorCode } from '@pmail/core/errors.ts';
import { type LinkTarget, mintLink } from '@pmail/core/links.ts';
import { vi } from 'vitest';
import { config } from '../../src/env.ts';
import { signingKeys } from '../../src/ports/keyring.ts';
import { newId } from '../../src/ports/random.ts';
import { accepted, arrive, atRest, type Lab, letter, makeLab, person } from '../mail.ts';
import { type Call, call, db, deploy, makeKey, plantKey, sql } from '../support.ts';

/** The deployment that every entry of the catalogue works on, and for each route a request that would succeed. */

export interface World extends Lab {
  root: string;
  /** A second tenant with mail of its own. */
  other: Lab;
  /** Of ann: two messages, the first with a file, each its own thread; the second thread has two messages. */
  message: string;
  attachment: string;
  thread: string;
  /** An inbound message of ann, in the second thread. */
  inbound: string;
  /** Bob's. */
  bobsMessage: string;
  bobsThread: string;
  event: string;
  spareKey: string;
  /** Somebody who only answers, so that nobody sends so often as to be limited, and a message of theirs. */
  clerk: string;
  clerksMessage: string;
  /** The token of a link to ann's file. */
  link: string;
  /** An endpoint of the lab, tested twice. */
  webhook: string;
}

export const FILE = { filename: 'note.txt', content_type: 'text/plain', content_base64: 'aGVsbG8=' };

export async function makeWorld(): Promise<World> {
  const root = await deploy();
  const lab = await makeLab(root);
  const other = await makeLab(root, 'other');
  const first = await accepted(lab.key, lab.ann, letter({ attachments: [FILE] }));
  const bobs = await accepted(lab.key, lab.bob);
  const clerk = await person(root, lab.tenant, 'clerk');
  const clerks = await accepted(lab.key, clerk);
  await accepted(other.key, other.ann);
  const inbound = await arrive(
    lab.ann,
    'From: Sam <sam@example.org>\nTo: ann.lab@agents.example\nSubject: Q\n\nHow much?',
  );
  const { thread_id } = await call(lab.key, 'messages.get', { params: { identity_id: lab.ann, message_id: inbound } });
  await accepted(lab.key, lab.ann, letter({ thread_id }));
  await atRest(lab.ann, lab.bob, other.ann);
  const spare = await makeKey(root, { level: 'tenant', tenant_id: lab.tenant });
  const attachment = first.attachments[0]?.id ?? newId('att', 0);
  const webhook = await subscriptions(lab);
  const [event] = (await call(lab.key, 'events.list', { query: { identity_id: lab.ann } })).data;
  return {
    ...lab,
    root,
    other,
    message: first.id,
    attachment,
    thread: thread_id,
    inbound,
    bobsMessage: bobs.id,
    bobsThread: bobs.thread_id,
    event: event?.id ?? '',
    clerk,
    clerksMessage: clerks.id,
    spareKey: (await call(spare, 'me.get')).key_id,
    link: await linkTo({
      tenant_id: lab.tenant,
      identity_id: lab.ann,
      message_id: first.id,
      attachment_id: attachment,
    }),
    webhook,
  };
}

const HELD = 'held@example.net';
const LISTED = { direction: 'receive', kind: 'allow', entry: '@example.net' };
export const HOOK = { url: 'https://hooks.acme.com/in', events: ['identity.paused'] };

/** Two endpoints, two attempts, two suppressions and two entries of a list: enough for a second page of each. */
async function subscriptions({ key, tenant }: Lab): Promise<string> {
  const params = { tenant_id: tenant };
  const { id } = await call(key, 'webhooks.createOfTenant', { params, body: HOOK });
  await call(key, 'webhooks.createOfTenant', { params, body: HOOK });
  for (let n = 0; n < 2; n++) await call(key, 'webhooks.test', { params: { webhook_id: id } });
  for (const address of [HELD, `other.${HELD}`]) {
    await call(key, 'suppressions.create', { params, body: { address, reason: 'manual' } });
  }
  for (const entry of [LISTED.entry, '@example.org']) {
    await call(key, 'lists.put', { params: { ...params, ...LISTED, entry } });
  }
  return id;
}

/** The token of a link, as the mailbox makes it for a file too large to send. */
async function linkTo(target: Omit<LinkTarget, 'expires'>): Promise<string> {
  const ring = { db, master_key: config(env).master_key, now: () => Date.now(), cacheKey: env };
  const [key] = await signingKeys(ring, 'link');
  if (key === undefined) throw new Error('no link key');
  return mintLink(key, { ...target, expires: Math.floor(Date.now() / 1_000) + 86_400 });
}

/** Bodies that the routes take; a route with a body and none here is a mistake that the table names. */
const BODIES: Partial<Record<RouteId, object>> = {
  'tenants.create': { slug: 'fresh', name: 'Fresh', mode: 'test' },
  'tenants.update': {},
  'tenants.policy.update': { policy: {} },
  'tenants.billing.update': {},
  'keys.create': { name: 'k', level: 'platform', permissions: ['platform:ops'] },
  'keys.rotate': {},
  'identities.create': { username: 'fresh', display_name: 'Fresh' },
  'identities.update': {},
  'messages.send': letter(),
  'messages.reply': { text: 'Yes' },
  'messages.reply_all': { text: 'Yes, all' },
  'messages.forward': { to: ['delivered@simulator.invalid'], text: 'Look' },
  'messages.update': {},
  'messages.resolve': { outcome: 'sent' },
  'webhooks.create': HOOK,
  'webhooks.createOfTenant': HOOK,
  'webhooks.update': {},
  'webhooks.rotateSecret': {},
  'webhooks.replay': { since: '2026-01-01T00:00:00Z' },
  'suppressions.create': { address: HELD, reason: 'manual' },
  'suppressions.delete': {},
  'lists.put': {},
};

/** A request for a platform key that the route would answer with success. */
export function sample(world: World, route: RouteId): Call {
  const spec = routeSpec(route);
  const body = BODIES[route];
  if (spec.body !== null && body === undefined) throw new Error(`no sample body for ${route}`);
  const answers = route in SEND_ROUTES && route !== 'messages.send';
  const byTenant = route === 'usage.get' || route === 'usage.daily';
  return {
    params: {
      tenant_id: world.tenant,
      identity_id: answers ? world.clerk : world.ann,
      message_id: answers ? world.clerksMessage : world.message,
      attachment_id: world.attachment,
      thread_id: world.thread,
      event_id: world.event,
      key_id: world.spareKey,
      purpose: 'cursor',
      token: world.link,
      webhook_id: world.webhook,
      address: HELD,
      ...LISTED,
    },
    query: {
      ...(byTenant ? { tenant_id: world.tenant } : {}),
      ...(route === 'identities.lookup' ? { address: 'ann.lab@agents.example' } : {}),
    },
    ...(body === undefined ? {} : { body }),
    headers: spec.idempotency === 'required' ? { 'idempotency-key': crypto.randomUUID() } : {},
  };
}

let operators: { key: Promise<string>; uses: number } | undefined;

/** A platform key with every permission, never the same one so often that it would be limited. */
export function operator(): Promise<string> {
  if (operators === undefined || operators.uses === 200) operators = { key: plantKey(), uses: 0 };
  operators.uses++;
  return operators.key;
}

/** One way to get one code, and the routes on which it is tried. */
export interface Provocation {
  code: ErrorCode;
  /** What is wrong with the request, beside others of the same code. */
  when: string;
  routes: readonly RouteId[];
  provoke: (world: World, route: RouteId) => Promise<Response>;
  /** What the answer says beyond what every answer of its code says. */
  also?: Also;
}

export type Also = (answer: Provoked) => void;

export interface Provoked {
  details: Record<string, unknown> | undefined;
  headers: Headers;
}

let people = 0;

/** Somebody new in the lab, for a case that changes the sender. */
export function somebody(world: World, body: object = {}): Promise<string> {
  people++;
  return person(world.root, world.tenant, `p${people}`, body);
}

/** Changes the policy of the lab, or of another tenant, while something runs. */
export async function withPolicy<T>(tenantId: string, policy: object, run: () => Promise<T>): Promise<T> {
  const [before] = await sql('SELECT policy_json FROM tenants WHERE id = ?', tenantId);
  await sql('UPDATE tenants SET policy_json = ? WHERE id = ?', JSON.stringify(policy), tenantId);
  try {
    return await run();
  } finally {
    await sql('UPDATE tenants SET policy_json = ? WHERE id = ?', before?.['policy_json'] ?? '{}', tenantId);
  }
}

/** Runs something in `ms` milliseconds from now. Only the clock is moved; timers and alarms keep theirs. */
export async function later<T>(ms: number, run: () => Promise<T>): Promise<T> {
  vi.setSystemTime(Date.now() + ms);
  try {
    return await run();
  } finally {
    vi.useRealTimers();
  }
}

const realTimeout = globalThis.setTimeout;

/** Lets deadlines of `ms` pass at once while something runs. */
export async function withoutPatience<T>(ms: number, run: () => Promise<T>): Promise<T> {
  const hurried = ((work: () => void, wait?: number) => realTimeout(work, wait === ms ? 1 : wait)) as typeof setTimeout;
  const spy = vi.spyOn(globalThis, 'setTimeout').mockImplementation(hurried);
  try {
    return await run();
  } finally {
    spy.mockRestore();
  }
}
