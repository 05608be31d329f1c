import type { webhook, webhookDelivery } from '@pmail/contracts/schemas/webhook.ts';
import type { IdentityId } from '@pmail/core/ids.ts';
import { rfc3339, rfc3339OrNull } from '@pmail/core/time.ts';
import type { EndpointRow } from '@pmail/engine/webhooks/endpoints.ts';
import type { DeliveryAttempt } from '@pmail/engine/webhooks/record.ts';
import type { z } from 'zod';

export function webhookResource(row: EndpointRow): z.input<typeof webhook> {
  return {
    id: row.id,
    scope: row.tenant_id === null ? 'platform' : 'tenant',
    tenant_id: row.tenant_id,
    url: row.url,
    events: JSON.parse(row.event_types_json) as string[],
    identity_ids: JSON.parse(row.identity_ids_json ?? 'null') as IdentityId[] | null,
    description: row.description,
    enabled: row.enabled === 1,
    disabled_reason: row.disabled_reason,
    created_at: rfc3339(row.created_at),
    updated_at: rfc3339(row.updated_at),
  };
}

export function deliveryResource(row: DeliveryAttempt): z.input<typeof webhookDelivery> {
  return {
    id: row.id,
    webhook_id: row.endpoint_id,
    event_id: row.event_id,
    event_type: row.event_type,
    attempt: row.attempt,
    status: row.status,
    http_status: row.http_status,
    error: row.error as z.input<typeof webhookDelivery>['error'],
    duration_ms: row.duration_ms,
    next_attempt_at: rfc3339OrNull(row.next_attempt_at),
    created_at: rfc3339(row.created_at),
  };
}
