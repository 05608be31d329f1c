import { grants } from '@pmail/contracts/permissions.ts';
import type { RouteHandler, RouteId } from '@pmail/contracts/routes.ts';
import type { EventEnvelope } from '@pmail/core/events/types.ts';
import { EVENT_API_VERSION } from '@pmail/core/events/types.ts';
import type { EventId } from '@pmail/core/ids.ts';
import { ok, type Refusal, refuse } from '@pmail/core/result.ts';
import { rfc3339 } from '@pmail/core/time.ts';
import { type EventFilter, type EventIndexRow, findEvent, listEvents } from '@pmail/engine/directory/events.ts';
import { type IdentityRef, identityStatement } from '@pmail/engine/directory/owners.ts';
import { type Db, queryFirst } from '@pmail/engine/sql.ts';
import { mailboxCall, mailboxOf, type RequestContext, reachesIdentity } from '../context.ts';
import { listedTenant } from '../listed-tenant.ts';
import { object } from '../object-call.ts';
import { pageOf } from '../page.ts';

type Group = { [K in Extract<RouteId, `events.${string}`>]: RouteHandler<K, RequestContext> };

/** Types that a key may not read: those of mail without messages:read, held mail without quarantine:review. */
function hiddenTypes({ key }: RequestContext): string[] {
  if (!grants(key.permissions, 'messages:read')) return ['message.'];
  return grants(key.permissions, 'quarantine:review') ? [] : ['message.quarantined'];
}

/** Narrows the key's own reach by the filters; whatever lies outside it looks missing. */
async function scopeOf(
  context: RequestContext,
  query: { tenant_id?: string | undefined; identity_id?: string | undefined },
): Promise<Pick<EventFilter, 'tenant_id' | 'identity_id'> | Refusal> {
  const { key, db } = context;
  const scope: Pick<EventFilter, 'tenant_id' | 'identity_id'> = {};
  const tenant = await listedTenant(context, query.tenant_id);
  if (!tenant.ok) return tenant;
  if (tenant.value !== null) scope.tenant_id = tenant.value;
  if (key.identity_id !== null) scope.identity_id = key.identity_id;
  if (query.identity_id !== undefined) {
    const identity = await readIdentity(db, query.identity_id);
    if (identity === undefined || !reachesIdentity(key, identity)) return refuse('identity_not_found');
    scope.identity_id = identity.id;
  }
  return scope;
}

export const eventHandlers: Group = {
  'events.list': async (context, { params, query }) => {
    const scope = await scopeOf(context, query);
    if ('ok' in scope) return scope;
    const filter: EventFilter = {
      ...scope,
      types: query.type,
      after: query.after,
      before: query.before,
      with_system: context.key.level === 'platform',
      hidden_prefixes: hiddenTypes(context),
    };
    return pageOf(
      context,
      'events.list',
      { params, query },
      {
        read: (limit, after) => listEvents(context.db, filter, limit, after),
        position: ({ occurred_at: at, id }) => ({ at, id }),
        show: (rows) => (query.include?.includes('data') === true ? readAll(context, rows) : rows.map(rowOf)),
      },
    );
  },

  'events.get': async (context, { params }) => {
    const row = await findEvent(context.db, params.event_id as EventId);
    const hidden = row === undefined || hiddenTypes(context).some((prefix) => row.type.startsWith(prefix));
    if (hidden || !(await reachesEvent(context, row))) return refuse('event_not_found');
    const [event] = await readAll(context, [row]);
    return event === undefined ? refuse('event_not_found') : ok({ status: 200 as const, body: event });
  },
};

async function reachesEvent({ key, db }: RequestContext, row: EventIndexRow): Promise<boolean> {
  if (key.level === 'platform') return true;
  if (row.tenant_id !== key.tenant_id) return false;
  if (row.identity_id === null) return key.level === 'tenant';
  const identity = await readIdentity(db, row.identity_id);
  // The events of an erased identity outlive its row.
  return identity === undefined ? key.level === 'tenant' : reachesIdentity(key, identity);
}

function readIdentity(db: Db, id: string): Promise<IdentityRef | undefined> {
  const { sql, bindings } = identityStatement(id);
  return queryFirst<IdentityRef>(db, sql, ...bindings);
}

function rowOf(row: EventIndexRow): Omit<EventEnvelope, 'data'> {
  const { id, type, tenant_id, identity_id, sequence } = row;
  return {
    id,
    type,
    api_version: EVENT_API_VERSION,
    occurred_at: rfc3339(row.occurred_at),
    tenant_id,
    identity_id,
    sequence,
  };
}

/** The events as they were serialised when they happened, from the mailboxes that keep them. Those gone are left out. */
async function readAll(context: RequestContext, rows: EventIndexRow[]): Promise<EventEnvelope[]> {
  const events = await Promise.all(
    rows.map(async (row) => {
      const text = row.payload_json ?? (await readFromMailbox(context, row));
      return text === undefined ? undefined : (JSON.parse(text) as EventEnvelope);
    }),
  );
  return events.filter((event) => event !== undefined);
}

async function readFromMailbox(context: RequestContext, row: EventIndexRow): Promise<string | undefined> {
  if (row.owner_kind !== 'mailbox') return undefined;
  const identity = await readIdentity(context.db, row.owner_id);
  if (identity === undefined) return undefined;
  return object(mailboxOf(context, identity).readEvent(mailboxCall(context, identity), row.id));
}
