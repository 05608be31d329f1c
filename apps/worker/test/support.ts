import { runInDurableObject } from 'cloudflare:test';
import { env, exports } from 'cloudflare:workers';
import { type KeyLevel, PERMISSIONS, type Permission } from '@pmail/contracts/permissions.ts';
import { errorsOf, type RouteAnswer, type RouteId, type RouteInput, routeSpec } from '@pmail/contracts/routes.ts';
import { ERRORS, type ErrorCode, type WireError } from '@pmail/core/errors.ts';
import type { EventEnvelope } from '@pmail/core/events/types.ts';
import { makeApiKey } from '@pmail/core/keys/api-key.ts';
import { insertKeyStatement, type KeyRow } from '@pmail/engine/directory/keys.ts';
import { queryAll, type SqlValue, statement } from '@pmail/engine/sql.ts';
import { expect } from 'vitest';
import { config } from '../src/env.ts';
import { hashKey } from '../src/http/auth.ts';
import { newId } from '../src/ports/random.ts';
import { d1 } from '../src/ports/sql.ts';

/** A caller of the API that holds every answer against the contract, and a deployment to call. */

export const db = d1(env.DB);

export const PLATFORM_DOMAIN = newId('dom', Date.now());

export function sql(query: string, ...bindings: SqlValue[]): Promise<Record<string, SqlValue>[]> {
  return queryAll(db, query, ...bindings);
}

export const ALL = Object.keys(PERMISSIONS) as Permission[];

/** Every permission that a key of this level can hold. */
export function allOf(level: KeyLevel): Permission[] {
  return ALL.filter((name) => PERMISSIONS[name].levels.includes(level));
}

/** Puts a key in place past the API, whatever its level and permissions. */
export async function plantKey(changes: Partial<KeyRow> = {}): Promise<string> {
  const { key, lookup } = makeApiKey('live', crypto.getRandomValues(new Uint8Array(40)));
  const row: KeyRow = {
    id: newId('key', Date.now()),
    lookup,
    hash: await hashKey(config(env).key_pepper, key),
    prev_hash: null,
    prev_expires_at: null,
    name: 'planted',
    level: 'platform',
    tenant_id: null,
    identity_id: null,
    mode: 'live',
    permissions_json: JSON.stringify(ALL),
    created_by_key_id: null,
    expires_at: null,
    revoked_at: null,
    last_used_at: null,
    created_at: Date.now(),
    ...changes,
  };
  await db.batch([
    insertKeyStatement(row),
    statement('UPDATE api_keys SET revoked_at = ? WHERE id = ?', row.revoked_at, row.id),
  ]);
  return key;
}

/** A platform key as the setup makes it. */
export function platformKey(permissions: Permission[] = ALL): Promise<string> {
  return plantKey({ permissions_json: JSON.stringify(permissions) });
}

/** The platform domain and a platform key with every permission. */
export async function deploy(): Promise<string> {
  await db.batch([domainStatement(PLATFORM_DOMAIN, null, 'agents.example', { kind: 'platform', method: 'platform' })]);
  return platformKey();
}

interface DomainChanges {
  kind?: string;
  method?: string;
  state?: string;
  routing_mode?: string;
  inbound?: string;
}

export function domainStatement(id: string, tenant: string | null, name: string, changes: DomainChanges = {}) {
  const { kind = 'external', method = 'dns_records', state = 'healthy' } = changes;
  return statement(
    `INSERT INTO domains (id, tenant_id, name, kind, method, is_apex, routing_mode, inbound, transport, reply_token,
       receiving, sending, state, state_changed_at, created_at, updated_at)
     VALUES (?, ?, ?, ?, ?, 1, ?, ?, 'cloudflare', 'subaddress', 1, 1, ?, 0, 0, 0)`,
    id,
    tenant,
    name,
    kind,
    method,
    changes.routing_mode ?? 'catch_all',
    changes.inbound ?? 'routing',
    state,
  );
}

export async function addDomain(tenant: string, name: string, changes: DomainChanges = {}): Promise<string> {
  const id = newId('dom', Date.now());
  await db.batch([domainStatement(id, tenant, name, changes)]);
  return id;
}

export interface Call {
  params?: Record<string, string>;
  query?: Record<string, string>;
  body?: unknown;
  headers?: Record<string, string>;
}

/** Where a route of the contract is, its parameters filled in. */
export function urlOf(id: RouteId, { params = {}, query = {} }: Call = {}): string {
  const filled = routeSpec(id).path.replace(/\{(\w+)\}/g, (_all, name: string) =>
    encodeURIComponent(params[name] ?? ''),
  );
  const search = new URLSearchParams(query).toString();
  return `https://api.example${filled}${search === '' ? '' : `?${search}`}`;
}

