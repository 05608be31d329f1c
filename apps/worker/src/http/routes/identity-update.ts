import type { RouteAnswer, RouteInput } from '@pmail/contracts/routes.ts';
import type { IdentityId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { ok, type Result, refuse } from '@pmail/core/result.ts';
import { type AuditEntry, readAuditDetails } from '@pmail/engine/directory/audit.ts';
import {
  changeIdentity,
  findIdentity,
  type IdentityRecord,
  type IdentityRow,
} from '@pmail/engine/directory/identities.ts';
import { changeId } from '../../change-id.ts';
import type { RequestContext } from '../context.ts';
import { type MailboxEvent, tell } from '../mailbox-events.ts';
import { checkDailyCap, mergeSendPolicy, ownerColumns, signatureHtml, signatureText } from './identity-create.ts';
import { identityResource, sendPolicyOf } from './identity-resource.ts';

type Body = RouteInput<'identities.update'>['body'];
type Answer = Promise<Result<RouteAnswer<'identities.update'>>>;

/** What a change of an identity is called in the audit log, and the event that tells of it. */
const EVENT_OF = {
  'identity.update': 'identity.updated',
  'identity.pause': 'identity.paused',
  'identity.resume': 'identity.resumed',
} as const satisfies Record<string, MailboxEvent['type']>;

type Action = keyof typeof EVENT_OF;

const ACTIONS = Object.keys(EVENT_OF) as Action[];

interface Plan {
  next: IdentityRow;
  /** What happened, with the details for the log; empty when nothing would be different. */
  actions: Map<Action, AuditEntry['details']>;
}

/**
 * Changes an identity in the directory and lets its mailbox tell of it. When somebody else changes it in between, the
 * change is worked out again on what is there then, a few times.
 */
export async function updateIdentity(context: RequestContext, id: IdentityId, body: Body): Answer {
  for (let attempt = 1; attempt <= LIMITS.directory_write_attempts_max; attempt++) {
    const seen = await findIdentity(context.db, id);
    if (seen === undefined || seen.status === 'deleting' || seen.status === 'deleted') {
      return refuse('identity_not_found');
    }
    const planned = await plan(context, seen, body);
    if (!planned.ok) return planned;
    const { next, actions } = planned.value;
    // A request that changes nothing may repeat one whose events were lost on the way to the mailbox.
    if (actions.size === 0) return answer(context, seen, await lastActions(context, seen));
    const audits = await Promise.all([...actions].map(([action, details]) => audit(context, next, action, details)));
    if (await changeIdentity(context.db, seen, next, audits)) return answer(context, { ...seen, ...next }, actions);
  }
  return refuse('unavailable', { step: 'directory' });
}

async function plan(context: RequestContext, seen: IdentityRecord, body: Body): Promise<Result<Plan>> {
  const capped = checkDailyCap(context, seen.tenant_policy_json, body.send_policy?.daily_cap);
  if (capped !== null) return capped;
  const status = planStatus(context, seen, body.status);
  if (!status.ok) return status;
  const columns = await fieldColumns(seen, body);
  const changed = Object.entries(columns).flatMap(([field, values]) =>
    Object.entries(values).some(([name, value]) => value !== seen[name as keyof IdentityRow]) ? [field] : [],
  );
  const { addresses: _a, tenant_policy_json: _p, tenant_quota_do_id: _q, ...row } = seen;
  const next: IdentityRow = Object.assign({}, row, ...Object.values(columns), status.value?.columns) as IdentityRow;
  next.updated_at = Math.max(context.now, seen.updated_at + 1);
  const actions: Plan['actions'] = new Map();
  if (changed.length > 0) actions.set('identity.update', { changed });
  if (status.value !== null) actions.set(status.value.action, { reason: status.value.reason });
  return ok({ next, actions });
}

/** The columns behind each field that the request names. */
async function fieldColumns(seen: IdentityRecord, body: Body): Promise<Record<string, Partial<IdentityRow>>> {
  const columns: Record<string, Partial<IdentityRow>> = {};
  if (body.display_name !== undefined) columns['display_name'] = { display_name: body.display_name };
  if (body.purpose !== undefined) columns['purpose'] = { purpose: body.purpose };
  if (body.owner !== undefined) columns['owner'] = ownerColumns(body.owner);
  if (body.signature !== undefined) {
    const { text, html } = body.signature;
    columns['signature'] = {
      ...(text === undefined ? {} : { signature_text: signatureText(text) }),
      ...(html === undefined ? {} : { signature_html: await signatureHtml(html) }),
    };
  }
  if (body.send_policy !== undefined) {
    const merged = mergeSendPolicy(sendPolicyOf(seen), body.send_policy);
    columns['send_policy'] = { send_policy_json: JSON.stringify(merged) };
  }
  if (body.metadata !== undefined) columns['metadata'] = { metadata_json: JSON.stringify(body.metadata) };
  return columns;
}

interface StatusChange {
  action: 'identity.pause' | 'identity.resume';
  /** Why it is paused from now on, or was until now. */
  reason: IdentityRow['pause_reason'];
  columns: Pick<IdentityRow, 'status' | 'pause_reason'>;
}

/** A pause for abuse is lifted by a tenant or platform key, one that came with the tenant's suspension only with it. */
function planStatus(
  { key }: RequestContext,
  seen: IdentityRecord,
  wanted: Body['status'],
): Result<StatusChange | null> {
  if (wanted === undefined || wanted === seen.status) return ok(null);
  if (wanted === 'paused') {
    return ok({ action: 'identity.pause', reason: 'manual', columns: { status: 'paused', pause_reason: 'manual' } });
  }
  const { pause_reason: reason } = seen;
  if (reason === 'tenant_suspended') return refuse('identity_paused', { reason });
  if (reason === 'abuse_threshold' && key.level === 'identity') {
    return refuse('scope_denied', { field: 'status', reason: 'not_writable' });
  }
  return ok({ action: 'identity.resume', reason, columns: { status: 'active', pause_reason: null } });
}

/** What was done in the last change of an identity, if that was one of this route. */
async function lastActions(context: RequestContext, row: IdentityRecord): Promise<Plan['actions']> {
  const ids = await Promise.all(
    ACTIONS.map((action) => changeId(context.config, 'aud', action, row.id, row.updated_at)),
  );
  const found = await readAuditDetails(context.db, ids);
  return new Map(
    ACTIONS.flatMap((action, index): [Action, AuditEntry['details']][] => {
      const id = ids[index];
      return id !== undefined && found.has(id) ? [[action, found.get(id) ?? null]] : [];
    }),
  );
}

async function answer(context: RequestContext, row: IdentityRecord, actions: Plan['actions']): Answer {
  const resource = identityResource(context, row);
  let told = true;
  for (const [action, details] of actions) {
    const event = { type: EVENT_OF[action], data: eventData(action, resource, details), at: row.updated_at };
    told = (await tell(context, row, event)) && told;
  }
  // The change stands; the same request once more finds it done and tells what is missing.
  return told ? ok({ status: 200, body: resource }) : refuse('unavailable', { step: 'mailbox' });
}

function eventData(
  action: Action,
  identity: ReturnType<typeof identityResource>,
  details: AuditEntry['details'],
): Record<string, unknown> {
  switch (action) {
    case 'identity.update':
      return { identity, changed: details?.['changed'] };
    case 'identity.pause':
      return { identity_id: identity.id, reason: details?.['reason'] };
    case 'identity.resume':
      return { identity_id: identity.id };
  }
}

async function audit(
  context: RequestContext,
  row: IdentityRow,
  action: Action,
  details: AuditEntry['details'],
): Promise<AuditEntry> {
  return {
    id: await changeId(context.config, 'aud', action, row.id, row.updated_at),
    tenant_id: row.tenant_id,
    actor_key_id: context.key.id,
    action,
    target_type: 'identity',
    target_id: row.id,
    details,
    request_id: context.requestId,
    at: row.updated_at,
  };
}
