import type { DomainId, TenantId } from '@pmail/core/ids.ts';
import { type Db, queryFirst } from '../sql.ts';

/** A domain's relay as the directory keeps it. What is in it only the one who holds the key can tell. */
export interface RelayRow {
  domain_id: DomainId;
  smtp_sealed: string;
}

/** The relay of a tenant's domain; undefined when it sends in another way, or was taken out of use. */
export function readRelay(db: Db, tenant: TenantId, domain: string): Promise<RelayRow | undefined> {
  return queryFirst<RelayRow>(
    db,
    `SELECT id AS domain_id, CAST(smtp_sealed AS TEXT) AS smtp_sealed FROM domains
     WHERE name = ? AND tenant_id = ? AND transport = 'smtp' AND smtp_sealed IS NOT NULL`,
    domain,
    tenant,
  );
}
