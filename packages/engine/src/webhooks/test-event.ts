import type { EventEnvelope } from '@pmail/core/events/types.ts';
import { statement } from '../sql.ts';
import type { EndpointRow } from './endpoints.ts';
import { type AttemptResult, attemptRow, type DeliveryAttempt, forgetFailures, insertAttempt } from './record.ts';
import type { WebhookWorld } from './world.ts';

/**
 * Writes down a test: its event, which is told to nobody else and never replayed, and the one attempt. An endpoint that
 * waited for a test after its URL had changed is on again when the test was answered well, if the URL is still the same.
 */
export async function recordTest(
  world: WebhookWorld,
  endpoint: EndpointRow,
  event: EventEnvelope,
  result: AttemptResult,
): Promise<DeliveryAttempt> {
  const work = { event_id: event.id, event_type: event.type, attempt: 1, step: 1 };
  const row = attemptRow(world, endpoint, work, result, null);
  // Nothing follows a test, and nothing is lost by one that failed.
  const shown: DeliveryAttempt = { ...row, status: result.error === null ? 'succeeded' : 'failed' };
  const passed = result.error === null && endpoint.disabled_reason === 'url_changed';
  await world.db.batch([
    statement(
      `INSERT OR IGNORE INTO event_index
         (id, tenant_id, identity_id, type, sequence, owner_kind, owner_id, payload_json, occurred_at, fanned_out_at)
       VALUES (?1, ?2, NULL, ?3, NULL, 'platform', 'platform', ?4, ?5, ?5)`,
      event.id,
      event.tenant_id,
      event.type,
      JSON.stringify(event),
      Date.parse(event.occurred_at),
    ),
    insertAttempt(shown),
    ...(passed
      ? [
          statement(
            `UPDATE webhook_endpoints SET enabled = 1, disabled_reason = NULL, updated_at = MAX(?, updated_at + 1)
             WHERE id = ? AND disabled_reason = 'url_changed' AND url = ?`,
            world.now(),
            endpoint.id,
            endpoint.url,
          ),
          forgetFailures(endpoint.id),
        ]
      : []),
  ]);
  return shown;
}
