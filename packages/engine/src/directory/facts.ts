import { type Address, domainOf, withoutDetail } from '@pmail/core/address/address.ts';
import type { SuppressionReason } from '@pmail/core/delivery/events.ts';
import type { AddressId, DomainId, IdentityId, TenantId } from '@pmail/core/ids.ts';
import { effectivePolicy, type PolicyPatch } from '@pmail/core/policy/document.ts';
import type {
  AddressFacts,
  DirectoryFacts,
  DomainFacts,
  IdentityFacts,
  TenantFacts,
} from '@pmail/core/policy/types.ts';
import type { Db, SqlValue, Statement } from '../sql.ts';
import { statement } from '../sql.ts';
import { lastSequenceStatement } from './events.ts';

/** What decides about a send, read in one batch: identity, tenant, addresses with domains, and the recipients' rows. */

type Row = Record<string, SqlValue>;

export interface FactsQuery {
  identity_id: IdentityId;
  /** Normalised recipients, each with the HMAC under which it would be suppressed. */
  recipients: { address: Address; hash: string }[];
  now: number;
}

export interface Deployment {
  /** The deployment's own layer of policy. */
  default_policy: PolicyPatch;
  ses_configured: boolean;
  smtp_enabled: boolean;
}

/** The statements of the batch, in the order `parseFacts` expects their rows. */
export function factsStatements(query: FactsQuery): Statement[] {
  return [...scopeStatements(query.identity_id), ...recipientStatements(query)];
}

/** Only what depends on the recipients; none when there are none. */
export function recipientStatements(query: FactsQuery): Statement[] {
  const { recipients, identity_id: identity } = query;
  if (recipients.length === 0) return [];
  // As one value each: a statement takes a hundred at most, and a request may name more people than may be written to.
  const hashes = JSON.stringify(recipients.map(({ hash }) => hash));
  const entries = JSON.stringify(recipients.flatMap(({ address }) => [address, `@${domainOf(address)}`]));
  const locals = JSON.stringify(recipients.map(({ address }) => withoutDetail(address)));
  return [
    statement(
      `SELECT address_hash, reason FROM suppressions
       WHERE tenant_id = (SELECT tenant_id FROM identities WHERE id = ?)
         AND address_hash IN (SELECT value FROM json_each(?)) AND (expires_at IS NULL OR expires_at > ?)`,
      identity,
      hashes,
      query.now,
    ),
    statement(
      `SELECT kind, entry FROM sender_lists
       WHERE tenant_id = (SELECT tenant_id FROM identities WHERE id = ?) AND direction = 'send'
         AND entry IN (SELECT value FROM json_each(?))`,
      identity,
      entries,
    ),
    statement(
      `SELECT address FROM addresses
       WHERE status IN ('active', 'retiring') AND address IN (SELECT value FROM json_each(?))`,
      locals,
    ),
  ];
}

/** Who it is that sends, and whether they may. */
export function scopeStatements(identity: IdentityId): Statement[] {
  return [
    statement(
      `SELECT i.*, t.status AS t_status, t.mode AS t_mode, t.timezone AS t_timezone, t.policy_json AS t_policy_json,
         t.quota_do_id AS t_quota_do_id
       FROM identities i JOIN tenants t ON t.id = i.tenant_id WHERE i.id = ?`,
      identity,
    ),
    statement(
      `SELECT a.id AS a_id, a.address, a.role, a.status, d.id AS d_id, d.name AS d_name, d.state, d.kind, d.transport,
         d.inbound, d.reply_token, d.sending
       FROM addresses a JOIN domains d ON d.id = a.domain_id WHERE a.identity_id = ? ORDER BY a.created_at, a.id`,
      identity,
    ),
    statement("SELECT name FROM domains WHERE kind = 'platform' LIMIT 1"),
    lastSequenceStatement(identity),
  ];
}

export interface SendScope extends DirectoryFacts {
  /** The highest number among the mailbox's events, by which it can tell that it was put back. */
  last_sequence: number | null;
  mailbox_do_id: string;
  quota_do_id: string;
}

