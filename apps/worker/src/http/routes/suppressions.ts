import type { RouteHandler, RouteId } from '@pmail/contracts/routes.ts';
import type { suppression } from '@pmail/contracts/schemas/suppression.ts';
import { addressHint, parseAddress } from '@pmail/core/address/address.ts';
import { EVENT_API_VERSION, type EventEnvelope } from '@pmail/core/events/types.ts';
import { invalidRequest, ok, refuse } from '@pmail/core/result.ts';
import { rfc3339, rfc3339OrNull } from '@pmail/core/time.ts';
import type { AuditEntry } from '@pmail/engine/directory/audit.ts';
import {
  addSuppression,
  findSuppression,
  listSuppressions,
  removeSuppression,
  type SuppressionInsert,
  type SuppressionRow,
} from '@pmail/engine/directory/suppressions.ts';
import type { z } from 'zod';
import { fanoutJob } from '../../ports/events.ts';
import { newId } from '../../ports/random.ts';
import { hashAddress } from '../../ports/secrets.ts';
import { auditEntry } from '../audit.ts';
import type { RequestContext } from '../context.ts';
import { pageOf } from '../page.ts';

type Group = { [K in Extract<RouteId, `suppressions.${string}`>]: RouteHandler<K, RequestContext> };

function resource(row: SuppressionRow): z.input<typeof suppression> {
  return {
    address_hint: row.address_hint,
    reason: row.reason,
    note: row.note,
    source_message_id: row.source_message_id,
    created_at: rfc3339(row.created_at),
    expires_at: rfc3339OrNull(row.expires_at),
  };
}

/** An address as it may stand where it must not be readable: whoever has the address and the key finds it again. */
export function addressName(hash: string): string {
  return `ph_${hash.slice(0, 16)}`;
}

function audit(context: RequestContext, action: string, hash: string, details: AuditEntry['details']): AuditEntry {
  const target = { tenant_id: context.tenant.id, target_type: 'suppression', target_id: addressName(hash) };
  return auditEntry(context, action, target, details);
}

function createdEvent({ now, tenant }: RequestContext, insert: SuppressionInsert): EventEnvelope {
  const { address_hint, reason, source_message_id } = insert;
  return {
    id: newId('evt', now),
    type: 'suppression.created',
    api_version: EVENT_API_VERSION,
    occurred_at: rfc3339(now),
    tenant_id: tenant.id,
    identity_id: null,
    sequence: null,
    data: { address_hint, reason, source_message_id },
  };
}

export const suppressionHandlers: Group = {
  'suppressions.list': async (context, input) => {
    const { address, reason } = input.query;
    const filter = {
      address_hash: address === undefined ? undefined : await hashAddress(context.config.hash_key, address),
      reason,
    };
    return pageOf(context, 'suppressions.list', input, {
      read: (limit, after) => listSuppressions(context.db, context.tenant.id, filter, context.now, limit, after),
      position: ({ created_at: at, address_hash: id }) => ({ at, id }),
      show: (rows) => rows.map(resource),
    });
  },

  'suppressions.create': async (context, { body }) => {
    const parsed = parseAddress(body.address);
    if (!parsed.ok) return invalidRequest({ path: 'address', message: parsed.message });
    const hash = await hashAddress(context.config.hash_key, parsed.address);
    const insert: SuppressionInsert = {
      tenant_id: context.tenant.id,
      address_hash: hash,
      address_hint: addressHint(parsed.address),
      reason: body.reason,
      source_message_id: null,
      note: body.note ?? null,
      created_at: context.now,
    };
    const event = createdEvent(context, insert);
    const entry = audit(context, 'suppression.create', hash, { reason: body.reason });
    const { row, created } = await addSuppression(context.db, insert, event, entry);
    // Should this be lost, the sweep tells of the event a minute later.
    if (created) context.background(context.env.Q_WEBHOOKS.send(fanoutJob(event.id)));
    return ok({ status: created ? (201 as const) : (200 as const), body: resource(row) });
  },

  'suppressions.delete': async (context, { params, body }) => {
    const parsed = parseAddress(params.address);
    if (!parsed.ok) return refuse('suppression_not_found');
    const hash = await hashAddress(context.config.hash_key, parsed.address);
    // Twice, because a complaint may take the place of the entry just read, and must be asked about then.
    for (let look = 0; look < 2; look++) {
      const row = await findSuppression(context.db, context.tenant.id, hash, context.now);
      if (row === undefined) break;
      if (row.reason === 'complaint' && body.confirm_complaint_removal !== true) {
        return invalidRequest({
          path: 'confirm_complaint_removal',
          message: 'must be true, because the owner of the address has complained',
        });
      }
      const entry = audit(context, 'suppression.delete', hash, { reason: row.reason });
      if (await removeSuppression(context.db, row, context.now, entry)) return ok({ status: 204 as const, body: null });
    }
    return refuse('suppression_not_found');
  },
};
