import type { TenantId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { utcDay } from '@pmail/core/time.ts';
import type { Sql } from '@pmail/engine/sql.ts';
import type { SimIdentity } from '../population.ts';
import { type DeliveryTrace, deliveriesOf, type Evidence, mailbox, type Violation } from './evidence.ts';
import { type Bounds, type Recount, recount } from './recount.ts';

type Wrong = (text: string) => void;

/** What a counter may stand at. */
interface Span {
  least: number;
  most: number;
}

function isOff(value: number, { least, most }: Span): boolean {
  return value < least || value > most;
}

function say({ least, most }: Span): string {
  return least === most ? `${least}` : `${least} to ${most}`;
}

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
    const total = (of: keyof Recount): Span => {
      const sum = (which: keyof Bounds): number => [...counts.values()].reduce((n, c) => n + c[which][of].size, 0);
      return { least: sum('least'), most: sum('most') };
    };
    caps(evidence, sql, counts, wrong);
    allowance(sql, total('accepted'), wrong);
    const expected = { sends: total('accepted'), outbound: total('outbound'), inbound: total('inbound') };
    usage(evidence, tenant as TenantId, sql, expected, wrong);
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

function caps(evidence: Evidence, sql: Sql, counts: ReadonlyMap<SimIdentity, Bounds>, wrong: Wrong): void {
  let all = 0;
  for (const [{ identity_id, address }, { least, most }] of counts) {
    const cap = counted(sql, `sends:${identity_id}`, evidence.since);
    const rows = { least: least.counted.size, most: most.counted.size };
    if (isOff(cap, rows)) wrong(`${address}: cap counts ${cap} sends, rows say ${say(rows)}`);
    all += cap;
  }
  const tenant = counted(sql, 'sends', evidence.since);
  if (tenant !== all) wrong(`tenant counts ${tenant} sends, its identities ${all}`);
}

function allowance(sql: Sql, accepted: Span, wrong: Wrong): void {
  const { n, holds, held, used } = heldBy(sql);
  if (n > 0) wrong(`${n} holds at rest`);
  if (held !== holds) wrong(`held says ${held}, holds say ${holds}`);
  if (isOff(used, accepted)) wrong(`used says ${used}, accepted recipients are ${say(accepted)}`);
}

/** Usage stands in the quota for two days, and in the directory for good. */
function usage(
  { deployment, since }: Evidence,
  tenant: TenantId,
  sql: Sql,
  expected: Record<string, Span>,
  wrong: Wrong,
): void {
  const first = since === 0 ? '' : utcDay(since);
  for (const [metric, rows] of Object.entries(expected)) {
    const written = deployment.directory.all<{ day: string; value: number }>(
      'SELECT day, value FROM usage_daily WHERE tenant_id = ? AND metric = ? AND day >= ?',
      tenant,
      metric,
      first,
    );
    // A day that clocks were turned back from is written when it comes again.
    const toCome = sql.all<{ day: string; value: number }>(
      'SELECT window AS day, value FROM counters WHERE metric = ? AND window > ?',
      `usage:${metric}`,
      utcDay(deployment.universe.now),
    );
    const days = new Map([...written, ...toCome].map(({ day, value }) => [day, value]));
    const total = [...days.values()].reduce((sum, value) => sum + value, 0);
    if (isOff(total, rows)) wrong(`usage of ${metric} says ${total}, rows say ${say(rows)}`);
    const today = counted(sql, `usage:${metric}`, since);
    if (today > rows.most) wrong(`the counter of ${metric} says ${today}, rows say ${say(rows)}`);
  }
}

/** The abuse windows hold each event with an outcome exactly once. */
function outcomes(evidence: Evidence, identities: SimIdentity[], sql: Sql, wrong: Wrong): void {
  const applied = new Set(identities.flatMap((identity) => eventIds(deliveriesOf(evidence, identity))));
  const forgotten = identities.flatMap((identity) => mailbox(evidence, identity).forgotten);
  const everApplied = new Set([...applied, ...forgotten.flatMap(({ deliveries }) => eventIds(deliveries))]);
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
    if (!everApplied.has(id)) wrong(`outcome of ${id} was counted, but no delivery knows it`);
  }
}

function eventIds(deliveries: DeliveryTrace[]): string[] {
  return deliveries.flatMap(({ provider_event_ids_json: json }) => JSON.parse(json) as string[]);
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
