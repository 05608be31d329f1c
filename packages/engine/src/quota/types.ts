import type { AbuseOutcome } from '@pmail/core/delivery/events.ts';
import type { IdentityId, TenantId } from '@pmail/core/ids.ts';
import type { Mark } from '../marks.ts';
import type { AlarmClock, Log } from '../ports.ts';
import type { Waits } from '../settings.ts';
import type { Sql } from '../sql.ts';

export const FEATURES = ['inboxes', 'sends', 'custom_domains', 'storage_gb'] as const;
export type Feature = (typeof FEATURES)[number];

export type BillingMode = 'metered' | 'exempt' | 'disabled';

/** Amounts of each feature; one that is missing or null has no bound. */
export type Granted = { [F in Feature]?: number | null | undefined };

/** What the directory grants a tenant. */
export interface Billing {
  mode: BillingMode;
  granted: Granted;
  /** Rises with every change, so that of two that arrive in the wrong order the later one stays. */
  as_of: number;
}

export const USAGE_METRICS = ['inbound', 'outbound', 'sends', 'storage_bytes'] as const;
export type UsageMetric = (typeof USAGE_METRICS)[number];

/**
 * What the mailbox of an identity says about a send when asked whether its hold is still needed: there is none, nothing
 * of it will leave because it was canceled, it still waits, or it has ended in another way.
 */
export type SendState = 'unknown' | 'canceled' | 'open' | 'ended';

/** World of a tenant's quota. */
export interface QuotaWorld {
  sql: Sql;
  now: () => number;
  alarm: AlarmClock;
  mark: Mark;
  waits: Waits;
  log: Log;
  /** Asks a mailbox about one of its sends; throws when it cannot be reached. */
  sendState: (identityId: IdentityId, ref: string) => Promise<SendState>;
}

export interface ReserveRequest {
  identity_id: IdentityId;
  /** The message id; a repeated reserve with the same ref changes nothing. */
  ref: string;
  /** Recipients that will be sent to, at least one. */
  units: number;
  identity_cap: number;
  /** Null for the system identity, which counts against no tenant cap. */
  tenant_cap: number | null;
  timezone: string;
  gates: Feature[];
}

export interface QuotaWarning {
  scope: 'identity' | 'tenant';
  percent: 80 | 100;
  used: number;
  limit: number;
}

export type ReserveAnswer =
  | { kind: 'ok'; identity_used: number; tenant_used: number | null; day: string; warnings: QuotaWarning[] }
  | {
      kind: 'denied';
      feature: Feature;
      granted: number;
      used: number;
      resets_at: number | null;
      first_in_period: boolean;
    }
  | { kind: 'cap_reached'; scope: 'identity' | 'tenant'; resets_at: number }
  /** The ref was released before this reserve arrived, so its sender no longer wants it. */
  | { kind: 'released' };

/** What a mailbox tells the quota about a send. Each is applied once however often it arrives. */
export type QuotaTask =
  | {
      op: 'settle';
      ref: string;
      /** Ordinal of this settlement among those of the ref, from 1. */
      n: number;
      identity_id: IdentityId;
      consume: number;
      /**
       * Positions in the message of those who are counted, so that each counts once for a send whatever settlements name
       * it: a mailbox that was put back settles again what it has forgotten. Older mailboxes leave it out.
       */
      accepted?: number[];
      keep: number;
      /** Unix ms until which what is kept stays held. */
      until: number | null;
      /** 1 when this is the first time that a transport accepted the message. */
      outbound: 0 | 1;
    }
  /** The send was given up before any transport saw it: the hold and the day's count go back. */
  | { op: 'release'; ref: string; identity_id: IdentityId }
  /** The send waits until `until` (Unix ms) for its next attempt. */
  | { op: 'extend'; ref: string; identity_id: IdentityId; until: number }
  | { op: 'usage'; ref: string; identity_id: IdentityId; metric: UsageMetric; amount: number };

export interface OutcomeRequest {
  identity_id: IdentityId;
  outcome: AbuseOutcome;
  at: number;
  event_id: string;
  complaint_rate_pause: number;
  bounce_rate_pause: number;
}

export interface OutcomeAnswer {
  /** Whether this outcome is one too many of its kind. */
  pause: boolean;
  /** Both counts over their windows. */
  complaints: number;
  bounces: number;
  /** Unix ms at which the event was counted, the first time. */
  counted_at: number;
}

export interface UsageFeature {
  feature: Feature;
  granted: number | null;
  used: number;
  held: number;
  remaining: number | null;
  unlimited: boolean;
  resets_at: number | null;
}

export interface UsageAnswer {
  billing: BillingMode;
  period_start: number;
  period_end: number;
  features: UsageFeature[];
}

export interface OwnerRequest {
  tenant_id: TenantId;
}
