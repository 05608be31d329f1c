import type { TenantId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { deleteOldEvents, pageOfKeepers } from '@pmail/engine/directory/event-retention.ts';
import { deleteOldDeliveries } from '@pmail/engine/webhooks/replay.ts';
import { config, type Env } from '../env.ts';
import { d1 } from '../ports/sql.ts';

const ROWS_PER_STATEMENT = 1_000;
const TENANTS_PER_PAGE = 50;
/** What one run does at most with each table and page, so that it ends before the next begins. */
const ROUNDS_MAX = 20;

/** Deletes deliveries that are older than they have to be kept. What is left is for the next run, here and below. */
export async function deleteOldDeliveryRows(env: Env, now: number): Promise<void> {
  const db = d1(env.DB);
  for (let round = 0; round < ROUNDS_MAX; round++) {
    if (!(await deleteOldDeliveries(db, now - LIMITS.webhook_deliveries_kept_ms, ROWS_PER_STATEMENT))) break;
  }
}

/** Deletes events that are older than their owners keep them. */
export async function deleteOldEventRows(env: Env, now: number): Promise<void> {
  const db = d1(env.DB);
  const deployment = config(env).deployment.default_policy;
  let last: TenantId | null = null;
  for (;;) {
    const page = await pageOfKeepers(db, last, TENANTS_PER_PAGE, deployment);
    let left = page;
    for (let round = 0; round < ROUNDS_MAX && left.length > 0; round++) {
      left = await deleteOldEvents(db, left, now, ROWS_PER_STATEMENT);
    }
    const tenants = page.filter(({ tenant_id }) => tenant_id !== null);
    if (tenants.length < TENANTS_PER_PAGE) return;
    last = tenants.at(-1)?.tenant_id ?? null;
  }
}
