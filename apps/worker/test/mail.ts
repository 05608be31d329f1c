import { createMessageBatch, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import type { sendAnswer } from '@pmail/contracts/schemas/send.ts';
import type { Json } from '@pmail/core/canonical-json.ts';
import type { IdentityId, MessageId, TenantId } from '@pmail/core/ids.ts';
import type { InboundJob } from '@pmail/core/queue/jobs.ts';
import { rawKey } from '@pmail/core/storage/keys.ts';
import { routeIdentity } from '@pmail/engine/directory/routing.ts';
import { statement } from '@pmail/engine/sql.ts';
import { type MockInstance, vi } from 'vitest';
import type { z } from 'zod';
import { config } from '../src/env.ts';
import worker, { type IdentityMailbox } from '../src/index.ts';
import type { CallContext } from '../src/objects/calls.ts';
import type { TenantQuota } from '../src/objects/quota.ts';
import { mailboxStub, quotaStub, type Remote } from '../src/objects/remote.ts';
import { newId } from '../src/ports/random.ts';
import { hashAddress } from '../src/ports/secrets.ts';
import { type Body, call, db, identity, makeKey, send, sql, tenant } from './support.ts';

/** A test tenant with people who write to each other and to the simulator, and looks into where their mail is kept. */

export interface Lab {
  tenant: TenantId;
  /** Tenant key with every permission of its level. */
  key: string;
  ann: IdentityId;
  bob: IdentityId;
}

export async function makeLab(root: string, slug = 'lab'): Promise<Lab> {
  const { id } = await tenant(root, slug, { mode: 'test' });
  const [key, ann, bob] = await Promise.all([
    makeKey(root, { level: 'tenant', tenant_id: id }),
    person(root, id, 'ann'),
    person(root, id, 'bob'),
  ]);
  return { tenant: id, key, ann, bob };
}

export const OWNER = { name: 'Olga Owner', email: 'olga@example.com' };

/** An identity that may send. */
export async function person(root: string, tenantId: string, username: string, body: object = {}): Promise<IdentityId> {
  return (await identity(root, tenantId, username, { owner: OWNER, ...body })).id;
}

export type Letter = Body<'messages.send'>;

export function letter(changes: Partial<Letter> = {}): Letter {
  return { to: ['delivered@simulator.invalid'], subject: 'Hello', text: 'Hello there', ...changes };
}

/** An Idempotency-Key, a new one unless it is named. */
export function keyed(idempotencyKey: string = crypto.randomUUID()): Record<string, string> {
  return { 'idempotency-key': idempotencyKey };
}

/** Sends a message and gives the answer as it came. */
export function post(key: string, from: string, body: object = letter(), idempotencyKey?: string): Promise<Response> {
  return send(key, 'messages.send', { params: { identity_id: from }, body, headers: keyed(idempotencyKey) });
}

export type Sent = z.output<typeof sendAnswer>;

/** Sends a message that must be accepted. */
export async function accepted(
  key: string,
  from: string,
  body: object = letter(),
  idempotencyKey?: string,
): Promise<Sent> {
  const input = { params: { identity_id: from }, body, headers: keyed(idempotencyKey), status: 202 };
  return (await call(key, 'messages.send', input)) as Sent;
}

export type Answering = 'messages.reply' | 'messages.reply_all' | 'messages.forward';

/** Answers or forwards a message; the answer must be accepted. */
export async function answered(
  key: string,
  route: Answering,
  target: { identity_id: string; message_id: string },
  body: object = { text: 'Yes' },
  idempotencyKey?: string,
): Promise<Sent> {
  const input = { params: { ...target }, body, headers: keyed(idempotencyKey), status: 202 };
  return (await call(key, route, input)) as Sent;
}

/** Waits for something that the queues and alarms bring about by themselves. */
export function until<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: 30_000, interval: 100 });
}

