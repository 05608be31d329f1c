import type { RouteHandler, RouteInput } from '@pmail/contracts/routes.ts';
import type { Id, TenantId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { invalidRequest, ok, type Result, refuse } from '@pmail/core/result.ts';
import type { AuditEntry } from '@pmail/engine/directory/audit.ts';
import {
  addEndpoint,
  changeEndpoint,
  deleteEndpoint,
  type EndpointChange,
  type EndpointRow,
  findEndpoint,
  isUntested,
  listEndpoints,
  newEndpoint,
  rotateEndpointSecret,
} from '@pmail/engine/webhooks/endpoints.ts';
import { newId } from '../../ports/random.ts';
import { asPrevious, newSecret } from '../../ports/webhook-secrets.ts';
import { auditEntry } from '../audit.ts';
import type { RequestContext } from '../context.ts';
import type { Position } from '../cursor.ts';
import { listedTenant } from '../listed-tenant.ts';
import { byCreation, pageOf } from '../page.ts';
import { checkIdentities, checkTypes, checkUrl, typesOf } from './webhook-check.ts';
import { webhookResource } from './webhook-resource.ts';

type Own =
  | 'webhooks.create'
  | 'webhooks.createOfTenant'
  | 'webhooks.list'
  | 'webhooks.listOfTenant'
  | 'webhooks.get'
  | 'webhooks.update'
  | 'webhooks.delete'
  | 'webhooks.rotateSecret';
type Group = { [K in Own]: RouteHandler<K, RequestContext> };

const HOUR_MS = 3_600_000;

export function webhookAudit(
  context: RequestContext,
  action: string,
  row: Pick<EndpointRow, 'id' | 'tenant_id'>,
  details: AuditEntry['details'],
): AuditEntry {
  return auditEntry(context, action, { tenant_id: row.tenant_id, target_type: 'webhook', target_id: row.id }, details);
}

/** The endpoint that a path names, within the key's reach; the platform's own exist for platform keys alone. */
export async function findReached({ db, key }: RequestContext, id: string): Promise<Result<EndpointRow>> {
  const row = await findEndpoint(db, id as Id<'whk'>);
  const reached = row !== undefined && (key.level === 'platform' || row.tenant_id === key.tenant_id);
  return reached ? ok(row) : refuse('webhook_not_found');
}

type CreateBody = RouteInput<'webhooks.create'>['body'];

async function create(
  context: RequestContext,
  tenant: TenantId | null,
  body: CreateBody,
): Promise<Result<{ row: EndpointRow; secret: string }>> {
  const types = [...new Set(body.events)];
  const denied = checkTypes(context, types);
  if (denied !== null) return denied;
  const identities = body.identity_ids == null ? ok(null) : await checkIdentities(context, tenant, body.identity_ids);
  if (!identities.ok) return identities;
  const unreachable = await checkUrl(context, body.url);
  if (unreachable !== null) return unreachable;
  const id = newId('whk', context.now);
  const made = await newSecret(context.config.master_key, id);
  const { url, description = null } = body;
  const row = newEndpoint(
    { id, tenant_id: tenant, url, description, types, identities: identities.value, secret_enc: made.secret_enc },
    context.now,
  );
  const max = LIMITS.webhook_endpoints_per_owner_max;
  const added = await addEndpoint(
    context.db,
    row,
    max,
    webhookAudit(context, 'webhook.create', row, { events: types }),
  );
  return added ? ok({ row, secret: made.secret }) : refuse('webhook_limit_reached', { limit: max });
}

type ListRoute = 'webhooks.list' | 'webhooks.listOfTenant';

async function list<K extends ListRoute>(
  context: RequestContext,
  route: K,
  input: RouteInput<K>,
  tenant: TenantId | null | undefined,
) {
  const read = (limit: number, after: Position | null) => listEndpoints(context.db, tenant, limit, after);
  return pageOf(context, route, input, { read, position: byCreation, show: (rows) => rows.map(webhookResource) });
}

type UpdateBody = RouteInput<'webhooks.update'>['body'];

/** The endpoint as a request wants it. Another URL takes it off until a test has shown that somebody answers there. */
async function changed(context: RequestContext, row: EndpointRow, body: UpdateBody): Promise<Result<EndpointChange>> {
  const types = body.events === undefined ? typesOf(row) : [...new Set(body.events)];
  if (body.events !== undefined || body.url !== undefined) {
    const denied = checkTypes(context, types);
    if (denied !== null) return denied;
  }
  let identities = row.identity_ids_json;
  if (body.identity_ids === null) identities = null;
  else if (body.identity_ids !== undefined) {
    const checked = await checkIdentities(context, row.tenant_id, body.identity_ids);
    if (!checked.ok) return checked;
    identities = JSON.stringify(checked.value);
  }
  const url = body.url ?? row.url;
  const moved = url !== row.url;
  if (moved) {
    const unreachable = await checkUrl(context, url);
    if (unreachable !== null) return unreachable;
  }
  if (body.enabled === true && (moved || row.disabled_reason === 'url_changed')) {
    return invalidRequest({ path: 'enabled', message: 'must wait for a test that the new URL answers with 2xx' });
  }
  const reason = await offBecause(context, row, moved, body.enabled);
  return ok({
    url,
    description: body.description === undefined ? row.description : body.description,
    event_types_json: JSON.stringify(types),
    identity_ids_json: identities,
    enabled: reason === null ? 1 : 0,
    disabled_reason: reason,
    forgets: body.enabled === true,
  });
}

/**
 * Why the endpoint is off after the change; null when it is on. Its owner's word goes before what the URL needs: a test
 * would end that, and must not end what the owner has said.
 */
async function offBecause(
  { db }: RequestContext,
  row: EndpointRow,
  moved: boolean,
  enabled: boolean | undefined,
): Promise<EndpointRow['disabled_reason']> {
  if (enabled === false) return 'manual';
  if (row.disabled_reason === 'manual') {
    if (enabled === undefined) return 'manual';
    return (await isUntested(db, row)) ? 'url_changed' : null;
  }
  if (moved) return 'url_changed';
  return enabled === true ? null : row.disabled_reason;
}

async function rotate(context: RequestContext, row: EndpointRow, hours: number) {
  const made = await newSecret(context.config.master_key, row.id);
  const previous = hours === 0 ? null : await asPrevious(context.config.master_key, row);
  const sealed = {
    secret_enc: made.secret_enc,
    prev_secret_enc: previous,
    prev_secret_expires_at: previous === null ? null : context.now + hours * HOUR_MS,
  };
  const audit = webhookAudit(context, 'webhook.rotate_secret', row, { overlap_hours: hours });
  const after = await rotateEndpointSecret(context.db, row, sealed, context.now, audit);
  return after === undefined ? undefined : { ...webhookResource(after), secret: made.secret };
}

export const webhookHandlers: Group = {
  'webhooks.create': async (context, { body }) => {
    const made = await create(context, null, body);
    if (!made.ok) return made;
    const { row, secret } = made.value;
    return ok({ status: 201 as const, body: { ...webhookResource(row), secret } });
  },

  'webhooks.createOfTenant': async (context, { body }) => {
    const made = await create(context, context.tenant.id, body);
    if (!made.ok) return made;
    const { row, secret } = made.value;
    return ok({ status: 201 as const, body: { ...webhookResource(row), secret } });
  },

  'webhooks.list': async (context, input) => {
    const tenant = await listedTenant(context, input.query.tenant_id);
    return tenant.ok ? list(context, 'webhooks.list', input, tenant.value ?? undefined) : tenant;
  },

  'webhooks.listOfTenant': (context, input) => list(context, 'webhooks.listOfTenant', input, context.tenant.id),

  'webhooks.get': async (context, { params }) => {
    const found = await findReached(context, params.webhook_id);
    return found.ok ? ok({ status: 200 as const, body: webhookResource(found.value) }) : found;
  },

  'webhooks.update': async (context, { params, body }) => {
    for (let attempt = 0; attempt < LIMITS.directory_write_attempts_max; attempt++) {
      const found = await findReached(context, params.webhook_id);
      if (!found.ok) return found;
      const change = await changed(context, found.value, body);
      if (!change.ok) return change;
      const moved = change.value.url === found.value.url ? {} : { moved: true };
      const audit = webhookAudit(context, 'webhook.update', found.value, { fields: Object.keys(body), ...moved });
      const row = await changeEndpoint(context.db, found.value, change.value, context.now, audit);
      if (row !== undefined) return ok({ status: 200 as const, body: webhookResource(row) });
    }
    return refuse('unavailable', { step: 'directory' });
  },

  'webhooks.delete': async (context, { params }) => {
    const found = await findReached(context, params.webhook_id);
    if (!found.ok) return found;
    const audit = webhookAudit(context, 'webhook.delete', found.value, null);
    await deleteEndpoint(context.db, found.value.id, audit);
    return ok({ status: 204 as const, body: null });
  },

  'webhooks.rotateSecret': async (context, { params, body }) => {
    // Of two at once the second replaces the secret of the first, which then goes on for its time.
    for (let attempt = 0; attempt < LIMITS.directory_write_attempts_max; attempt++) {
      const found = await findReached(context, params.webhook_id);
      if (!found.ok) return found;
      const rotated = await rotate(context, found.value, body.overlap_hours);
      if (rotated !== undefined) return ok({ status: 200 as const, body: rotated });
    }
    return refuse('unavailable', { step: 'directory' });
  },
};
