import type { EventEnvelope } from '@pmail/core/events/types.ts';
import type { DomainId, TenantId } from '@pmail/core/ids.ts';
import type { PolicyPatch } from '@pmail/core/policy/document.ts';
import type { Ceilings, StoredPolicy } from '@pmail/core/policy/fields.ts';
import { type Db, queryAll, type Statement, statement } from '../sql.ts';

/** The columns of a tenant that hold its policy. */
export interface PolicyColumns {
  policy_json: string;
  policy_ceilings_json: string;
}

export function readStoredPolicy(row: PolicyColumns): StoredPolicy {
  return {
    patch: JSON.parse(row.policy_json) as PolicyPatch,
    ceilings: JSON.parse(row.policy_ceilings_json) as Ceilings,
  };
}

export function policyColumns({ patch, ceilings }: StoredPolicy): PolicyColumns {
  return { policy_json: JSON.stringify(patch), policy_ceilings_json: JSON.stringify(ceilings) };
}

/**
 * An event of the platform, for the batch of the change it tells: the index holds its bytes, because no object owns it.
 * Repeating it with the same id changes nothing.
 *
 * @param onlyIf a condition (the text after WHERE) under which it is written
 */
export function platformEventStatement(event: EventEnvelope, occurredAt: number, onlyIf: Statement): Statement {
  return statement(
    `INSERT OR IGNORE INTO event_index
       (id, tenant_id, identity_id, type, sequence, owner_kind, owner_id, payload_json, occurred_at)
     SELECT ?, ?, NULL, ?, NULL, 'platform', 'platform', ?, ? WHERE ${onlyIf.sql}`,
    event.id,
    event.tenant_id,
    event.type,
    JSON.stringify(event),
    occurredAt,
    ...onlyIf.bindings,
  );
}

/** Domains of a tenant that live in a zone of the deployment's own account. */
export function listZoneDomains(db: Db, tenant: TenantId): Promise<{ id: DomainId; name: string }[]> {
  return queryAll(
    db,
    `SELECT id, name FROM domains WHERE tenant_id = ? AND method = 'cloudflare_zone' AND state <> 'removed' ORDER BY id`,
    tenant,
  );
}
