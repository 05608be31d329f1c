import { addressHint } from '@pmail/core/address/address.ts';
import { readJournal } from '@pmail/core/cloudflare/message-id.ts';
import type { DeliveryEvent } from '@pmail/core/delivery/events.ts';
import { derivedId, type MessageId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { pauseForAbuse } from '../directory/abuse.ts';
import { readScope } from '../directory/facts.ts';
import { type Route, routeSender, type SenderRoute } from '../directory/routing.ts';
import { suppress } from '../directory/suppressions.ts';
import type { EventAnswer } from '../mailbox/apply-event.ts';
import { ACK, type ConsumerWorld, type Disposition, retryAfter } from './world.ts';

type Found = Exclude<EventAnswer, { kind: 'not_found' }>;

/**
 * One provider report: to the mailbox that owns the sender, then its consequences. Each step can be repeated, and a
 * repeat after a crash carries on where the first run died.
 */
export async function consumeEvent(world: ConsumerWorld, event: DeliveryEvent): Promise<Disposition> {
  world.mark('event.start');
  // The hidden copy that came to us is no recipient of ours.
  if (readJournal(event.recipient) !== undefined) return ACK;
  const route = await routeSender(world.db, event.sender);
  if (route === undefined) {
    world.count('delivery_unroutable_total');
    return ACK;
  }
  const mailbox = world.mailbox(route);
  const answer = await mailbox.applyEvent(event);
  world.mark('event.applied');
  if (answer.kind === 'not_found') return notFound(world, event, answer.ambiguous);
  if (answer.suppress !== null) await suppressRecipient(world, route, event, answer);
  world.mark('event.suppressed');
  if (answer.outcome !== null) await countOutcome(world, route, event, answer);
  return ACK;
}

function notFound(world: ConsumerWorld, event: DeliveryEvent, ambiguous: boolean): Disposition {
  if (ambiguous) world.count('reconcile_ambiguous_total');
  return untilOrphaned(world, event.occurred_at);
}

/** A report may have overtaken the record of its own send: its age, not the count of deliveries, ends the waiting. */
export function untilOrphaned(world: ConsumerWorld, occurredAt: number): Disposition {
  if (world.now() - occurredAt < LIMITS.event_orphan_age_ms) return retryAfter(LIMITS.event_retry_s * 1_000);
  world.count('delivery_orphaned_total');
  return ACK;
}

async function suppressRecipient(
  world: ConsumerWorld,
  route: Route,
  event: DeliveryEvent,
  answer: Found,
): Promise<void> {
  if (answer.suppress === null) return;
  await suppressAddress(world, route, event.recipient, answer.suppress, answer.message_id);
}

/** Puts an address on the tenant's list; the message that put it there tells of it, exactly once. */
export async function suppressAddress(
  world: ConsumerWorld,
  route: Route,
  address: string,
  reason: NonNullable<Found['suppress']>,
  messageId: MessageId,
  expiresAt: number | null = null,
): Promise<void> {
  const hash = await world.hashAddress(address);
  const row = await suppress(world.db, {
    tenant_id: route.tenant_id,
    address_hash: hash,
    address_hint: addressHint(address),
    reason,
    source_message_id: messageId,
    note: null,
    created_at: world.now(),
    expires_at: expiresAt,
  });
  if (row.source_message_id !== messageId) return;
  const entropy = await world.hmac(`suppression:${route.tenant_id}${hash}${row.created_at}`);
  await world
    .mailbox(route)
    .emitEvent(
      'suppression.created',
      { address_hint: addressHint(address), reason: row.reason, source_message_id: messageId },
      { id: derivedId('evt', row.created_at, entropy), occurred_at: row.created_at },
    );
}

/** Rates that no window is over. */
const NEVER = { complaint_rate_pause: 1, bounce_rate_pause: 1 } as const;

async function countOutcome(
  world: ConsumerWorld,
  route: SenderRoute,
  event: DeliveryEvent,
  answer: Found,
): Promise<void> {
  // Its id may be forgotten where it would be known again; and it says nothing about how the identity sends now.
  if (answer.outcome === null || world.now() - event.occurred_at >= LIMITS.outcome_event_retention_ms) return;
  const { outcome } = answer;
  // Nothing but these can call for a pause, so nothing else needs to know at which rate.
  const adverse = outcome === 'complained' || outcome === 'bounced';
  const scope = adverse ? await readScope(world.db, route.identity_id, world.now(), world.deployment) : undefined;
  const judged = await world.quota(route.quota_do_id, route.tenant_id).recordOutcome({
    identity_id: route.identity_id,
    outcome,
    at: event.occurred_at,
    event_id: event.event_id,
    ...(scope?.tenant.policy.abuse ?? NEVER),
  });
  world.mark('event.outcome_recorded');
  if (!judged.pause || scope === undefined || scope.identity.is_system) return;
  const metrics = {
    complaints: judged.complaints,
    complaint_window: LIMITS.complaint_window_count,
    bounces: judged.bounces,
    bounce_window: LIMITS.bounce_window_count,
  };
  const entropy = await world.hmac(`identity.paused:${route.identity_id}:${event.event_id}`);
  const pausedAt = await pauseForAbuse(world.db, route.identity_id, judged.counted_at, {
    id: derivedId('aud', event.occurred_at, entropy),
    tenant_id: route.tenant_id,
    actor_key_id: null,
    action: 'identity.auto_pause',
    target_type: 'identity',
    target_id: route.identity_id,
    details: metrics,
    request_id: null,
    at: world.now(),
  });
  world.mark('event.paused');
  if (pausedAt === null) return;
  await world
    .mailbox(route)
    .emitEvent(
      'identity.paused',
      { identity_id: route.identity_id, reason: 'abuse_threshold', metrics },
      { id: derivedId('evt', pausedAt, entropy), occurred_at: pausedAt },
    );
}
