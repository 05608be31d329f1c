import { canHold, grants, KEY_LEVELS, type Permission } from '@pmail/contracts/permissions.ts';
import type { RouteHandler, RouteId, RouteInput } from '@pmail/contracts/routes.ts';
import type { apiKey } from '@pmail/contracts/schemas/key.ts';
import { type IdentityId, type KeyId, parseId, type TenantId } from '@pmail/core/ids.ts';
import { makeApiKey } from '@pmail/core/keys/api-key.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { invalidRequest, ok, type Refusal, type Result, refuse } from '@pmail/core/result.ts';
import { parseRfc3339, rfc3339, rfc3339OrNull } from '@pmail/core/time.ts';
import type { AuditEntry } from '@pmail/engine/directory/audit.ts';
import { addKey, findKey, type KeyRow, listKeys, revokeKey, rotateKey } from '@pmail/engine/directory/keys.ts';
import {
  type IdentityRef,
  identityStatement,
  type TenantRef,
  tenantStatement,
} from '@pmail/engine/directory/owners.ts';
import { queryFirst } from '@pmail/engine/sql.ts';
import type { z } from 'zod';
import { newId } from '../../ports/random.ts';
import { auditEntry } from '../audit.ts';
import { hashKey } from '../auth.ts';
import { type RequestContext, reachesIdentity, reachesTenant } from '../context.ts';
import { byCreation, pageOf } from '../page.ts';

type Group = { [K in Extract<RouteId, `keys.${string}`>]: RouteHandler<K, RequestContext> };

const HOUR_MS = 3_600_000;

function keyResource(row: KeyRow): z.input<typeof apiKey> {
  return {
    id: row.id,
    name: row.name,
    level: row.level,
    mode: row.mode,
    tenant_id: row.tenant_id,
    identity_id: row.identity_id,
    permissions: permissionsOf(row),
    expires_at: rfc3339OrNull(row.expires_at),
    revoked_at: rfc3339OrNull(row.revoked_at),
    last_used_at: rfc3339OrNull(row.last_used_at),
    created_by_key_id: row.created_by_key_id,
    created_at: rfc3339(row.created_at),
  };
}

function permissionsOf(row: KeyRow): Permission[] {
  return JSON.parse(row.permissions_json) as Permission[];
}

/** Whether a key would be wider than the one that asks: of a wider level, or with a permission that one lacks. */
function isWider({ key }: RequestContext, level: KeyRow['level'], permissions: readonly Permission[]): boolean {
  if (KEY_LEVELS.indexOf(level) < KEY_LEVELS.indexOf(key.level)) return true;
  return permissions.some((permission) => !grants(key.permissions, permission));
}

/** What a new key reaches, taken from the body and, where that is silent, from the key that makes it. */
interface Reach {
  tenant_id: TenantId | null;
  identity_id: IdentityId | null;
  mode: KeyRow['mode'];
}

type CreateBody = RouteInput<'keys.create'>['body'];

const PLATFORM_REACH: Reach = { tenant_id: null, identity_id: null, mode: 'live' };

async function reachOf(context: RequestContext, body: CreateBody): Promise<Result<Reach>> {
  if (body.level === 'platform') return ok(PLATFORM_REACH);
  const identity = body.level === 'identity' ? await identityOf(context, body) : ok(null);
  if (!identity.ok) return identity;
  const wanted = body.tenant_id ?? identity.value?.tenant_id ?? context.key.tenant_id;
  if (wanted === null) return invalidRequest({ path: 'tenant_id', message: 'is required' });
  const tenantId = parseId('ten', wanted);
  if (tenantId === undefined || !reachesTenant(context.key, tenantId)) return refuse('tenant_not_found');
  const { sql, bindings } = tenantStatement(tenantId);
  const tenant = await queryFirst<TenantRef>(context.db, sql, ...bindings);
  // A key of a tenant on its way out would not authenticate.
  if (tenant === undefined || tenant.status === 'erasing' || tenant.status === 'erased') {
    return refuse('tenant_not_found');
  }
  if (identity.value !== null && identity.value.tenant_id !== tenantId) return refuse('identity_not_found');
  return ok({ tenant_id: tenantId, identity_id: identity.value?.id ?? null, mode: tenant.mode });
}

async function identityOf(context: RequestContext, body: CreateBody): Promise<Result<IdentityRef>> {
  const wanted = body.identity_id ?? context.key.identity_id;
  if (wanted === null) return invalidRequest({ path: 'identity_id', message: 'is required' });
  const id = parseId('idn', wanted);
  const identity = id === undefined ? undefined : await readIdentity(context, id);
  if (identity === undefined || !reachesIdentity(context.key, identity)) return refuse('identity_not_found');
  if (identity.status === 'deleting' || identity.status === 'deleted') return refuse('identity_not_found');
  return ok(identity);
}

function readIdentity({ db }: RequestContext, id: IdentityId): Promise<IdentityRef | undefined> {
  const { sql, bindings } = identityStatement(id);
  return queryFirst<IdentityRef>(db, sql, ...bindings);
}

