import type { Address } from '@pmail/core/address/address.ts';
import type { AddressId, DomainId, IdentityId, TenantId } from '@pmail/core/ids.ts';
import type { DomainState } from '@pmail/core/policy/types.ts';
import { type Db, queryAll, queryFirst, type SqlValue, type Statement, statement } from '../sql.ts';
import { type AuditEntry, auditStatement } from './audit.ts';
import { brokenConstraint } from './broken-constraint.ts';

/** A row of identities. `updated_at` rises with every change, so it also tells whether somebody else changed the row. */
export interface IdentityRow {
  id: IdentityId;
  tenant_id: TenantId;
  username: string;
  username_fold: string;
  display_name: string;
  purpose: string | null;
  client_id: string | null;
  client_fingerprint: string | null;
  owner_name: string | null;
  owner_email: string | null;
  signature_text: string | null;
  signature_html: string | null;
  status: 'active' | 'paused' | 'deleting' | 'deleted';
  pause_reason: 'manual' | 'abuse_threshold' | 'tenant_suspended' | null;
  send_policy_json: string;
  metadata_json: string;
  mailbox_do_id: string;
  is_system: number;
  created_at: number;
  updated_at: number;
}

export interface AddressRow {
  id: AddressId;
  address: Address;
  local_part: string;
  domain_id: DomainId;
  tenant_id: TenantId;
  identity_id: IdentityId;
  role: 'primary' | 'alias';
  status: 'pending' | 'active' | 'retiring' | 'retired';
  retire_at: number | null;
  retired_at: number | null;
  forwarding: 'unverified' | 'ok' | 'failed' | null;
  forwarding_checked_at: number | null;
  created_at: number;
  updated_at: number;
}

/** An identity with all that its resource shows. */
export interface IdentityRecord extends IdentityRow {
  tenant_policy_json: string;
  tenant_quota_do_id: string;
  addresses: AddressRow[];
}

const SELECT_IDENTITY = `SELECT i.*, t.policy_json AS tenant_policy_json, t.quota_do_id AS tenant_quota_do_id
  FROM identities i JOIN tenants t ON t.id = i.tenant_id`;

async function withAddresses(db: Db, rows: IdentityRow[]): Promise<IdentityRecord[]> {
  if (rows.length === 0) return [];
  const addresses = await queryAll<AddressRow>(
    db,
    `SELECT * FROM addresses WHERE identity_id IN (SELECT value FROM json_each(?)) ORDER BY created_at, id`,
    JSON.stringify(rows.map(({ id }) => id)),
  );
  const byIdentity = Map.groupBy(addresses, ({ identity_id }) => identity_id);
  return (rows as Omit<IdentityRecord, 'addresses'>[]).map((row) => ({
    ...row,
    addresses: byIdentity.get(row.id) ?? [],
  }));
}

export async function findIdentity(db: Db, id: IdentityId): Promise<IdentityRecord | undefined> {
  return (await withAddresses(db, await queryAll<IdentityRow>(db, `${SELECT_IDENTITY} WHERE i.id = ?`, id)))[0];
}

/** The identity that a request with this `client_id` made before, in whatever state it is now. */
export async function findByClientId(db: Db, tenant: TenantId, clientId: string): Promise<IdentityRecord | undefined> {
  const rows = await queryAll<IdentityRow>(
    db,
    `${SELECT_IDENTITY} WHERE i.tenant_id = ? AND i.client_id = ?`,
    tenant,
    clientId,
  );
  return (await withAddresses(db, rows))[0];
}

/** Whom an asker reaches: null stands for any tenant, any identity. Only who reaches all tenants reaches the system's. */
export interface IdentityReach {
  tenant_id: TenantId | null;
  identity_id: IdentityId | null;
}

/**
 * The identity that an address leads to, as long as the address receives and the asker reaches it. All is asked in one
 * batch, always the same, so that neither time nor effort tells of an address of somebody else's.
 */
