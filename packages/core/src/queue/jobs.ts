import type { DeliveryEvent, LearnedId } from '../delivery/events.ts';
import type { EventId, Id, IdentityId, MessageId, TenantId } from '../ids.ts';

/** What the queues carry: pointers made of ids, never content. `v` is the version of the shape. */

/** A message waits to be handed to a transport. */
export interface SendJob {
  v: 1;
  kind: 'send';
  tenant_id: TenantId;
  identity_id: IdentityId;
  message_id: MessageId;
  request_id: string;
}

/** A provider's report on its way to the mailbox that sent the message. */
export interface EventJob {
  v: 1;
  kind: 'transport_event';
  tenant_id: TenantId;
  identity_id: IdentityId;
  event: DeliveryEvent;
}

/** A provider has told the ids of a message, and nothing else about it. */
export interface LearnedIdJob {
  v: 1;
  kind: 'learned_id';
  tenant_id: TenantId;
  identity_id: IdentityId;
  learned: LearnedId;
}

export type OutboundJob = SendJob | EventJob | LearnedIdJob;

/** Raw mail has arrived for an identity. */
export interface InboundJob {
  v: 1;
  kind: 'message';
  source: { type: 'routing' };
  message_id: MessageId;
  tenant_id: TenantId;
  identity_id: IdentityId;
  r2_key: string;
  raw_size: number;
  envelope_from: string;
  /** With `+detail`. */
  envelope_to: string;
  /** Unix ms. */
  received_at: number;
  request_id: string;
  /** The message of a test tenant that this is a copy of, when it never left the deployment. */
  loopback: { tenant_id: TenantId; identity_id: IdentityId; message_id: MessageId } | null;
}

/** An event of the index waits to be told to those who subscribed to it. */
export interface FanoutJob {
  v: 1;
  kind: 'fanout';
  event_id: EventId;
}

/** A webhook delivery is due. What is due, and for whom, stands in the directory. */
export interface DeliverJob {
  v: 1;
  kind: 'deliver';
  endpoint_id: Id<'whk'>;
  event_id: EventId;
}

export type WebhookJob = FanoutJob | DeliverJob;