/** What is wrong with a new key before anything is read: permissions, level and expiry. */
function checkNewKey(context: RequestContext, body: CreateBody): Refusal | null {
  const unfit = body.permissions.flatMap((permission, index) =>
    canHold(body.level, permission)
      ? []
      : [{ path: `permissions[${index}]`, message: `cannot be held by a key of level ${body.level}` }],
  );
  if (unfit.length > 0) {
    return refuse('invalid_request', { errors: unfit, reason: 'permission_not_allowed_for_level' });
  }
  if (isWider(context, body.level, body.permissions)) return refuse('key_scope_exceeded');
  return expiryOf(body) <= context.now
    ? invalidRequest({ path: 'expires_at', message: 'must lie in the future' })
    : null;
}

function expiryOf({ expires_at: text }: CreateBody): number {
  return text === undefined || text === null
    ? Number.POSITIVE_INFINITY
    : (parseRfc3339(text) ?? Number.NEGATIVE_INFINITY);
}

/** The key that a path names, when it is one of those that the list shows to the asking key. */
async function findReached(context: RequestContext, id: KeyId): Promise<Result<KeyRow>> {
  const { key, db } = context;
  const row = await findKey(db, id);
  if (row === undefined) return refuse('key_not_found');
  if (key.level === 'platform') return ok(row);
  if (row.tenant_id !== key.tenant_id) return refuse('key_not_found');
  // Of the tenant's own keys an identity is not even told that there are any.
  if (row.identity_id === null) return key.level === 'tenant' ? ok(row) : refuse('key_not_found');
  const identity = await readIdentity(context, row.identity_id);
  return identity !== undefined && reachesIdentity(key, identity) ? ok(row) : refuse('key_not_found');
}

/** The same for a change: who could end or take over a wider key would reach further than its own goes. */
async function findChangeable(context: RequestContext, id: KeyId): Promise<Result<KeyRow>> {
  const found = await findReached(context, id);
  if (!found.ok) return found;
  const { level } = found.value;
  return isWider(context, level, permissionsOf(found.value)) ? refuse('key_scope_exceeded') : found;
}

function audit(context: RequestContext, action: string, row: KeyRow, details: AuditEntry['details']): AuditEntry {
  return auditEntry(context, action, { tenant_id: row.tenant_id, target_type: 'key', target_id: row.id }, details);
}

function entropy(): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(40));
}

export const keyHandlers: Group = {
  'keys.create': async (context, { body }) => {
    const fault = checkNewKey(context, body);
    if (fault !== null) return fault;
    const reach = await reachOf(context, body);
    if (!reach.ok) return reach;
    const made = makeApiKey(reach.value.mode, entropy());
    const expiry = expiryOf(body);
    const row: KeyRow = {
      ...reach.value,
      id: newId('key', context.now),
      lookup: made.lookup,
      hash: await hashKey(context.config.key_pepper, made.key),
      prev_hash: null,
      prev_expires_at: null,
      name: body.name,
      level: body.level,
      permissions_json: JSON.stringify([...new Set(body.permissions)]),
      created_by_key_id: context.key.id,
      expires_at: Number.isFinite(expiry) ? expiry : null,
      revoked_at: null,
      last_used_at: null,
      created_at: context.now,
    };
    const max = LIMITS.keys_per_tenant_max;
    const details = { level: row.level, permissions: permissionsOf(row) };
    const added = await addKey(context.db, row, max, audit(context, 'key.create', row, details));
    if (!added) return refuse('key_limit_reached', { limit: max });
    return ok({ status: 201 as const, body: { ...keyResource(row), secret: made.key } });
  },

  'keys.list': async (context, input) => {
    return pageOf(context, 'keys.list', input, {
      read: (limit, after) => listKeys(context.db, context.key, limit, after),
      position: byCreation,
      show: (rows) => rows.map(keyResource),
    });
  },

  'keys.get': async (context, { params }) => {
    const found = await findReached(context, params.key_id as KeyId);
    return found.ok ? ok({ status: 200 as const, body: keyResource(found.value) }) : found;
  },

  'keys.revoke': async (context, { params }) => {
    const found = await findChangeable(context, params.key_id as KeyId);
    if (!found.ok) return found;
    const { value: row } = found;
    await revokeKey(context.db, row.id, context.now, audit(context, 'key.revoke', row, null));
    return ok({ status: 204 as const, body: null });
  },

  'keys.rotate': async (context, { params, body }) => {
    const found = await findChangeable(context, params.key_id as KeyId);
    if (!found.ok) return found;
    const row = found.value;
    // A new secret would not bring it back.
    const ended = row.revoked_at !== null || (row.expires_at !== null && row.expires_at <= context.now);
    if (ended) return refuse('key_not_found');
    const made = makeApiKey(row.mode, entropy(), row.lookup);
    const overlap = body.overlap_hours === 0 ? null : context.now + body.overlap_hours * HOUR_MS;
    const hash = await hashKey(context.config.key_pepper, made.key);
    const { overlap_hours } = body;
    const entry = audit(context, 'key.rotate', row, { overlap_hours });
    if (!(await rotateKey(context.db, row.id, hash, overlap, entry))) return refuse('key_not_found');
    return ok({ status: 200 as const, body: { ...keyResource(row), secret: made.key } });
  },
};
