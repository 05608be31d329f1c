import type { EventId, IdentityId, TenantId } from '../ids.ts';

export const EVENT_API_VERSION = '2026-10-01';

export const EVENT_TYPES = [
  'message.received',
  'message.quarantined',
  'message.released',
  'message.sent',
  'message.delivered',
  'message.deferred',
  'message.bounced',
  'message.complained',
  'message.rejected',
  'message.failed',
  'message.uncertain',
  'message.reconciled',
  'message.suppressed',
  'message.canceled',
  'identity.created',
  'identity.updated',
  'identity.paused',
  'identity.resumed',
  'identity.deleted',
  'identity.address_added',
  'identity.address_activated',
  'identity.address_retired',
  'identity.address_promoted',
  'domain.created',
  'domain.verified',
  'domain.degraded',
  'domain.failing',
  'domain.suspended',
  'domain.recovered',
  'domain.reminder',
  'domain.removed',
  'suppression.created',
  'quota.warning',
  'billing.limit_reached',
  'tenant.policy_updated',
  'webhook.disabled',
  'webhook.test',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** What subscribers get. Serialised once, when it happens; those bytes are stored, signed and sent. */
export interface EventEnvelope {
  id: EventId;
  type: EventType;
  api_version: typeof EVENT_API_VERSION;
  occurred_at: string;
  tenant_id: TenantId | null;
  identity_id: IdentityId | null;
  /** Rises strictly within one owner; null for events of the platform. */
  sequence: number | null;
  data: Record<string, unknown>;
}
