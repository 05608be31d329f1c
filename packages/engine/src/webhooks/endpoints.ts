import type { EventType } from '@pmail/core/events/types.ts';
import type { Id, IdentityId, TenantId } from '@pmail/core/ids.ts';
import { type AuditEntry, auditStatement } from '../directory/audit.ts';
import { type Db, queryAll, queryFirst, statement } from '../sql.ts';

export type EndpointId = Id<'whk'>;

/** A row of webhook_endpoints. Secrets stand there sealed. */
export interface EndpointRow {
  id: EndpointId;
  /** Null for an endpoint of the platform, which hears of every tenant. */
  tenant_id: TenantId | null;
  url: string;
  description: string | null;
  event_types_json: string;
  identity_ids_json: string | null;
  enabled: 0 | 1;
  disabled_reason: 'manual' | 'failing' | 'url_changed' | null;
  secret_enc: string;
  prev_secret_enc: string | null;
  prev_secret_expires_at: number | null;
  consecutive_failures: number;
  first_failure_at: number | null;
  created_at: number;
  updated_at: number;
}

export interface NewEndpoint {
  id: EndpointId;
  tenant_id: TenantId | null;
  url: string;
  description?: string | null;
  /** Types, or `*` for all. */
  types: readonly string[];
  /** Null for all of its owner's. */
  identities?: readonly IdentityId[] | null;
  secret_enc: string;
}

/** The row of an endpoint as it begins: on, and without a failure. */
export function newEndpoint(
  { types, identities = null, description = null, ...given }: NewEndpoint,
  at: number,
): EndpointRow {
  return {
    ...given,
    description,
    event_types_json: JSON.stringify(types),
    identity_ids_json: identities === null ? null : JSON.stringify(identities),
    enabled: 1,
    disabled_reason: null,
    prev_secret_enc: null,
    prev_secret_expires_at: null,
    consecutive_failures: 0,
    first_failure_at: null,
    created_at: at,
    updated_at: at,
  };
}

export function findEndpoint(db: Db, id: EndpointId): Promise<EndpointRow | undefined> {
  return queryFirst<EndpointRow>(db, 'SELECT * FROM webhook_endpoints WHERE id = ?', id);
}

/** Newest first. Null as tenant means the platform's own, undefined everybody's. */
export function listEndpoints(
  db: Db,
  tenant: TenantId | null | undefined,
  limit: number,
  after: { at: number; id: string } | null,
): Promise<EndpointRow[]> {
  const scope = tenant === undefined ? '1' : 'tenant_id IS ?';
  const bindings = tenant === undefined ? [] : [tenant];
  return queryAll<EndpointRow>(
    db,
    `SELECT * FROM webhook_endpoints WHERE ${scope} AND (? IS NULL OR (created_at, id) < (?, ?))
     ORDER BY created_at DESC, id DESC LIMIT ?`,
    ...bindings,
    after?.at ?? null,
    after?.at ?? null,
    after?.id ?? null,
    limit,
  );
}

/** Endpoints that may want to hear of an event: the tenant's and the platform's, those that are on. */
export function listeners(db: Db, tenant: TenantId | null): Promise<EndpointRow[]> {
  return queryAll<EndpointRow>(
    db,
    'SELECT * FROM webhook_endpoints WHERE enabled = 1 AND (tenant_id IS NULL OR tenant_id IS ?) ORDER BY id',
    tenant,
  );
}

/** Whether an endpoint subscribed to an event. Events without an identity go only to endpoints that name none. */
export function wants(
  endpoint: Pick<EndpointRow, 'tenant_id' | 'event_types_json' | 'identity_ids_json'>,
  event: { type: EventType; identity_id: IdentityId | null; of_system: boolean },
): boolean {
  if (endpoint.tenant_id !== null && (event.of_system || event.type === 'webhook.disabled')) return false;
  const types = JSON.parse(endpoint.event_types_json) as string[];
  if (!types.includes('*') && !types.includes(event.type)) return false;
  const identities = JSON.parse(endpoint.identity_ids_json ?? 'null') as IdentityId[] | null;
  return identities === null || (event.identity_id !== null && identities.includes(event.identity_id));
}

/** Whether an endpoint may name these identities: those of its tenant; for the platform's any but one that is gone. */
export async function mayName(db: Db, tenant: TenantId | null, ids: readonly IdentityId[]): Promise<boolean> {
  const found = await queryAll(
    db,
    `SELECT 1 FROM identities WHERE id IN (SELECT value FROM json_each(?1)) AND status IN ('active', 'paused')
       AND (?2 IS NULL OR (tenant_id = ?2 AND is_system = 0))`,
    JSON.stringify(ids),
    tenant,
  );
  return found.length === ids.length;
}

/**
 * Adds an endpoint unless its owner has `max` of them; the count is taken in the same transaction.
 *
 * @returns whether it was added
 */
