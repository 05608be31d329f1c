import { DurableObject } from 'cloudflare:workers';
import type { IdentityId, MessageId, TenantId } from '@pmail/core/ids.ts';
import { routeIdentity } from '@pmail/engine/directory/routing.ts';
import { QuotaEngine } from '@pmail/engine/quota/engine.ts';
import type {
  Billing,
  OutcomeAnswer,
  OutcomeRequest,
  QuotaTask,
  ReserveAnswer,
  ReserveRequest,
  UsageAnswer,
} from '@pmail/engine/quota/types.ts';
import type { UsageDay } from '@pmail/engine/quota/usage.ts';
import { config, type Env } from '../env.ts';
import { createLog, errorPlace } from '../log.ts';
import { marks } from '../marks.ts';
import { d1, objectSql } from '../ports/sql.ts';
import { platformAlarm } from './alarm.ts';
import { type CallContext, OwnerMismatch } from './calls.ts';
import { mailboxStub } from './remote.ts';

/** The quota of one tenant: a thin shell around the engine. */
export class TenantQuota extends DurableObject<Env> {
  readonly #engine: QuotaEngine;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const log = createLog(env.PM_LOG_LEVEL, { object: 'quota' });
    this.#engine = new QuotaEngine({
      sql: objectSql(ctx.storage),
      now: () => Date.now(),
      alarm: platformAlarm(ctx, (error) => log('error', 'alarm_not_set', { error: errorPlace(error) })),
      mark: (name) => marks.reached(name, ctx),
      waits: config(env).waits,
      log,
      sendState: async (identityId, ref) => {
        const route = await routeIdentity(d1(env.DB), identityId);
        if (route === undefined) return 'unknown';
        return mailboxStub(env, route.mailbox_do_id).sendState(
          { v: 1, ...route, request_id: 'quota' },
          ref as MessageId,
        );
      },
    });
  }

  init(tenantId: TenantId): void {
    this.#engine.init(tenantId);
  }

  reserve(call: CallContext, request: ReserveRequest): ReserveAnswer {
    return this.#owned(call).reserve(request);
  }

  apply(call: CallContext, task: QuotaTask): void {
    this.#owned(call).apply(task);
  }

  recordOutcome(call: CallContext, request: OutcomeRequest): OutcomeAnswer {
    return this.#owned(call).recordOutcome(request);
  }

  usage(call: CallContext): UsageAnswer {
    return this.#owned(call).usage();
  }

  /** The roll-up of usage, which also brings what the directory grants, should that have been lost on its way here. */
  usageDays(call: CallContext, billing: Billing): UsageDay[] {
    const engine = this.#owned(call);
    engine.takeBilling(billing);
    return engine.usageDays();
  }

  /** Days that the roll-up has written. */
  usageWritten(call: CallContext, days: string[]): void {
    this.#owned(call).usageWritten(days);
  }

  takeBilling(call: CallContext, billing: Billing): void {
    this.#owned(call).takeBilling(billing);
  }

  forgetIdentity(call: CallContext, identityId: IdentityId): void {
    this.#owned(call).forgetIdentity(identityId);
  }

  override async alarm(): Promise<void> {
    await this.#engine.alarm();
  }

  #owned(call: CallContext): QuotaEngine {
    if (this.#engine.owner() !== call.tenant_id) throw new OwnerMismatch('quota belongs to another tenant');
    return this.#engine;
  }
}