export async function routeOf(identityId: string) {
  const route = await routeIdentity(db, identityId as IdentityId);
  if (route === undefined) throw new Error(`no identity ${identityId}`);
  return route;
}

/** The object of a mailbox; a stub breaks with its object, so each call makes a new one. */
export async function mailboxObject(identityId: string): Promise<DurableObjectStub<IdentityMailbox>> {
  const { mailbox_do_id: id } = await routeOf(identityId);
  return env.MAILBOX.get(env.MAILBOX.idFromString(id));
}

/** A mailbox as the Worker calls it, and the first argument of those calls. */
export async function mailboxRemote(identityId: string): Promise<{ stub: Remote<IdentityMailbox>; call: CallContext }> {
  const { mailbox_do_id: id, tenant_id, identity_id } = await routeOf(identityId);
  return { stub: mailboxStub(env, id), call: { v: 1, tenant_id, identity_id, request_id: 'test' } };
}

async function quotaId(tenantId: string): Promise<string> {
  const [row] = await sql('SELECT quota_do_id FROM tenants WHERE id = ?', tenantId);
  return String(row?.['quota_do_id']);
}

export async function quotaObject(tenantId: string): Promise<DurableObjectStub<TenantQuota>> {
  return env.QUOTA.get(env.QUOTA.idFromString(await quotaId(tenantId)));
}

export async function quotaRemote(tenantId: string): Promise<{ stub: Remote<TenantQuota>; call: CallContext }> {
  const stub = quotaStub(env, await quotaId(tenantId));
  return { stub, call: { v: 1, tenant_id: tenantId as TenantId, identity_id: null, request_id: 'test' } };
}

/** Runs a query in a mailbox. */
export async function inMailbox(identityId: string, query: string, ...bindings: SqlStorageValue[]): Promise<Row[]> {
  return runInDurableObject(await mailboxObject(identityId), (_mailbox, { storage }) =>
    storage.sql.exec<Row>(query, ...bindings).toArray(),
  );
}

type Row = Record<string, SqlStorageValue>;

/** Waits until a mailbox has told its events and owes nothing. */
export function atRest(...identities: string[]): Promise<void> {
  return until(async () => {
    for (const id of identities) {
      const open = await inMailbox(
        id,
        `SELECT 'event' AS what FROM outbox WHERE dispatched_at IS NULL UNION ALL SELECT 'debt' FROM quota_tasks
         UNION ALL SELECT k FROM meta WHERE k IN ('alarm:outbox', 'alarm:quota')`,
      );
      if (open.length > 0) throw new Error(`${id} is not at rest: ${JSON.stringify(open)}`);
    }
  });
}

/** What the queue of arrived mail says of one mail, whose bytes are stored. */
export async function arrived(to: string, raw: string, changes: Partial<InboundJob> = {}): Promise<InboundJob> {
  const { tenant_id, identity_id } = await routeOf(to);
  const [address] = await sql("SELECT address FROM addresses WHERE identity_id = ? AND role = 'primary'", to);
  const id = newId('msg', Date.now());
  const key = rawKey({ tenant_id, identity_id }, id);
  const bytes = new TextEncoder().encode(raw.replace(/\r?\n/g, '\r\n'));
  await env.BLOBS.put(key, bytes);
  return {
    v: 1,
    kind: 'message',
    source: { type: 'routing' },
    message_id: id,
    tenant_id,
    identity_id,
    r2_key: key,
    raw_size: bytes.length,
    envelope_from: 'sender@example.org',
    envelope_to: String(address?.['address']),
    received_at: Date.now(),
    request_id: newId('req', Date.now()),
    loopback: null,
    ...changes,
  };
}

/** Lets mail arrive as the queue brings it. */
export async function arrive(to: string, raw: string, changes: Partial<InboundJob> = {}): Promise<MessageId> {
  const body = await arrived(to, raw, changes);
  const { message_id: id } = body;
  const batch = createMessageBatch('pm-inbound', [{ id, timestamp: new Date(), attempts: 1, body }]);
  await worker.queue(batch, env);
  return id;
}

