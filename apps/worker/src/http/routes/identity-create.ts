import type { RouteAnswer, RouteInput } from '@pmail/contracts/routes.ts';
import { parseAddress } from '@pmail/core/address/address.ts';
import { checkUsername } from '@pmail/core/address/username.ts';
import { canonicalJson, type Json } from '@pmail/core/canonical-json.ts';
import { sha256Hex } from '@pmail/core/hash.ts';
import { parseId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { invalidRequest, ok, type Refusal, type Result, refuse } from '@pmail/core/result.ts';
import { madeStatement } from '@pmail/engine/directory/idempotency.ts';
import {
  type AddressRow,
  type DomainRow,
  findByClientId,
  findDomain,
  findIdentity,
  findPlatformDomain,
  type IdentityRecord,
  type IdentityRow,
  insertIdentity,
} from '@pmail/engine/directory/identities.ts';
import { findTenant, type TenantRow } from '@pmail/engine/directory/tenants.ts';
import { workRegistry } from '@pmail/engine/directory/work.ts';
import { newMailboxId } from '../../objects/new-id.ts';
import { newId } from '../../ports/random.ts';
import { hashAddress } from '../../ports/secrets.ts';
import { auditEntry } from '../audit.ts';
import type { RequestContext } from '../context.ts';
import { initMailbox } from '../mailbox-events.ts';
import { identityResource, policyCap, type SendPolicy } from './identity-resource.ts';

type Body = RouteInput<'identities.create'>['body'];
type Answer = Promise<Result<RouteAnswer<'identities.create'>>>;

/**
 * Creates an identity with its addresses, or answers with the one that the same `client_id` made before. The mailbox is
 * told last; when that fails the identity stands. Repeating the request with its `client_id` or its Idempotency-Key makes
 * up for it, and so does whoever calls the mailbox first, the cron at the latest.
 */
export async function createIdentity(context: RequestContext, body: Body): Answer {
  const { db, turn } = context;
  const fingerprint = await sha256Hex(canonicalJson(context.rawBody as Json));
  const tenant = await findTenant(db, context.tenant.id);
  if (tenant === undefined) return refuse('tenant_not_found');
  if (tenant.status === 'erasing' || tenant.status === 'erased') return refuse('tenant_erased');
  const before = (await finish(context)) ?? (await replay(context, body, fingerprint));
  if (before !== null) return before;
  if (tenant.status === 'suspended') return refuse('tenant_suspended');

  const planned = await planIdentity(context, tenant, body, fingerprint);
  if (!planned.ok) return planned;
  const { value: record } = planned;
  const { addresses, tenant_policy_json: _policy, tenant_quota_do_id: _quota, ...identity } = record;
  const hashed = await Promise.all(
    addresses.map(async (row) => ({ ...row, hash: await hashAddress(context.config.hash_key, row.address) })),
  );
  const outcome = await insertIdentity(db, {
    identity,
    addresses: hashed,
    audit: auditEntry(
      context,
      'identity.create',
      { tenant_id: tenant.id, target_type: 'identity', target_id: identity.id },
      null,
    ),
    also: turn === undefined ? [] : [madeStatement(turn.record, turn.began, identity.id)],
  });
  if (outcome === 'created') {
    await enterRegistry(context, record);
    return ready(context, record, 201);
  }
  // The same request may have come twice at once: then the first one made what this one found taken.
  const raced = await replay(context, body, fingerprint);
  if (raced !== null) return raced;
  if (outcome === 'tenant_closed') return refuse('tenant_suspended');
  return outcome === 'client_id_taken' ? refuse('unavailable') : refuse(outcome);
}

/** The answer under an Idempotency-Key whose identity stands and whose mailbox was never told; null when there is none. */
async function finish(context: RequestContext): Promise<Awaited<Answer> | null> {
  const made = context.turn?.made ?? null;
  const row = made === null ? undefined : await findIdentity(context.db, made);
  return row === undefined ? null : again(context, row, 201);
}

/** The answer to a `client_id` that was used before; null when it was not. */
async function replay(context: RequestContext, body: Body, fingerprint: string): Promise<Awaited<Answer> | null> {
  if (body.client_id === undefined) return null;
  const row = await findByClientId(context.db, context.tenant.id, body.client_id);
  if (row === undefined) return null;
  if (row.client_fingerprint !== fingerprint) return refuse('client_id_conflict');
  return again(context, row, 200);
}

async function again(context: RequestContext, row: IdentityRecord, status: 200 | 201): Answer {
  // One on its way out is shown as it is; its mailbox must not come back.
  if (row.status === 'deleting' || row.status === 'deleted')
    return ok({ status, body: identityResource(context, row) });
  return ready(context, row, status);
}

/**
 * Enters the mailbox among those with work, for it has to tell of its identity. The cron then comes even if nobody else
 * ever does. The mailbox's own entry replaces this one, so it has to be made first.
 */
async function enterRegistry(context: RequestContext, row: IdentityRecord): Promise<void> {
  try {
    await workRegistry(context.db).mark(row.id, context.now);
  } catch (error) {
    notReady(context, row, 'mailbox_not_registered', error);
  }
}

/** Gives the mailbox its owner and answers. */
async function ready(context: RequestContext, row: IdentityRecord, status: 200 | 201): Answer {
  try {
    await initMailbox(context, row);
  } catch (error) {
    notReady(context, row, 'mailbox_init_failed', error);
    // Nothing but these two would know a repeat for one; anybody else would be told that the name is taken, by himself.
    const repeatable = row.client_id !== null || context.turn !== undefined;
    if (repeatable) return refuse('unavailable', { step: 'mailbox' });
  }
  return ok({ status, body: identityResource(context, row) });
}

function notReady({ log }: RequestContext, row: IdentityRecord, event: string, error: unknown): void {
  log('warn', event, { identity_id: row.id, error: error instanceof Error ? error.name : 'unknown' });
}

async function planIdentity(
  context: RequestContext,
  tenant: TenantRow,
  body: Body,
  fingerprint: string,
): Promise<Result<IdentityRecord>> {
  const { address_suffix: suffix } = tenant;
  const name = checkUsername(body.username, {
    // Without a suffix the name stands alone on the shared domain.
    domain_class: suffix === '' ? 'platform' : 'tenant',
    chars_max: LIMITS.username_chars_max,
    suffix,
    path: 'username',
  });
  if (!name.ok) return name;
  const capped = checkDailyCap(context, tenant.policy_json, body.send_policy?.daily_cap);
  if (capped !== null) return capped;
  const platform = await findPlatformDomain(context.db);
  // The setup adds the domain before anything else; the quota of a tenant that it added takes a minute to be made.
  if (platform === undefined) return refuse('unavailable', { step: 'platform_domain' });
  if (tenant.quota_do_id === '') return refuse('unavailable', { step: 'quota' });
  const own = body.domain_id === undefined ? ok(null) : await ownDomain(context, tenant, body.domain_id);
  if (!own.ok) return own;

  const identity: IdentityRow = {
    id: newId('idn', context.now),
    tenant_id: tenant.id,
    username: name.value.username,
    username_fold: name.value.fold,
    display_name: body.display_name,
    purpose: body.purpose ?? null,
    client_id: body.client_id ?? null,
    client_fingerprint: body.client_id === undefined ? null : fingerprint,
    ...ownerColumns(body.owner),
    signature_text: signatureText(body.signature?.text),
    signature_html: await signatureHtml(body.signature?.html),
    status: 'active',
    pause_reason: null,
    send_policy_json: JSON.stringify(mergeSendPolicy({}, body.send_policy)),
    metadata_json: JSON.stringify(body.metadata ?? {}),
    mailbox_do_id: newMailboxId(context.env),
    is_system: 0,
    created_at: context.now,
    updated_at: context.now,
  };
  const addresses = [
    newAddress(context, identity, platform, suffix, own.value === null ? 'primary' : 'alias'),
    ...(own.value === null ? [] : [newAddress(context, identity, own.value, '', 'primary')]),
  ];
  return ok({
    ...identity,
    tenant_policy_json: tenant.policy_json,
    tenant_quota_do_id: tenant.quota_do_id,
    addresses,
  });
}

/** A domain of the tenant on which a new address can be the primary one. */
async function ownDomain(context: RequestContext, tenant: TenantRow, given: string): Promise<Result<DomainRow>> {
  const id = parseId('dom', given);
  const domain = id === undefined ? undefined : await findDomain(context.db, tenant.id, id);
  if (domain === undefined) return refuse('domain_not_found');
  if (domain.tenant_id === null) {
    return invalidRequest({
      path: 'domain_id',
      message: 'must not be the platform domain, on which every identity is',
    });
  }
  if (domain.state !== 'healthy' && domain.state !== 'degraded') {
    return refuse('domain_not_ready', { state: domain.state });
  }
  // Each address there needs a routing rule of its own, which takes a Cloudflare token; this version holds none.
  return domain.routing_mode === 'literal' ? refuse('cf_token_required') : ok(domain);
}

function newAddress(
  context: RequestContext,
  identity: IdentityRow,
  domain: DomainRow,
  suffix: string,
  role: AddressRow['role'],
): AddressRow {
  const local = `${identity.username}${suffix}`;
  return {
    id: newId('adr', context.now),
    address: `${local}@${domain.name}`,
    local_part: local,
    domain_id: domain.id,
    tenant_id: identity.tenant_id,
    identity_id: identity.id,
    role,
    // A catch-all or a forwarding domain routes any address at once.
    status: 'active',
    retire_at: null,
    retired_at: null,
    forwarding: domain.inbound === 'forward' ? 'unverified' : null,
    forwarding_checked_at: null,
    created_at: context.now,
    updated_at: context.now,
  };
}

/** Only a platform key gives an identity more than the policy gives each. */
export function checkDailyCap(
  context: RequestContext,
  tenantPolicyJson: string,
  wanted: number | null | undefined,
): Refusal | null {
  if (context.key.level === 'platform' || wanted === null || wanted === undefined) return null;
  const ceiling = policyCap(context, tenantPolicyJson);
  if (wanted <= ceiling) return null;
  return refuse('scope_denied', { field: 'send_policy.daily_cap', reason: 'above_ceiling', ceiling });
}

export function ownerColumns(owner: Body['owner']): Pick<IdentityRow, 'owner_name' | 'owner_email'> {
  if (owner === null || owner === undefined) return { owner_name: null, owner_email: null };
  const parsed = parseAddress(owner.email);
  return { owner_name: owner.name, owner_email: parsed.ok ? parsed.address : owner.email };
}

/** Fields that are missing stay; a cap of null goes back to that of the policy. */
export function mergeSendPolicy(stored: SendPolicy, change: Body['send_policy']): SendPolicy {
  const merged: SendPolicy = { ...stored };
  const { daily_cap, auto_reply, require_known_recipient } = change ?? {};
  if (daily_cap === null) delete merged.daily_cap;
  else if (daily_cap !== undefined) merged.daily_cap = daily_cap;
  if (auto_reply !== undefined) merged.auto_reply = auto_reply;
  if (require_known_recipient !== undefined) merged.require_known_recipient = require_known_recipient;
  return merged;
}

/** An empty signature is none. */
export function signatureText(text: string | null | undefined): string | null {
  return text === undefined || text === '' ? null : text;
}

/** HTML of a signature as stored: made safe in the same way as the HTML of mail. */
export async function signatureHtml(html: string | null | undefined): Promise<string | null> {
  if (html === undefined || html === null) return null;
  const { sanitizeHtml } = await import('@pmail/mime/sanitize.ts');
  const safe = sanitizeHtml(html);
  return safe.trim() === '' ? null : safe;
}
