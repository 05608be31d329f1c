import type { RouteHandler, RouteInput } from '@pmail/contracts/routes.ts';
import { EVENT_API_VERSION, type EventEnvelope } from '@pmail/core/events/types.ts';
import { type EventId, parseId } from '@pmail/core/ids.ts';
import { invalidRequest, ok, type Result, refuse } from '@pmail/core/result.ts';
import { parseRfc3339, rfc3339 } from '@pmail/core/time.ts';
import { postEvent } from '@pmail/engine/webhooks/deliver.ts';
import { listDeliveries, type ReplayRequest, replay, replayable } from '@pmail/engine/webhooks/replay.ts';
import { recordTest } from '@pmail/engine/webhooks/test-event.ts';
import { webhookWorld } from '../../consumers/webhook-world.ts';
import { producer } from '../../ports/queue.ts';
import { newId } from '../../ports/random.ts';
import type { RequestContext } from '../context.ts';
import { byCreation, pageOf } from '../page.ts';
import { checkTypes, typesOf } from './webhook-check.ts';
import { deliveryResource } from './webhook-resource.ts';
import { findReached, webhookAudit } from './webhooks.ts';

type Own = 'webhooks.test' | 'webhooks.deliveries.list' | 'webhooks.replay';
type Group = { [K in Own]: RouteHandler<K, RequestContext> };

type ReplayBody = RouteInput<'webhooks.replay'>['body'];

function replayRequest(body: ReplayBody): Result<ReplayRequest> {
  if (body.event_ids !== undefined) {
    const ids = body.event_ids.map((text) => parseId('evt', text));
    return ids.every((id): id is EventId => id !== undefined) ? ok({ event_ids: ids }) : refuse('event_not_found');
  }
  const since = parseRfc3339(body.since ?? '') ?? 0;
  const until = body.until === undefined ? null : (parseRfc3339(body.until) ?? 0);
  if (until !== null && until <= since) return invalidRequest({ path: 'until', message: 'must be later than since' });
  return ok({ since, until, status: body.status ?? null });
}

export const webhookDeliveryHandlers: Group = {
  'webhooks.test': async (context, { params }) => {
    const found = await findReached(context, params.webhook_id);
    if (!found.ok) return found;
    const endpoint = found.value;
    const world = webhookWorld(context.env, context.requestId);
    const event: EventEnvelope = {
      id: newId('evt', context.now),
      type: 'webhook.test',
      api_version: EVENT_API_VERSION,
      occurred_at: rfc3339(context.now),
      tenant_id: endpoint.tenant_id,
      identity_id: null,
      sequence: null,
      data: { webhook_id: endpoint.id, message: 'hello' },
    };
    const started = world.now();
    const result = await postEvent(world, endpoint, event.id, JSON.stringify(event));
    const attempt = await recordTest(world, endpoint, event, {
      ...result,
      started,
      duration_ms: world.now() - started,
    });
    return ok({ status: 200 as const, body: deliveryResource(attempt) });
  },

  'webhooks.deliveries.list': async (context, input) => {
    const { params, query } = input;
    const found = await findReached(context, params.webhook_id);
    if (!found.ok) return found;
    const filter = { status: query.status, event_type: query.event_type, after: query.after };
    return pageOf(context, 'webhooks.deliveries.list', input, {
      read: (limit, after) => listDeliveries(context.db, found.value.id, filter, limit, after),
      position: byCreation,
      show: (rows) => rows.map(deliveryResource),
    });
  },

  'webhooks.replay': async (context, { params, body }) => {
    const found = await findReached(context, params.webhook_id);
    if (!found.ok) return found;
    const endpoint = found.value;
    const denied = checkTypes(context, typesOf(endpoint));
    if (denied !== null) return denied;
    const request = replayRequest(body);
    if (!request.ok) return request;
    const events = await replayable(context.db, endpoint, request.value, context.now);
    if (events === undefined) return refuse('event_not_found');
    const audit = webhookAudit(context, 'webhook.replay', endpoint, { events: events.length });
    await replay(context.db, producer(context.env.Q_WEBHOOKS), endpoint, events, context.now, audit);
    return ok({ status: 202 as const, body: { queued: events.length } });
  },
};