/** Watches what goes on the queues; nothing is kept from them. */
export function watchQueues(): { outbound: MockInstance; inbound: MockInstance } {
  return { outbound: vi.spyOn(env.Q_OUTBOUND, 'send'), inbound: vi.spyOn(env.Q_INBOUND, 'send') };
}

const NO_TABLES = /^(_cf_|fts_|sqlite_|d1_)/;

function tablesOf(names: unknown[]): string[] {
  return names.map(String).filter((name) => !NO_TABLES.test(name));
}

const TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name";

async function dump(object: DurableObjectStub<undefined>): Promise<Json> {
  return runInDurableObject(object, (_object, { storage }) => {
    const names = tablesOf([...storage.sql.exec(TABLES)].map(({ name }) => name));
    return Object.fromEntries(names.map((name) => [name, [...storage.sql.exec(`SELECT * FROM ${name}`)]])) as Json;
  });
}

/** Everything that a deployment has stored: the rows of directory, mailboxes and quotas, and the objects' names. */
export async function stored(): Promise<Record<string, Json>> {
  const all: Record<string, Json> = {};
  const names = tablesOf((await sql(TABLES)).map(({ name }) => name));
  const tables = await db.batch(names.map((name) => statement(`SELECT * FROM ${name}`)));
  for (const [index, name] of names.entries()) {
    // When a key was last used is written for every request.
    all[name] = (tables[index] ?? []).map(({ last_used_at: _used, ...row }) => row) as Json;
  }
  const keep = async (id: unknown, namespace: DurableObjectNamespace, object: unknown): Promise<void> => {
    all[String(id)] = await dump(namespace.get(namespace.idFromString(String(object))));
  };
  const identities = await sql('SELECT id, mailbox_do_id FROM identities');
  const tenants = await sql('SELECT id, quota_do_id FROM tenants');
  await Promise.all([
    ...identities.map(({ id, mailbox_do_id: object }) => keep(id, env.MAILBOX as never, object)),
    ...tenants.map(({ id, quota_do_id: object }) => keep(id, env.QUOTA as never, object)),
  ]);
  all['blobs'] = (await env.BLOBS.list()).objects.map(({ key }) => key);
  return all;
}

/** Accepts a message and keeps it from its queue, so that it waits in the mailbox. */
export async function waiting(
  key: string,
  from: string,
  body: object = letter(),
  idempotencyKey?: string,
): Promise<Sent> {
  const queued = Promise.withResolvers<void>();
  const queue = env.Q_OUTBOUND.send.bind(env.Q_OUTBOUND);
  const lost = vi.spyOn(env.Q_OUTBOUND, 'send').mockImplementation(async (job, options) => {
    if (job.kind !== 'send' || job.identity_id !== from) return queue(job, options);
    queued.resolve();
    throw new Error('the queue is away');
  });
  try {
    const sent = await accepted(key, from, body, idempotencyKey);
    await queued.promise;
    return sent;
  } finally {
    lost.mockRestore();
  }
}

/** An address on the tenant's suppression list. */
export async function suppressAddress(tenantId: string, address: string, reason: string): Promise<void> {
  await sql(
    `INSERT INTO suppressions (tenant_id, address_hash, address_hint, reason, created_at) VALUES (?, ?, 'hint', ?, 0)`,
    tenantId,
    await hashAddress(config(env).hash_key, address),
    reason,
  );
}

/** An address on the tenant's list of those nobody may write to. */
export async function blockAddress(tenantId: string, entry: string): Promise<void> {
  await sql(
    "INSERT INTO sender_lists (tenant_id, direction, kind, entry, created_at) VALUES (?, 'send', 'block', ?, 0)",
    tenantId,
    entry,
  );
}