export async function addEndpoint(db: Db, row: EndpointRow, max: number, audit: AuditEntry): Promise<boolean> {
  const added = statement('EXISTS (SELECT 1 FROM webhook_endpoints WHERE id = ?)', row.id);
  const results = await db.batch([
    statement(
      `INSERT INTO webhook_endpoints (id, tenant_id, url, description, event_types_json, identity_ids_json, secret_enc,
         created_at, updated_at)
       SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8
       WHERE (SELECT COUNT(*) FROM webhook_endpoints WHERE tenant_id IS ?2) < ?9`,
      row.id,
      row.tenant_id,
      row.url,
      row.description,
      row.event_types_json,
      row.identity_ids_json,
      row.secret_enc,
      row.created_at,
      max,
    ),
    auditStatement(audit, added),
    statement('SELECT 1 FROM webhook_endpoints WHERE id = ?', row.id),
  ]);
  return results.at(-1)?.length === 1;
}

export interface EndpointChange
  extends Pick<
    EndpointRow,
    'url' | 'description' | 'event_types_json' | 'identity_ids_json' | 'enabled' | 'disabled_reason'
  > {
  /** Whether the failures so far are forgotten. */
  forgets: boolean;
}

/**
 * Writes a change that was worked out from `seen`.
 *
 * @returns the row after it, or undefined when somebody else has changed it since
 */
export async function changeEndpoint(
  db: Db,
  seen: EndpointRow,
  change: EndpointChange,
  now: number,
  audit: AuditEntry,
): Promise<EndpointRow | undefined> {
  const unchanged = statement(
    `EXISTS (SELECT 1 FROM webhook_endpoints WHERE id = ? AND updated_at = ? AND enabled = ? AND url = ?)`,
    seen.id,
    seen.updated_at,
    seen.enabled,
    seen.url,
  );
  // Two changes in one millisecond must still look different.
  const updatedAt = Math.max(now, seen.updated_at + 1);
  const results = await db.batch([
    auditStatement(audit, unchanged),
    statement(
      `UPDATE webhook_endpoints SET url = ?, description = ?, event_types_json = ?, identity_ids_json = ?, enabled = ?,
         disabled_reason = ?, updated_at = ?,
         consecutive_failures = CASE WHEN ? THEN 0 ELSE consecutive_failures END,
         first_failure_at = CASE WHEN ? THEN NULL ELSE first_failure_at END
       WHERE id = ? AND ${unchanged.sql} RETURNING *`,
      change.url,
      change.description,
      change.event_types_json,
      change.identity_ids_json,
      change.enabled,
      change.disabled_reason,
      updatedAt,
      change.forgets ? 1 : 0,
      change.forgets ? 1 : 0,
      seen.id,
      ...unchanged.bindings,
    ),
  ]);
  return results[1]?.[0] as EndpointRow | undefined;
}

/**
 * Whether nobody has answered yet at the URL that an endpoint was given last. One that its owner switched off does not say
 * so itself: why it is off is then its owner's word. When the URL changed stands in the log, in the entry of that change.
 */
export async function isUntested(db: Db, { id, tenant_id, created_at }: EndpointRow): Promise<boolean> {
  const moved = await queryFirst(
    db,
    `SELECT 1 FROM audit_log a
     WHERE a.tenant_id IS ?1 AND a.created_at >= ?2 AND a.target_id = ?3 AND json_extract(a.details_json, '$.moved') = 1
       AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d
         WHERE d.endpoint_id = ?3 AND d.created_at >= a.created_at AND d.status = 'succeeded')
     LIMIT 1`,
    tenant_id,
    created_at,
    id,
  );
  return moved !== undefined;
}

export async function deleteEndpoint(db: Db, id: EndpointId, audit: AuditEntry): Promise<void> {
  await db.batch([
    auditStatement(audit, statement('EXISTS (SELECT 1 FROM webhook_endpoints WHERE id = ?)', id)),
    statement('DELETE FROM webhook_endpoints WHERE id = ?', id),
  ]);
}

/**
 * Replaces the secret that was seen; deliveries carry the signatures of both until the overlap ends (Unix ms; null: at
 * once).
 *
 * @returns the row after it, or undefined when somebody else has replaced the secret, or the endpoint is gone
 */
export async function rotateEndpointSecret(
  db: Db,
  seen: EndpointRow,
  sealed: { secret_enc: string; prev_secret_enc: string | null; prev_secret_expires_at: number | null },
  now: number,
  audit: AuditEntry,
): Promise<EndpointRow | undefined> {
  const results = await db.batch([
    auditStatement(
      audit,
      statement('EXISTS (SELECT 1 FROM webhook_endpoints WHERE id = ? AND secret_enc = ?)', seen.id, seen.secret_enc),
    ),
    statement(
      `UPDATE webhook_endpoints SET secret_enc = ?, prev_secret_enc = ?, prev_secret_expires_at = ?,
         updated_at = MAX(?, updated_at + 1) WHERE id = ? AND secret_enc = ? RETURNING *`,
      sealed.secret_enc,
      sealed.prev_secret_enc,
      sealed.prev_secret_expires_at,
      now,
      seen.id,
      seen.secret_enc,
    ),
  ]);
  return results[1]?.[0] as EndpointRow | undefined;
}
