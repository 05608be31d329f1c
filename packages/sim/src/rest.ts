import { LIMITS } from '@pmail/core/limits.ts';
import type { Deployment } from './deployment.ts';
import { Process } from './process.ts';
import type { Stage } from './schedule.ts';
import type { Universe } from './universe.ts';

/** Running a schedule until nobody has anything left to do. */

const CRON_MS = 60_000;
const QUIET_CRON_MS = 15 * 60_000;
/** The usage cron runs with every fifteenth of the minute's. */
const ROLL_UP_EVERY = 15;

/** Runs everything that is due until then, by the scheduler's time. */
export function runUntil({ scheduler }: Universe, time: number): Promise<void> {
  return scheduler.runWhile(
    () => (scheduler.next() ?? Number.POSITIVE_INFINITY) <= time && scheduler.steps <= scheduler.stepsMax,
  );
}

/** @param calmAfter ms after which only back-offs are left, and looking every minute would take the run's time */
export function startCron({ universe, deployment }: Stage, calmAfter: number): { cancel: () => void } {
  const { scheduler } = universe;
  let stopped = false;
  let runs = 0;
  const calmEnds = scheduler.now + calmAfter;
  const tick = (): void => {
    if (stopped) return;
    const process = new Process(`cron ${++runs}`);
    const failed = (error: unknown): void => universe.log(`cron failed: ${error instanceof Error ? error.name : '?'}`);
    deployment.cron(process).catch(failed);
    if (runs % ROLL_UP_EVERY === 0 || scheduler.now >= calmEnds) deployment.rollUp(process).catch(failed);
    scheduler.after(scheduler.now < calmEnds ? CRON_MS : QUIET_CRON_MS, tick);
  };
  scheduler.after(CRON_MS, tick);
  return {
    cancel: () => {
      stopped = true;
    },
  };
}

/** Each settles at least one message where the one before did not settle all; schedules have fewer that are alike. */
const REPEATS_MAX = 10;

/**
 * Runs without faults until nobody has anything left to do; false when that is not so by then.
 *
 * @param once nobody puts back what the delivery queue gave up on
 */
export async function drain(stage: Stage, until: number, once = false): Promise<boolean> {
  const { universe, deployment } = stage;
  const { scheduler } = universe;
  const orphans = (): number => universe.cases.get('V4') ?? 0;
  let round = { heard: new Set<string>(), orphans: 0 };
  let repeats = 0;
  for (;;) {
    await runUntil(universe, Math.min(Math.max(scheduler.now + CRON_MS, scheduler.next() ?? 0), until));
    if (describeWork(stage) === '') {
      // What the delivery queue gave up on, an operator puts back; again as long as some of it found no message and some
      // did, because the latter may have told under which id the provider has one, or left a single one to be meant.
      const heard = heardOf(deployment);
      const done = orphans() === round.orphans || (repeats > 1 && heard.size === round.heard.size);
      if (once || (repeats > 0 && done) || repeats === REPEATS_MAX) return true;
      deployment.provider.repeatReports(repeats === 0 ? new Set() : heard);
      repeats++;
      round = { heard, orphans: orphans() };
      continue;
    }
    const next = scheduler.next();
    if (next === undefined || next > until || scheduler.steps > scheduler.stepsMax) return false;
  }
}

/** Ids of the reports that some delivery has taken in. */
function heardOf({ mailboxes }: Deployment): Set<string> {
  const ids = new Set<string>();
  for (const { sql } of mailboxes.values()) {
    for (const { json } of sql.all<{ json: string }>('SELECT provider_event_ids_json AS json FROM deliveries')) {
      for (const id of JSON.parse(json) as string[]) ids.add(id);
    }
  }
  return ids;
}

const WORK_SQL = `SELECT
  (SELECT COUNT(*) FROM meta WHERE k >= 'dispatch:' AND k < 'dispatch;') AS dispatch,
  (SELECT COUNT(*) FROM meta WHERE k >= 'claim:' AND k < 'claim;') AS claims,
  (SELECT COUNT(*) FROM outbox WHERE dispatched_at IS NULL) AS outbox,
  (SELECT COUNT(*) FROM meta WHERE k IN ('restored', 'rebuild')) AS rebuilds,
  (SELECT COUNT(*) FROM quota_tasks) AS quota_tasks,
  (SELECT COUNT(*) FROM followups) AS followups`;

/** What there is still to do; empty at rest. */
export function describeWork({ deployment }: Stage): string {
  const parts: string[] = [];
  for (const [id, host] of deployment.mailboxes) {
    const work = host.sql.first<Record<string, number>>(WORK_SQL) ?? {};
    for (const [name, count] of Object.entries(work)) {
      if (count > 0) parts.push(`${name} ${count} in ${id.slice(-4)}`);
    }
  }
  for (const [id, host] of deployment.quotas) {
    const holds = host.sql.first<{ n: number }>('SELECT COUNT(*) AS n FROM holds')?.n ?? 0;
    if (holds > 0) parts.push(`holds ${holds} in quota ${id.slice(-4)}`);
  }
  parts.push(...webhookWork(deployment));
  for (const queue of [deployment.outbound, deployment.inbound, deployment.delivery, deployment.webhooks]) {
    if (queue.length > 0) parts.push(`${queue.length} in ${queue.name}`);
  }
  return parts.join(', ');
}

const WEBHOOK_WORK_SQL = `SELECT (SELECT COUNT(*) FROM webhook_work) AS due,
  (SELECT COUNT(*) FROM event_index WHERE fanned_out_at IS NULL AND occurred_at > ?) AS untold`;

function webhookWork({ directory, subscribers, universe, waits }: Deployment): string[] {
  if (!subscribers.any) return [];
  // What is older nobody sweeps any more.
  const oldest = universe.now - LIMITS.fanout_until_ms + 2 * waits.webhook_sweep_after_ms;
  const row = directory.first<{ due: number; untold: number }>(WEBHOOK_WORK_SQL, oldest) ?? { due: 0, untold: 0 };
  const parts = [`${row.due} deliveries due`, `${row.untold} events untold`, `${subscribers.running.size} attempts`];
  return parts.filter((part) => !part.startsWith('0 '));
}

/** The orphan sweep, as the daily maintenance runs it, and the last roll-up of usage. */
export async function sweep({ universe, deployment }: Stage): Promise<void> {
  const { scheduler } = universe;
  const rollUp = (): void => {
    deployment.rollUp(new Process('last roll-up')).catch((error: unknown) => universe.log(`usage: ${String(error)}`));
  };
  // The crons have ended, and what comes now can be the wait of a day.
  rollUp();
  // By clocks that were put back, what was made before that is still to come.
  const later = scheduler.now + 2 * 3_600_000 + Math.max(0, -universe.skew);
  scheduler.at(later, () => universe.log('two hours later'));
  await runUntil(universe, later);
  for (const host of deployment.mailboxes.values()) {
    host.sql.run("UPDATE meta SET v = '0' WHERE k = 'alarm:maintenance'");
    host.fireAlarm();
  }
  rollUp();
  await runUntil(universe, scheduler.now + CRON_MS);
}
