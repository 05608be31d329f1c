import type { TenantId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { effectivePolicy, type PolicyPatch } from '@pmail/core/policy/document.ts';
import { type Db, queryAll, statement } from '../sql.ts';

const DAY_MS = 86_400_000;

/** An owner of events: a tenant, or null for the platform, with what its policy says about keeping them. */
export interface EventKeeper {
  tenant_id: TenantId | null;
  days: number;
}

/** Tenants in order of their ids, those after `after`; null begins with the platform itself. */
export async function pageOfKeepers(
  db: Db,
  after: TenantId | null,
  limit: number,
  deployment: PolicyPatch,
): Promise<EventKeeper[]> {
  const rows = await queryAll<{ id: TenantId; policy_json: string }>(
    db,
    'SELECT id, policy_json FROM tenants WHERE id > ? ORDER BY id LIMIT ?',
    after ?? '',
    limit,
  );
  const days = (patch: PolicyPatch): number => effectivePolicy(deployment, patch).retention.events_days;
  const tenants = rows.map(({ id, policy_json: json }) => ({
    tenant_id: id,
    days: days(JSON.parse(json) as PolicyPatch),
  }));
  return after === null ? [{ tenant_id: null, days: days({}) }, ...tenants] : tenants;
}

/**
 * Deletes events that are older than their owner keeps them, at most `limit` of each; those whose subscribers were never
 * found a week later, by when no queue has a job about them any more. The last of every numbered owner stays for ever:
 * its number is how a mailbox whose storage was put back finds out, and goes on above it.
 *
 * @returns keepers that may have more
 */
export async function deleteOldEvents(
  db: Db,
  keepers: EventKeeper[],
  now: number,
  limit: number,
): Promise<EventKeeper[]> {
  if (keepers.length === 0) return [];
  const results = await db.batch(
    keepers.map(({ tenant_id, days }) =>
      statement(
        `DELETE FROM event_index WHERE id IN (
           SELECT e.id FROM event_index e
           WHERE e.tenant_id IS ?1 AND e.occurred_at < ?2 AND (e.fanned_out_at IS NOT NULL OR e.occurred_at < ?4)
             AND (e.sequence IS NULL
             OR EXISTS (SELECT 1 FROM event_index later WHERE later.owner_id = e.owner_id AND later.sequence > e.sequence))
           ORDER BY e.occurred_at LIMIT ?3) RETURNING 1 AS deleted`,
        tenant_id,
        now - days * DAY_MS,
        limit,
        now - days * DAY_MS - LIMITS.unfanned_event_grace_ms,
      ),
    ),
  );
  return keepers.filter((_keeper, index) => results[index]?.length === limit);
}