/** A request of the contract as it is declared there. */
export function requestOf(key: string | null, id: RouteId, call: Call = {}): Request {
  const { body, headers = {} } = call;
  return new Request(urlOf(id, call), {
    method: routeSpec(id).method,
    headers: {
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

export function send(key: string | null, id: RouteId, call: Call = {}): Promise<Response> {
  return exports.default.fetch(requestOf(key, id, call));
}

/** Sends a request whose body is exactly these bytes. */
export function sendBytes(
  key: string,
  id: RouteId,
  body: BodyInit | null,
  call: Omit<Call, 'body'> = {},
): Promise<Response> {
  return exports.default.fetch(urlOf(id, call), {
    method: routeSpec(id).method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...call.headers },
    body,
  });
}

/** A body that the route's schema takes. */
export type Body<K extends RouteId> = RouteInput<K>['body'];

/** Calls a route that must succeed; the body must be what the contract says. */
export async function call<K extends RouteId>(
  key: string,
  id: K,
  input: Call & { status?: number } = {},
): Promise<RouteAnswer<K>['body']> {
  const response = await send(key, id, input);
  const text = await response.text();
  const declared = routeSpec(id).success.find(({ status }) => status === response.status);
  expect(declared, `${id} answered ${response.status} ${text}`).toBeDefined();
  if (input.status !== undefined) expect(response.status).toBe(input.status);
  if (declared?.schema === null || declared === undefined) {
    expect(text).toBe('');
    return null;
  }
  const body = JSON.parse(text) as RouteAnswer<K>['body'];
  const parsed = declared.schema.safeParse(body);
  expect(parsed.error, `${id} answered ${text}`).toBeUndefined();
  return body;
}

/** Calls a route that must refuse, with a code that the contract declares for it. */
export async function refusal(
  key: string | null,
  id: RouteId,
  input: Call = {},
): Promise<{ code: ErrorCode } & Record<string, unknown>> {
  const response = await send(key, id, input);
  const text = await response.text();
  expect(response.status, `${id} answered ${text}`).toBeGreaterThanOrEqual(400);
  const { code, details } = (JSON.parse(text) as WireError).error;
  expect(response.status).toBe(ERRORS[code].status);
  expect(errorsOf(routeSpec(id))).toContain(code);
  return { code, ...details };
}

/** Statuses of several answers, rising. */
export function statuses(answers: Response[]): number[] {
  return answers.map(({ status }) => status).sort((a, b) => a - b);
}

/** The paths that an answer `invalid_request` (or one like it) names. */
export function paths(answer: Record<string, unknown>): string[] {
  return (answer['errors'] as { path: string }[]).map(({ path }) => path);
}

export async function tenant(
  key: string,
  slug: string,
  body: object = {},
): Promise<RouteAnswer<'tenants.create'>['body']> {
  return call(key, 'tenants.create', { body: { slug, name: slug, mode: 'live', ...body } });
}

export async function identity(
  key: string,
  tenantId: string,
  username: string,
  body: object = {},
): Promise<RouteAnswer<'identities.create'>['body']> {
  const full = { username, display_name: username, ...body };
  return call(key, 'identities.create', { params: { tenant_id: tenantId }, body: full, status: 201 });
}

export async function makeKey(
  key: string,
  body: { level: KeyLevel; tenant_id?: string; identity_id?: string; permissions?: Permission[] },
): Promise<string> {
  const full = { name: body.level, permissions: allOf(body.level), ...body };
  const { secret } = await call(key, 'keys.create', { body: full });
  return secret ?? '';
}

/** Events of an identity's mailbox in the order in which it told them. */
export async function eventsOf(identityId: string): Promise<EventEnvelope[]> {
  const [row] = await sql('SELECT mailbox_do_id FROM identities WHERE id = ?', identityId);
  const stub = env.MAILBOX.get(env.MAILBOX.idFromString(String(row?.['mailbox_do_id'])));
  return runInDurableObject(stub, (_instance, { storage }) =>
    storage.sql
      .exec<{ payload_json: string }>('SELECT payload_json FROM outbox ORDER BY seq')
      .toArray()
      .map(({ payload_json }) => JSON.parse(payload_json) as EventEnvelope),
  );
}

export async function eventTypes(identityId: string): Promise<string[]> {
  return (await eventsOf(identityId)).map(({ type }) => type);
}

/** Actions in the audit log about one thing, oldest first. */
export async function audited(target: string): Promise<unknown[]> {
  const rows = await sql('SELECT action FROM audit_log WHERE target_id = ? ORDER BY created_at, id', target);
  return rows.map(({ action }) => action);
}
