import type { TenantId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { utcDay } from '@pmail/core/time.ts';
import type { Sql } from '@pmail/engine/sql.ts';
import type { SimIdentity } from '../population.ts';
import {
  type DeliveryTrace,
  deliveriesOf,
  type Evidence,
  messagesOf,
  type Step,
  traceOf,
  type Violation,
} from './evidence.ts';

type Wrong = (text: string) => void;

const DAY_MS = 86_400_000;

/** I4: every counter of a tenant's quota equals a recount of the rows it stands for. */
export function countersMatch(evidence: Evidence): Violation[] {
  const violations: Violation[] = [];
  for (const [tenant, { sql }] of evidence.deployment.quotas) {
    const wrong: Wrong = (text) => {
      violations.push({ invariant: 'I4', text: `${tenant.slice(-4)}: ${text}` });
    };
    if (evidence.since === Number.POSITIVE_INFINITY) {
      const { n, held } = heldBy(sql);
      if (n + held > 0) wrong(`${n} holds of ${held} at rest`);
      continue;
    }
    const identities = evidence.identities.filter(({ tenant_id }) => tenant_id === tenant);
    const counts = new Map(identities.map((identity) => [identity, recount(evidence, identity)]));
    caps(evidence, sql, counts, wrong);
    const total = (of: keyof Recount): number => [...counts.values()].reduce((sum, count) => sum + count[of], 0);
    allowance(sql, total('accepted'), wrong);
    usage(
      evidence,
      tenant as TenantId,
      sql,
      {
        sends: total('accepted'),
        outbound: total('outbound'),
        inbound: total('inbound'),
      },
      wrong,
    );
    outcomes(evidence, identities, sql, wrong);
  }
  return violations;
}

/** I4 at any moment, not only at rest: what is held in an allowance is what its holds hold. */
export function holdsAddUp({ deployment }: Evidence): Violation[] {
  return [...deployment.quotas].flatMap(([tenant, { sql }]) => {
    const { holds, held } = heldBy(sql);
    if (holds === held) return [];
    return [
      { invariant: 'I4', text: `${tenant.slice(-4)}: held says ${held}, holds say ${holds}, in the middle of it` },
    ];
  });
}

function heldBy(sql: Sql): { holds: number; held: number; used: number; n: number } {
  const holds = sql.first<{ n: number; units: number | null }>('SELECT COUNT(*) AS n, SUM(units) AS units FROM holds');
  const sends = sql.first<{ used: number; held: number }>("SELECT used, held FROM allowances WHERE feature = 'sends'");
  return { holds: holds?.units ?? 0, held: sends?.held ?? 0, used: sends?.used ?? 0, n: holds?.n ?? 0 };
}

/** What was counted against a metric, without days that were over before the time that is looked at. */
function counted(sql: Sql, metric: string, since: number): number {
  const first = since === 0 ? '' : utcDay(since - DAY_MS);
  const row = sql.first<{ value: number | null }>(
    'SELECT SUM(value) AS value FROM counters WHERE metric = ? AND window >= ?',
    metric,
    first,
  );
  return row?.value ?? 0;
}

function caps(evidence: Evidence, sql: Sql, counts: ReadonlyMap<SimIdentity, Recount>, wrong: Wrong): void {
  let all = 0;
  for (const [{ identity_id, address }, { counted: rows }] of counts) {
    const cap = counted(sql, `sends:${identity_id}`, evidence.since);
    if (cap !== rows) wrong(`${address}: cap counts ${cap} sends, rows say ${rows}`);
    all += cap;
  }
  const tenant = counted(sql, 'sends', evidence.since);
  if (tenant !== all) wrong(`tenant counts ${tenant} sends, its identities ${all}`);
}

function allowance(sql: Sql, accepted: number, wrong: Wrong): void {
  const { n, holds, held, used } = heldBy(sql);
  if (n > 0) wrong(`${n} holds at rest`);
  if (held !== holds) wrong(`held says ${held}, holds say ${holds}`);
  if (used !== accepted) wrong(`used says ${used}, accepted recipients are ${accepted}`);
}

/** Usage stands in the quota for two days, and in the directory for good. */
function usage(
  { deployment, since }: Evidence,
  tenant: TenantId,
  sql: Sql,
  expected: Record<string, number>,
  wrong: Wrong,
): void {
  const first = since === 0 ? '' : utcDay(since);
  for (const [metric, rows] of Object.entries(expected)) {
    const written = deployment.directory.first<{ value: number | null }>(
      'SELECT SUM(value) AS value FROM usage_daily WHERE tenant_id = ? AND metric = ? AND day >= ?',
      tenant,
      metric,
      first,
    );
    const total = written?.value ?? 0;
    if (total !== rows) wrong(`usage of ${metric} says ${total}, rows say ${rows}`);
    const today = counted(sql, `usage:${metric}`, since);
    if (today > rows) wrong(`the counter of ${metric} says ${today}, rows say ${rows}`);
  }
}

interface Recount {
  /** Recipients that a transport took. */
  accepted: number;
  /** Messages of which it took any. */
  outbound: number;
  inbound: number;
  /** Messages that count against a day's cap. */
  counted: number;
}

/** What the rows of a mailbox say was sent, by the trace of its deliveries. */
function recount(evidence: Evidence, identity: SimIdentity): Recount {
  const messages = messagesOf(evidence, identity).filter(({ received_at }) => received_at >= evidence.since);
  const deliveries = deliveriesOf(evidence, identity);
  const trace = traceOf(evidence, identity).filter(({ address }) => address !== null);
  const out: Recount = { accepted: 0, outbound: 0, inbound: 0, counted: 0 };
  for (const message of messages) {
    if (message.direction === 'inbound') {
      out.inbound++;
      continue;
    }
    const own = deliveries.filter(({ message_rowid }) => message_rowid === message.rowid);
    const steps = trace.filter(({ rowid }) => rowid === message.rowid);
    const queued = own.some(({ status }) => status !== 'suppressed') || steps.some(({ old }) => old === 'queued');
    if (queued && message.status !== 'canceled') out.counted++;
    const taken = own.filter((row) => steps.some((step) => step.address === row.address && wasTaken(step, row))).length;
    out.accepted += taken;
    if (taken > 0) out.outbound++;
  }
  return out;
}

/** Statuses of recipients of whom nobody knows yet that they were taken, and those by which they turn out to be. */
const UNKNOWN = ['queued', 'uncertain'];
const REPORTED = ['delivered', 'deferred', 'bounced', 'complained'];

/** Whoever reports that it gave up had taken it first; a person or a dead claim says so too, and without a report. */
function wasTaken({ old, new: next }: Step, { reported_at }: DeliveryTrace): boolean {
  if (next === 'submitted') return true;
  return UNKNOWN.includes(old) && (REPORTED.includes(next) || (next === 'failed' && reported_at !== null));
}

/** The abuse windows hold each event with an outcome exactly once. */
function outcomes(evidence: Evidence, identities: SimIdentity[], sql: Sql, wrong: Wrong): void {
  const applied = new Set<string>();
  for (const identity of identities) {
    for (const { provider_event_ids_json: json } of deliveriesOf(evidence, identity)) {
      for (const id of JSON.parse(json) as string[]) applied.add(id);
    }
  }
  const withOutcome = new Set(
    evidence.deployment.provider.reported
      .filter(({ outcome, occurred_at }) => outcome !== null && occurred_at >= evidence.since)
      .map(({ event_id }) => event_id),
  );
  const known = new Set(
    sql.all<{ event_id: string }>('SELECT event_id FROM outcome_events').map(({ event_id }) => event_id),
  );
  if (evidence.since === 0) countedOnce(evidence, sql, wrong);
  for (const id of applied) {
    if (withOutcome.has(id) && !known.has(id)) wrong(`outcome of ${id} was never counted`);
  }
  for (const id of known) {
    if (!applied.has(id)) wrong(`outcome of ${id} was counted, but no delivery knows it`);
  }
}

/** Each event that was counted stands in the windows once. */
function countedOnce({ deployment }: Evidence, sql: Sql, wrong: Wrong): void {
  const outcomeOf = new Map(deployment.provider.reported.map(({ event_id, outcome }) => [event_id, outcome]));
  const events = sql.all<{ event_id: string }>('SELECT event_id FROM outcome_events');
  // Beyond that the oldest of an identity fall out of its window.
  if (events.length > LIMITS.outcomes_kept_max) return;
  const rows = sql.all<{ outcome: string; n: number }>('SELECT outcome, COUNT(*) AS n FROM outcomes GROUP BY outcome');
  const known = events.filter(({ event_id: id }) => outcomeOf.has(id));
  const total = rows.reduce((sum, { n }) => sum + n, 0);
  if (total !== events.length) wrong(`${events.length} events were counted, and the windows have ${total} outcomes`);
  for (const { outcome, n } of rows) {
    const of = known.filter(({ event_id: id }) => outcomeOf.get(id) === outcome).length;
    // Events of test providers are not in the log of the other.
    if (n < of || n > of + events.length - known.length)
      wrong(`${of} events are ${outcome}, and the windows have ${n}`);
  }
}
