import type { EventEnvelope } from '@pmail/core/events/types.ts';
import type { IdentityId, TenantId } from '@pmail/core/ids.ts';
import { type Billing, type BillingMode, FEATURES, type Granted } from '../quota/types.ts';
import { type Db, queryAll, queryFirst, type Statement, statement } from '../sql.ts';
import { type AuditEntry, auditStatement } from './audit.ts';
import { brokenConstraint } from './broken-constraint.ts';
import { platformEventStatement } from './policy.ts';

/** A row of tenants. `updated_at` rises with every change, so it also tells whether somebody else changed the row. */
export interface TenantRow {
  id: TenantId;
  slug: string;
  name: string;
  owner_name: string | null;
  owner_email: string | null;
  mode: 'live' | 'test';
  status: 'active' | 'suspended' | 'erasing' | 'erased';
  suspended_at: number | null;
  suspended_by: 'platform' | null;
  address_suffix: string;
  suffix_fold: string;
  timezone: string;
  policy_json: string;
  policy_ceilings_json: string;
  policy_version: number;
  billing_mode: BillingMode;
  granted_json: string;
  quota_do_id: string;
  created_at: number;
  updated_at: number;
}

export function findTenant(db: Db, id: TenantId): Promise<TenantRow | undefined> {
  return queryFirst<TenantRow>(db, 'SELECT * FROM tenants WHERE id = ?', id);
}

/** Newest first. */
export function listTenants(
  db: Db,
  filter: { status?: string | undefined; mode?: string | undefined },
  limit: number,
  after: { at: number; id: string } | null,
): Promise<TenantRow[]> {
  return queryAll<TenantRow>(
    db,
    `SELECT * FROM tenants
     WHERE (?1 IS NULL OR status = ?1) AND (?2 IS NULL OR mode = ?2)
       AND (?3 IS NULL OR (created_at, id) < (?3, ?4))
     ORDER BY created_at DESC, id DESC LIMIT ?5`,
    filter.status ?? null,
    filter.mode ?? null,
    after?.at ?? null,
    after?.id ?? null,
    limit,
  );
}

export type TenantNames = Pick<TenantRow, 'slug' | 'address_suffix' | 'suffix_fold'>;

/** Which of a new tenant's names another one has already. */
export async function takenName(db: Db, names: TenantNames): Promise<'slug_taken' | 'suffix_taken' | null> {
  const rows = await queryAll<TenantNames>(
    db,
    `SELECT slug, address_suffix, suffix_fold FROM tenants
     WHERE slug = ?1 OR address_suffix = ?2 OR (suffix_fold = ?3 AND ?3 <> '')`,
    names.slug,
    names.address_suffix,
    names.suffix_fold,
  );
  if (rows.length === 0) return null;
  return rows.some(({ slug }) => slug === names.slug) ? 'slug_taken' : 'suffix_taken';
}

/** Adds a tenant with its audit entry, or says which name is taken. */
export async function insertTenant(
  db: Db,
  row: TenantRow,
  audit: AuditEntry,
): Promise<'created' | 'slug_taken' | 'suffix_taken'> {
  try {
    await db.batch([insertStatement(row), auditStatement(audit)]);
    return 'created';
  } catch (error) {
    if (brokenConstraint(error)?.startsWith('UNIQUE tenants.') !== true) throw error;
    // Of several names that are taken the error tells whichever was checked first.
    const taken = await takenName(db, row);
    if (taken === null) throw error;
    return taken;
  }
}

