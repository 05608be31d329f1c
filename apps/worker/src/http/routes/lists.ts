import type { RouteHandler, RouteId } from '@pmail/contracts/routes.ts';
import type { listEntry } from '@pmail/contracts/schemas/list-entry.ts';
import { type ListDirection, type ListKind, parseListEntry } from '@pmail/core/policy/list-entry.ts';
import { invalidRequest, ok, refuse } from '@pmail/core/result.ts';
import { rfc3339 } from '@pmail/core/time.ts';
import type { AuditEntry } from '@pmail/engine/directory/audit.ts';
import {
  deleteListEntry,
  findListEntry,
  type ListEntryRow,
  type ListRef,
  listEntries,
  putListEntry,
} from '@pmail/engine/directory/lists.ts';
import type { z } from 'zod';
import { hashAddress } from '../../ports/secrets.ts';
import { auditEntry } from '../audit.ts';
import type { RequestContext } from '../context.ts';
import { pageOf } from '../page.ts';
import { addressName } from './suppressions.ts';

type Group = { [K in Extract<RouteId, `lists.${string}`>]: RouteHandler<K, RequestContext> };

function resource({ direction, kind, entry, note, created_at: at }: ListEntryRow): z.input<typeof listEntry> {
  return { direction, kind, entry, note, created_at: rfc3339(at) };
}

/** The list of a path; the router lets no other words through. */
function listOf({ tenant }: RequestContext, params: { direction: string; kind: string }): ListRef {
  return {
    tenant_id: tenant.id,
    direction: params.direction as ListDirection,
    kind: params.kind as ListKind,
  };
}

/** The log outlives the entry, so it names it as it names every address. */
async function audit(
  context: RequestContext,
  action: string,
  { direction, kind }: ListRef,
  entry: string,
): Promise<AuditEntry> {
  const target_id = addressName(await hashAddress(context.config.hash_key, entry));
  const target = { tenant_id: context.tenant.id, target_type: 'list_entry', target_id };
  return auditEntry(context, action, target, { direction, kind });
}

export const listHandlers: Group = {
  'lists.list': async (context, input) => {
    const list = listOf(context, input.params);
    return pageOf(context, 'lists.list', input, {
      read: (limit, after) => listEntries(context.db, list, limit, after),
      position: ({ created_at: at, entry: id }) => ({ at, id }),
      show: (rows) => rows.map(resource),
    });
  },

  'lists.get': async (context, { params }) => {
    const entry = parseListEntry(params.entry);
    const row = entry === undefined ? undefined : await findListEntry(context.db, listOf(context, params), entry);
    return row === undefined ? refuse('list_entry_not_found') : ok({ status: 200 as const, body: resource(row) });
  },

  'lists.put': async (context, { params, body }) => {
    const entry = parseListEntry(params.entry);
    if (entry === undefined) return invalidRequest({ path: 'entry', message: 'must be an address or @domain' });
    const list = listOf(context, params);
    const row: ListEntryRow = { ...list, entry, note: body.note ?? null, created_at: context.now };
    const put = await putListEntry(context.db, row, await audit(context, 'list_entry.put', list, entry));
    return ok({ status: put.created ? (201 as const) : (200 as const), body: resource(put.row) });
  },

  'lists.delete': async (context, { params }) => {
    const entry = parseListEntry(params.entry);
    if (entry === undefined) return refuse('list_entry_not_found');
    const list = listOf(context, params);
    const entryAudit = await audit(context, 'list_entry.delete', list, entry);
    const removed = await deleteListEntry(context.db, list, entry, entryAudit);
    return removed ? ok({ status: 204 as const, body: null }) : refuse('list_entry_not_found');
  },
};