/** Puts the rows of `factsStatements` together; undefined when there is no such identity. */
export function parseFacts(query: FactsQuery, results: Row[][], deployment: Deployment): SendScope | undefined {
  const [identityRows = [], addressRows = [], platformRows = [], sequenceRows = [], ...recipientRows] = results;
  const [row] = identityRows;
  if (row === undefined) return undefined;
  return {
    identity: identityFacts(row),
    tenant: tenantFacts(row, deployment.default_policy),
    addresses: addressRows.map(addressFacts),
    platform_domain: String(platformRows[0]?.['name'] ?? ''),
    ...parseRecipients(query, recipientRows),
    deployment: { ses_configured: deployment.ses_configured, smtp_enabled: deployment.smtp_enabled },
    last_sequence: (sequenceRows[0]?.['last'] as number | null | undefined) ?? null,
    mailbox_do_id: String(row['mailbox_do_id']),
    quota_do_id: String(row['t_quota_do_id']),
  };
}

type RecipientFacts = Pick<
  DirectoryFacts,
  'checked' | 'suppressions' | 'send_block' | 'send_allow' | 'local_addresses'
>;

/** Puts the rows of `recipientStatements` together. */
export function parseRecipients({ recipients }: FactsQuery, results: Row[][]): RecipientFacts {
  const [suppressed = [], lists = [], locals = []] = results;
  const addressByHash = new Map(recipients.map(({ address, hash }) => [hash, address]));
  const suppressions: Record<Address, SuppressionReason> = {};
  for (const { address_hash, reason } of suppressed) {
    const address = addressByHash.get(String(address_hash));
    if (address !== undefined) suppressions[address] = reason as SuppressionReason;
  }
  const listed = (kind: string): string[] =>
    lists.filter((entry) => entry['kind'] === kind).map((entry) => String(entry['entry']));
  return {
    checked: recipients.map(({ address }) => address),
    suppressions,
    send_block: listed('block'),
    send_allow: listed('allow'),
    local_addresses: locals.map(({ address }) => String(address)),
  };
}

/** The same facts without recipients, for the consumers, which look again before a message leaves. */
export async function readScope(
  db: Db,
  identity: IdentityId,
  now: number,
  deployment: Deployment,
): Promise<SendScope | undefined> {
  const query: FactsQuery = { identity_id: identity, recipients: [], now };
  return parseFacts(query, await db.batch(factsStatements(query)), deployment);
}

function text(value: SqlValue | undefined): string | null {
  return value === null || value === undefined ? null : String(value);
}

function identityFacts(row: Row): IdentityFacts {
  return {
    id: row['id'] as IdentityId,
    status: row['status'] as IdentityFacts['status'],
    pause_reason: text(row['pause_reason']) as IdentityFacts['pause_reason'],
    display_name: String(row['display_name']),
    owner_name: text(row['owner_name']),
    owner_email: text(row['owner_email']),
    signature_text: text(row['signature_text']),
    signature_html: text(row['signature_html']),
    send_policy: JSON.parse(String(row['send_policy_json'])) as IdentityFacts['send_policy'],
    is_system: row['is_system'] === 1,
  };
}

function tenantFacts(row: Row, defaultPolicy: PolicyPatch): TenantFacts {
  return {
    id: row['tenant_id'] as TenantId,
    status: row['t_status'] as TenantFacts['status'],
    mode: row['t_mode'] as TenantFacts['mode'],
    timezone: String(row['t_timezone']),
    policy: effectivePolicy(defaultPolicy, JSON.parse(String(row['t_policy_json'])) as PolicyPatch),
  };
}

function addressFacts(row: Row): AddressFacts {
  const domain: DomainFacts = {
    id: row['d_id'] as DomainId,
    name: String(row['d_name']),
    state: row['state'] as DomainFacts['state'],
    is_platform: row['kind'] === 'platform',
    transport: row['transport'] as DomainFacts['transport'],
    inbound: row['inbound'] as DomainFacts['inbound'],
    reply_token: row['reply_token'] as DomainFacts['reply_token'],
    sending: row['sending'] === 1,
  };
  return {
    id: row['a_id'] as AddressId,
    address: String(row['address']),
    role: row['role'] as AddressFacts['role'],
    status: row['status'] as AddressFacts['status'],
    domain,
  };
}