export async function findByAddress(
  db: Db,
  address: Address,
  reach: IdentityReach,
): Promise<IdentityRecord | undefined> {
  const owner = `SELECT i.id FROM addresses a JOIN identities i ON i.id = a.identity_id
    WHERE a.address = ?1 AND a.status IN ('active', 'retiring') AND i.status IN ('active', 'paused')
      AND (?2 IS NULL OR (i.tenant_id = ?2 AND i.is_system = 0)) AND (?3 IS NULL OR i.id = ?3)`;
  const asked = [address, reach.tenant_id, reach.identity_id];
  const [rows = [], addresses = []] = await db.batch([
    statement(`${SELECT_IDENTITY} WHERE i.id = (${owner})`, ...asked),
    statement(`SELECT * FROM addresses WHERE identity_id = (${owner}) ORDER BY created_at, id`, ...asked),
  ]);
  const row = rows[0] as unknown as Omit<IdentityRecord, 'addresses'> | undefined;
  return row === undefined ? undefined : { ...row, addresses: addresses as unknown as AddressRow[] };
}

export interface IdentityFilter {
  tenant_id?: TenantId | undefined;
  identity_id?: IdentityId | undefined;
  status?: IdentityRow['status'] | undefined;
  purpose?: string | undefined;
  client_id?: string | undefined;
}

/** Newest first, never the system identity. */
export async function listIdentities(
  db: Db,
  filter: IdentityFilter,
  limit: number,
  after: { at: number; id: string } | null,
): Promise<IdentityRecord[]> {
  const where = ['i.is_system = 0'];
  const values: SqlValue[] = [];
  const add = (condition: string, ...bindings: SqlValue[]): void => {
    where.push(condition);
    values.push(...bindings);
  };
  if (filter.tenant_id !== undefined) add('i.tenant_id = ?', filter.tenant_id);
  if (filter.identity_id !== undefined) add('i.id = ?', filter.identity_id);
  if (filter.status !== undefined) add('i.status = ?', filter.status);
  if (filter.purpose !== undefined) add('i.purpose = ?', filter.purpose);
  if (filter.client_id !== undefined) add('i.client_id = ?', filter.client_id);
  if (after !== null) add('(i.created_at, i.id) < (?, ?)', after.at, after.id);
  const rows = await queryAll<IdentityRow>(
    db,
    `${SELECT_IDENTITY} WHERE ${where.join(' AND ')} ORDER BY i.created_at DESC, i.id DESC LIMIT ?`,
    ...values,
    limit,
  );
  return withAddresses(db, rows);
}

export function listAddresses(db: Db, identity: IdentityId): Promise<AddressRow[]> {
  return queryAll<AddressRow>(db, 'SELECT * FROM addresses WHERE identity_id = ? ORDER BY created_at, id', identity);
}

/** What an address on a domain depends on. */
export interface DomainRow {
  id: DomainId;
  tenant_id: TenantId | null;
  name: string;
  state: DomainState;
  routing_mode: 'catch_all' | 'literal' | 'forward';
  inbound: 'routing' | 'ses' | 'forward' | 'none';
}

const DOMAIN_COLUMNS = 'id, tenant_id, name, state, routing_mode, inbound';

export function findPlatformDomain(db: Db): Promise<DomainRow | undefined> {
  return queryFirst<DomainRow>(db, `SELECT ${DOMAIN_COLUMNS} FROM domains WHERE kind = 'platform' LIMIT 1`);
}

/** A domain that a tenant may name: its own or the platform's. */
export function findDomain(db: Db, tenant: TenantId, id: DomainId): Promise<DomainRow | undefined> {
  return queryFirst<DomainRow>(
    db,
    `SELECT ${DOMAIN_COLUMNS} FROM domains WHERE id = ? AND (tenant_id = ? OR tenant_id IS NULL)`,
    id,
    tenant,
  );
}

export interface NewIdentity {
  identity: IdentityRow;
  /** Each with the HMAC under which a tombstone would hold it. */
  addresses: (AddressRow & { hash: string })[];
  audit: AuditEntry;
  /** Written in the same transaction. */
  also?: Statement[];
}

export type InsertOutcome = 'created' | 'tenant_closed' | 'client_id_taken' | 'username_taken' | 'address_taken';