function insertStatement(row: TenantRow): Statement {
  return statement(
    `INSERT INTO tenants (id, slug, name, owner_name, owner_email, mode, status, suspended_at, suspended_by,
       address_suffix, suffix_fold, timezone, policy_json, policy_ceilings_json, policy_version, billing_mode,
       granted_json, quota_do_id, created_at, updated_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    row.id,
    row.slug,
    row.name,
    row.owner_name,
    row.owner_email,
    row.mode,
    row.status,
    row.suspended_at,
    row.suspended_by,
    row.address_suffix,
    row.suffix_fold,
    row.timezone,
    row.policy_json,
    row.policy_ceilings_json,
    row.policy_version,
    row.billing_mode,
    row.granted_json,
    row.quota_do_id,
    row.created_at,
    row.updated_at,
  );
}

/** What a tenant is granted, as its quota is told. A later change of the row has a higher `as_of`. */
export function billingOf(row: Pick<TenantRow, 'billing_mode' | 'granted_json' | 'updated_at'>): Billing {
  const granted = JSON.parse(row.granted_json) as Granted;
  return { mode: row.billing_mode, granted, as_of: row.updated_at };
}

/** The column of what is granted: a feature without a bound is left out, and the others stand in a fixed order. */
export function grantedColumn(granted: Granted): string {
  return JSON.stringify(
    Object.fromEntries(FEATURES.flatMap((feature) => (granted[feature] == null ? [] : [[feature, granted[feature]]]))),
  );
}

/** An identity and where its mailbox is; the latter is empty until the mailbox was made. */
export interface MailboxOwner {
  id: IdentityId;
  tenant_id: TenantId;
  mailbox_do_id: string;
}

const OWNER_COLUMNS = 'id, tenant_id, mailbox_do_id';

export interface TenantChange {
  /** The row as the change was worked out on; when it is no longer so, nothing is written. */
  seen: TenantRow;
  /** The row as it shall be, with an `updated_at` above that of `seen`. */
  next: TenantRow;
  audits: AuditEntry[];
  /** `tenant.policy_updated`, when the policy changes. */
  event: EventEnvelope | null;
}

/**
 * Changes a tenant together with what follows from it: audit entries, the policy event, and with a change of status the
 * pause of every active identity, or the end of exactly those pauses.
 *
 * @returns the identities whose status changed with the tenant's, or undefined when somebody else was faster
 */
export async function changeTenant(db: Db, change: TenantChange): Promise<MailboxOwner[] | undefined> {
  const { seen, next, audits, event } = change;
  const unchanged = statement(
    'EXISTS (SELECT 1 FROM tenants WHERE id = ? AND status = ? AND policy_version = ? AND updated_at = ?)',
    seen.id,
    seen.status,
    seen.policy_version,
    seen.updated_at,
  );
  const statements = [
    ...audits.map((audit) => auditStatement(audit, unchanged)),
    ...(event === null ? [] : [platformEventStatement(event, next.updated_at, unchanged)]),
    ...(next.status === seen.status ? [] : [identitiesStatement(next, unchanged)]),
    updateStatement(next, unchanged),
  ];
  const results = await db.batch(statements);
  const [updated] = results.at(-1) ?? [];
  if (updated === undefined) return undefined;
  return next.status === seen.status ? [] : ((results.at(-2) ?? []) as unknown as MailboxOwner[]);
}

function identitiesStatement(next: TenantRow, onlyIf: Statement): Statement {
  const [set, where] =
    next.status === 'suspended'
      ? ["status = 'paused', pause_reason = 'tenant_suspended'", "status = 'active'"]
      : ["status = 'active', pause_reason = NULL", "status = 'paused' AND pause_reason = 'tenant_suspended'"];
  return statement(
    `UPDATE identities SET ${set}, updated_at = ?
     WHERE tenant_id = ? AND ${where} AND ${onlyIf.sql} RETURNING ${OWNER_COLUMNS}`,
    next.updated_at,
    next.id,
    ...onlyIf.bindings,
  );
}

function updateStatement(next: TenantRow, onlyIf: Statement): Statement {
  return statement(
    `UPDATE tenants SET name = ?, owner_name = ?, owner_email = ?, status = ?, suspended_at = ?, suspended_by = ?,
       timezone = ?, policy_json = ?, policy_ceilings_json = ?, policy_version = ?, billing_mode = ?, granted_json = ?,
       updated_at = ?
     WHERE id = ? AND ${onlyIf.sql} RETURNING id`,
    next.name,
    next.owner_name,
    next.owner_email,
    next.status,
    next.suspended_at,
    next.suspended_by,
    next.timezone,
    next.policy_json,
    next.policy_ceilings_json,
    next.policy_version,
    next.billing_mode,
    next.granted_json,
    next.updated_at,
    next.id,
    ...onlyIf.bindings,
  );
}

/** Identities that the running suspension of a tenant has paused. */
export function pausedWithTenant(db: Db, tenant: TenantId): Promise<MailboxOwner[]> {
  return queryAll<MailboxOwner>(
    db,
    `SELECT ${OWNER_COLUMNS} FROM identities
     WHERE tenant_id = ? AND status = 'paused' AND pause_reason = 'tenant_suspended'`,
    tenant,
  );
}

/** Identities that were resumed with their tenant at `at` (Unix ms) and have not changed since. */
export function resumedWithTenant(db: Db, tenant: TenantId, at: number): Promise<MailboxOwner[]> {
  return queryAll<MailboxOwner>(
    db,
    `SELECT ${OWNER_COLUMNS} FROM identities
     WHERE tenant_id = ?1 AND status = 'active' AND updated_at = ?2 AND created_at < ?2`,
    tenant,
    at,
  );
}
