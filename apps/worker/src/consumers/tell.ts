import type { IdentityId, RequestId, TenantId } from '@pmail/core/ids.ts';
import type { OutboundJob } from '@pmail/core/queue/jobs.ts';
import { ACK, type Disposition, FAULT_RETRY_MS, retryAfter } from '@pmail/engine/consumers/world.ts';
import { firstRow, type IdentityRef, identityStatement } from '@pmail/engine/directory/owners.ts';
import { findTenant, type TenantRow } from '@pmail/engine/directory/tenants.ts';
import { config, type Env } from '../env.ts';
import { statusEvent, type TenantStatusEvent, tell } from '../http/mailbox-events.ts';
import { createLog } from '../log.ts';
import { d1 } from '../ports/sql.ts';

/** Some identities of a tenant were paused or resumed with it, and their mailboxes wait to be told. */
export interface TellJob {
  v: 1;
  kind: 'tenant_status';
  type: TenantStatusEvent;
  /** When the tenant changed, in Unix ms. */
  at: number;
  tenant_id: TenantId;
  identities: IdentityId[];
  request_id: RequestId;
}

/** What the queue of outbound work carries. */
export type OutboundWork = OutboundJob | TellJob;

/** Tells those of whom it is still true: whoever was told of the opposite since must not be told of this after it. */
export async function consumeTell(env: Env, job: TellJob): Promise<Disposition> {
  const { type, at, tenant_id, request_id: requestId } = job;
  const db = d1(env.DB);
  const tenant = await findTenant(db, tenant_id);
  if (tenant === undefined || !holds(tenant, type, at)) return ACK;
  const rows = await db.batch(job.identities.map(identityStatement));
  const status = type === 'identity.paused' ? 'paused' : 'active';
  const owners = rows
    .map((row) => firstRow<IdentityRef>(row))
    .filter((row) => row !== undefined)
    .filter((row) => row.status === status && row.tenant_id === tenant_id);
  const log = createLog(env.PM_LOG_LEVEL, { request_id: requestId });
  const context = { env, config: config(env), log, requestId };
  const told = await Promise.all(owners.map((owner) => tell(context, owner, statusEvent(type, owner.id, at))));
  // Those who were told know the event by its id.
  return told.every(Boolean) ? ACK : retryAfter(FAULT_RETRY_MS);
}

function holds({ status, suspended_at }: TenantRow, type: TenantStatusEvent, at: number): boolean {
  return type === 'identity.paused' ? status === 'suspended' && suspended_at === at : status === 'active';
}
