// The doubles run in Node, which the engine itself must not know.
// oxlint-disable-next-line typescript/triple-slash-reference
/// <reference types="node" />
import type { IdentityId, TenantId } from '@pmail/core/ids.ts';
import { Knob, ObjectStorage } from '@pmail/testkit/doubles.ts';
import type { MarkName } from '../marks.ts';
import { DEFAULT_WAITS } from '../settings.ts';
import { QuotaEngine } from './engine.ts';
import type { QuotaTask, ReserveAnswer, ReserveRequest, SendState } from './types.ts';

/** A tenant's quota over a virtual clock, with mailboxes that answer what a test has them answer. */

export const NOW = Date.UTC(2026, 10, 30, 9);
export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

export const TENANT = 'ten_01JD9Q3V7M8X2C4N6B5K1R0E9T' as TenantId;
export const DESK = 'idn_01JD9Q3V7M8X2C4N6B5K1R0E9A' as IdentityId;
export const SHOP = 'idn_01JD9Q3V7M8X2C4N6B5K1R0E9B' as IdentityId;

export class QuotaRig {
  now: number;
  readonly storage = new ObjectStorage();
  readonly asks = new Knob();
  readonly states = new Map<string, SendState>();
  readonly asked: string[] = [];
  crash: MarkName | null = null;
  quota: QuotaEngine;
  #refs = 0;

  constructor(now = NOW) {
    this.now = now;
    this.quota = this.instance();
    this.quota.init(TENANT);
  }

  instance(): QuotaEngine {
    return new QuotaEngine({
      sql: this.storage.sql,
      now: () => this.now,
      alarm: this.storage.alarm,
      mark: (name) => {
        if (this.crash !== name) return;
        this.crash = null;
        throw new Error(`crash at ${name}`);
      },
      waits: DEFAULT_WAITS,
      log: () => {},
      sendState: (_identity, ref) =>
        this.asks.run(() => {
          this.asked.push(ref);
          return this.states.get(ref) ?? 'unknown';
        }),
    });
  }

  /** Time passes, and the alarm goes off whenever it is due. */
  async advance(ms: number): Promise<void> {
    const until = this.now + ms;
    for (let at = this.storage.alarmAt; at !== null && at <= until; at = this.storage.alarmAt) {
      this.now = Math.max(this.now, at);
      this.storage.alarmAt = null;
      await this.quota.alarm();
    }
    this.now = Math.max(this.now, until);
  }

  reserve(changes: Partial<ReserveRequest> = {}): ReserveAnswer {
    return this.quota.reserve({
      identity_id: DESK,
      ref: `ref ${++this.#refs}`,
      units: 1,
      identity_cap: 500,
      tenant_cap: 5_000,
      timezone: 'UTC',
      gates: [],
      ...changes,
    });
  }

  settle(ref: string, changes: Partial<Extract<QuotaTask, { op: 'settle' }>> = {}): void {
    this.quota.apply({
      op: 'settle',
      ref,
      n: 1,
      identity_id: DESK,
      consume: 1,
      keep: 0,
      until: null,
      outbound: 1,
      ...changes,
    });
  }

  release(ref: string): void {
    this.quota.apply({ op: 'release', ref, identity_id: DESK });
  }

  get books(): { used: number; held: number } {
    const sends = this.quota.usage().features.find(({ feature }) => feature === 'sends');
    return { used: sends?.used ?? 0, held: sends?.held ?? 0 };
  }

  /** Counts against the caps in whatever day, by metric. */
  counted(metric: string): number {
    return (
      this.storage.sql.first<{ n: number | null }>('SELECT SUM(value) AS n FROM counters WHERE metric = ?', metric)
        ?.n ?? 0
    );
  }

  holds(): { ref: string; units: number; expires_at: number }[] {
    return this.storage.sql.all('SELECT ref, units, expires_at FROM holds ORDER BY id');
  }
}