/** What it means that an insert broke a constraint. */
const BROKEN: Record<string, InsertOutcome> = {
  'NOT NULL identities.tenant_id': 'tenant_closed',
  'UNIQUE identities.tenant_id, identities.client_id': 'client_id_taken',
  'UNIQUE identities.tenant_id, identities.username': 'username_taken',
  'UNIQUE identities.tenant_id, identities.username_fold': 'username_taken',
  'UNIQUE addresses.address': 'address_taken',
  'NOT NULL addresses.address': 'address_taken',
};

/**
 * Adds an identity, its addresses and the audit entry, all or none. Nothing is looked up before: the constraints say
 * what is taken, and so does a null that the statements put where a tenant is not active or an address has a tombstone.
 * A `client_id` that is taken can also show as its username or address; the caller looks for it first.
 */
export async function insertIdentity(db: Db, made: NewIdentity): Promise<InsertOutcome> {
  const { identity, addresses, audit, also = [] } = made;
  try {
    await db.batch([insertStatement(identity), ...addresses.map(addressStatement), auditStatement(audit), ...also]);
    return 'created';
  } catch (error) {
    const outcome = BROKEN[brokenConstraint(error) ?? ''];
    if (outcome === undefined) throw error;
    return outcome;
  }
}

function insertStatement(row: IdentityRow): Statement {
  return statement(
    `INSERT INTO identities (id, tenant_id, username, username_fold, display_name, purpose, client_id,
       client_fingerprint, owner_name, owner_email, signature_text, signature_html, status, pause_reason,
       send_policy_json, metadata_json, mailbox_do_id, is_system, created_at, updated_at)
     VALUES (?, (SELECT id FROM tenants WHERE id = ? AND status = 'active'),
       ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    row.id,
    row.tenant_id,
    row.username,
    row.username_fold,
    row.display_name,
    row.purpose,
    row.client_id,
    row.client_fingerprint,
    row.owner_name,
    row.owner_email,
    row.signature_text,
    row.signature_html,
    row.status,
    row.pause_reason,
    row.send_policy_json,
    row.metadata_json,
    row.mailbox_do_id,
    row.is_system,
    row.created_at,
    row.updated_at,
  );
}

function addressStatement(row: AddressRow & { hash: string }): Statement {
  return statement(
    `INSERT INTO addresses (id, address, local_part, domain_id, tenant_id, identity_id, role, status, retire_at,
       retired_at, forwarding, forwarding_checked_at, created_at, updated_at)
     VALUES (?, CASE WHEN EXISTS (SELECT 1 FROM address_tombstones WHERE address_hash = ?) THEN NULL ELSE ? END,
       ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    row.id,
    row.hash,
    row.address,
    row.local_part,
    row.domain_id,
    row.tenant_id,
    row.identity_id,
    row.role,
    row.status,
    row.retire_at,
    row.retired_at,
    row.forwarding,
    row.forwarding_checked_at,
    row.created_at,
    row.updated_at,
  );
}

/**
 * Changes an identity, with the audit entries of the change.
 *
 * @param seen the row as the change was worked out on; when it is no longer so, nothing is written
 * @param next the row as it shall be, with an `updated_at` above that of `seen`
 * @returns whether it was written
 */
export async function changeIdentity(
  db: Db,
  seen: IdentityRow,
  next: IdentityRow,
  audits: AuditEntry[],
): Promise<boolean> {
  const unchanged = statement(
    'EXISTS (SELECT 1 FROM identities WHERE id = ? AND status = ? AND pause_reason IS ? AND updated_at = ?)',
    seen.id,
    seen.status,
    seen.pause_reason,
    seen.updated_at,
  );
  const results = await db.batch([
    ...audits.map((audit) => auditStatement(audit, unchanged)),
    statement(
      `UPDATE identities SET display_name = ?, purpose = ?, owner_name = ?, owner_email = ?, signature_text = ?,
         signature_html = ?, status = ?, pause_reason = ?, send_policy_json = ?, metadata_json = ?, updated_at = ?
       WHERE id = ? AND ${unchanged.sql} RETURNING id`,
      next.display_name,
      next.purpose,
      next.owner_name,
      next.owner_email,
      next.signature_text,
      next.signature_html,
      next.status,
      next.pause_reason,
      next.send_policy_json,
      next.metadata_json,
      next.updated_at,
      next.id,
      ...unchanged.bindings,
    ),
  ]);
  return results.at(-1)?.length === 1;
}
