import type { IdentityId, TenantId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { type AlarmMemory, dueDeadlines, forgettingSql, rearm, setDeadline } from '../alarms.ts';
import { readMeta, writeMeta } from '../meta.ts';
import { migrate } from '../sql.ts';
import { billingPeriod, rollPeriod } from './billing.ts';
import { expireHolds, pullHoldsBack } from './hold-expiry.ts';
import { recordOutcome } from './outcomes.ts';
import { type QuotaEngineWorld, reserve } from './reserve.ts';
import { QUOTA_MIGRATIONS } from './schema.ts';
import { applyTask } from './settle.ts';
import type {
  Billing,
  BillingMode,
  Granted,
  OutcomeAnswer,
  OutcomeRequest,
  QuotaTask,
  QuotaWorld,
  ReserveAnswer,
  ReserveRequest,
  UsageAnswer,
} from './types.ts';
import { getUsage, setBilling, takeBilling, type UsageDay, usageDays, usageWritten } from './usage.ts';

/** Repeats of bookkeeping cannot come later than this. */
const APPLIED_RETENTION_MS = 30 * 86_400_000;

/** The quota of one tenant: allowances, daily caps, usage, abuse windows. One instance per object. */
export class QuotaEngine {
  readonly #world: QuotaEngineWorld;

  constructor(world: QuotaWorld) {
    const alarms: AlarmMemory = { armed: undefined };
    this.#world = { ...world, sql: forgettingSql(world.sql, alarms), alarms };
    migrate(world.sql, QUOTA_MIGRATIONS);
    rearm(this.#world);
  }

  owner(): TenantId | undefined {
    return readMeta(this.#world.sql, 'tenant_id') as TenantId | undefined;
  }

  /** Stores the owner; the only call an object without one takes. Repeating it changes nothing. */
  init(tenantId: TenantId): void {
    const { sql } = this.#world;
    sql.transaction(() => {
      if (readMeta(sql, 'tenant_id') !== undefined) return;
      writeMeta(sql, 'tenant_id', tenantId);
      rollPeriod(sql, this.#world.now());
      this.#scheduleReset();
    });
  }

  reserve(request: ReserveRequest): ReserveAnswer {
    return reserve(this.#enter(), request);
  }

  apply(task: QuotaTask): void {
    applyTask(this.#enter(), task);
  }

  recordOutcome(request: OutcomeRequest): OutcomeAnswer {
    return recordOutcome(this.#enter(), request);
  }

  usage(): UsageAnswer {
    return getUsage(this.#enter());
  }

  usageDays(): UsageDay[] {
    return usageDays(this.#enter());
  }

  usageWritten(days: string[]): void {
    usageWritten(this.#enter(), days);
  }

  setBilling(mode: BillingMode, granted: Granted): void {
    setBilling(this.#enter(), mode, granted);
  }

  takeBilling(billing: Billing): void {
    takeBilling(this.#enter(), billing);
  }

  /** Erasure of an identity: its outcomes and counters go. */
  forgetIdentity(identityId: IdentityId): void {
    const { sql } = this.#world;
    sql.transaction(() => {
      sql.run('DELETE FROM outcomes WHERE identity_id = ?', identityId);
      sql.run('DELETE FROM counters WHERE metric = ?', `sends:${identityId}`);
    });
  }

  /** The platform alarm. A purpose that fails does not keep the others from their turn, and stays armed. */
  async alarm(): Promise<void> {
    const world = this.#world;
    world.alarms.armed = undefined;
    const now = world.now();
    for (const { purpose } of dueDeadlines(world.sql, now)) {
      try {
        if (purpose === 'holds') await expireHolds(world);
        else if (purpose === 'reset') this.#reset(now);
      } catch (error) {
        world.log('error', 'quota_alarm_failed', { purpose, error: error instanceof Error ? error.name : 'unknown' });
        setDeadline(world, purpose, now + world.waits.quota_task_retry_ms);
      }
    }
    pullHoldsBack(world);
    rearm(world);
  }

  /** Entering puts a lost alarm back; the hourly roll-up of usage enters every quota. */
  #enter(): QuotaEngineWorld {
    if (rearm(this.#world)) pullHoldsBack(this.#world);
    return this.#world;
  }

  #reset(now: number): void {
    const { sql } = this.#world;
    sql.transaction(() => {
      rollPeriod(sql, now);
      sql.run('DELETE FROM outcome_events WHERE at < ?', now - LIMITS.outcome_event_retention_ms);
      sql.run('DELETE FROM applied WHERE at < ?', now - APPLIED_RETENTION_MS);
      this.#scheduleReset();
    });
  }

  /** Once a day is enough for the clean-up, and no later than the month's end. */
  #scheduleReset(): void {
    const now = this.#world.now();
    setDeadline(this.#world, 'reset', Math.min(now + 86_400_000, billingPeriod(now).end));
  }
}
