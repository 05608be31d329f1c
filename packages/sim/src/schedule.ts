import type { MessageId } from '@pmail/core/ids.ts';
import type { MarkName } from '@pmail/engine/marks.ts';
import type { ParsedMail } from '@pmail/engine/parsed-mail.ts';
import { createComposer } from '@pmail/mime/compose.ts';
import { htmlToText } from '@pmail/mime/html-to-text.ts';
import { parseMail } from '@pmail/mime/parse.ts';
import { sanitizeHtml } from '@pmail/mime/sanitize.ts';
import { countersMatch, eventsInOrder, noOrphans } from './checkers/books.ts';
import { type Evidence, TRACE_SQL, type Violation } from './checkers/evidence.ts';
import { limitsKept, threadsInTurn } from './checkers/limits.ts';
import { allowedTransitions, nothingLost, oneCall, oneMessagePerKey, sameBytes } from './checkers/sends.ts';
import type { Intent } from './client.ts';
import { Deployment } from './deployment.ts';
import type { Faults } from './faults.ts';
import { populate, type SimIdentity, type SimTenant } from './population.ts';
import { Process } from './process.ts';
import type { ProviderPlan } from './provider.ts';
import { Universe } from './universe.ts';

/** One run of the simulator: what is set up, and what is done in it. */
export interface Schedule {
  seed: number;
  faults: Faults;
  tenants: SimTenant[];
  plan: (universe: Universe) => ProviderPlan;
  /** Starts the clients; what it returns is what the checkers hold the service to. */
  act: (stage: Stage) => Intent[];
  /** How long faults go on before everything has to come to rest. */
  stormy_ms: number;
}

/** What a schedule's actors may touch. */
export interface Stage {
  universe: Universe;
  deployment: Deployment;
  identities: SimIdentity[];
  resolved: Map<MessageId, 'sent' | 'not_sent'>;
}

export interface Report {
  seed: number;
  violations: Violation[];
  history: string[];
  marks: ReadonlyMap<MarkName, number>;
  happened: ReadonlySet<string>;
  steps: number;
  virtual_ms: number;
}

const composer = createComposer();

async function parse(raw: Uint8Array): Promise<ParsedMail> {
  const mail = await parseMail(raw);
  const html = mail.html === null ? null : sanitizeHtml(mail.html);
  return {
    ...mail,
    sent_at: mail.date,
    rfc_message_id: mail.message_id,
    text: mail.text ?? (html === null ? null : htmlToText(html)),
    html_sanitized: html,
  };
}

const CRON_MS = 60_000;
const QUIET_CRON_MS = 15 * 60_000;
const QUIET_AFTER_MS = 45 * 60_000;
/** The usage cron runs with every fifteenth of the minute's. */
const ROLL_UP_EVERY = 15;
/** A back-off ends after a day; a little more and everything has to be at rest. */
const DRAIN_MS = 30 * 3_600_000;
const STEPS_MAX = 400_000;

/** Runs a schedule to rest and holds the outcome against the invariants. */
export async function runSchedule(schedule: Schedule): Promise<Report> {
  const universe = new Universe(schedule.seed, schedule.faults);
  const deployment = new Deployment(universe, { composer, parse, plan: schedule.plan(universe) });
  const identities = populate(deployment, schedule.tenants);
  for (const host of deployment.mailboxes.values()) {
    host.database.function('sim_now', () => universe.now);
    host.database.exec(TRACE_SQL);
  }
  const stage: Stage = { universe, deployment, identities, resolved: new Map() };
  const intents = schedule.act(stage);
  const cron = startCron(stage);

  const stormEnds = universe.now + schedule.stormy_ms;
  await runUntil(universe, stormEnds);
  universe.calm();
  universe.log('faults stop');
  const violations: Violation[] = [];
  if (!(await drain(stage, stormEnds + DRAIN_MS))) violations.push({ invariant: 'I7', text: describeWork(stage) });
  cron.cancel();
  await sweep(stage);
  const evidence: Evidence = { deployment, identities, intents, resolved: stage.resolved };
  for (const check of [
    oneCall,
    oneMessagePerKey,
    nothingLost,
    allowedTransitions,
    countersMatch,
    limitsKept,
    threadsInTurn,
    sameBytes,
    eventsInOrder,
    noOrphans,
  ]) {
    violations.push(...check(evidence));
  }
  return {
    seed: schedule.seed,
    violations,
    history: universe.history,
    marks: universe.marks,
    happened: universe.happened,
    steps: universe.scheduler.steps,
    virtual_ms: universe.now - stormEnds,
  };
}

function runUntil({ scheduler }: Universe, time: number): Promise<void> {
  return scheduler.runWhile(() => (scheduler.next() ?? Infinity) <= time && scheduler.steps <= STEPS_MAX);
}

function startCron({ universe, deployment }: Stage): { cancel: () => void } {
  let stopped = false;
  let runs = 0;
  const calmEnds = universe.now + QUIET_AFTER_MS;
  const tick = (): void => {
    if (stopped) return;
    const process = new Process(`cron ${++runs}`);
    const failed = (error: unknown): void => universe.log(`cron failed: ${error instanceof Error ? error.name : '?'}`);
    deployment.cron(process).catch(failed);
    if (runs % ROLL_UP_EVERY === 0 || universe.now >= calmEnds) deployment.rollUp(process).catch(failed);
    // Long after the storm only back-offs are left; looking every minute would take the run's time.
    universe.scheduler.after(universe.now < calmEnds ? CRON_MS : QUIET_CRON_MS, tick);
  };
  universe.scheduler.after(CRON_MS, tick);
  return {
    cancel: () => {
      stopped = true;
    },
  };
}

/** Runs without faults until nobody has anything left to do. */
async function drain(stage: Stage, until: number): Promise<boolean> {
  const { universe, deployment } = stage;
  let repeated = false;
  for (;;) {
    await runUntil(universe, Math.min(Math.max(universe.now + CRON_MS, universe.scheduler.next() ?? 0), until));
    if (isAtRest(stage)) {
      if (repeated) return true;
      // What the delivery queue gave up on, an operator puts back.
      repeated = true;
      deployment.provider.repeatReports();
      continue;
    }
    if (universe.now >= until || universe.scheduler.next() === undefined || universe.scheduler.steps > STEPS_MAX) {
      return false;
    }
  }
}

const WORK_SQL = `SELECT
  (SELECT COUNT(*) FROM meta WHERE k >= 'dispatch:' AND k < 'dispatch;') AS dispatch,
  (SELECT COUNT(*) FROM meta WHERE k >= 'claim:' AND k < 'claim;') AS claims,
  (SELECT COUNT(*) FROM outbox WHERE dispatched_at IS NULL) AS outbox,
  (SELECT COUNT(*) FROM quota_tasks) AS quota_tasks,
  (SELECT COUNT(*) FROM followups) AS followups`;

function isAtRest(stage: Stage): boolean {
  return describeWork(stage) === '';
}

/** What there is still to do, for the report of a run that did not come to rest. */
function describeWork({ deployment }: Stage): string {
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
  for (const queue of [deployment.outbound, deployment.inbound, deployment.delivery]) {
    if (queue.length > 0) parts.push(`${queue.length} in ${queue.name}`);
  }
  return parts.join(', ');
}

/** The orphan sweep, as the daily maintenance runs it. */
async function sweep({ universe, deployment }: Stage): Promise<void> {
  const later = universe.now + 2 * 3_600_000;
  universe.scheduler.at(later, () => universe.log('two hours later'));
  await runUntil(universe, later);
  for (const host of deployment.mailboxes.values()) {
    host.sql.run("UPDATE meta SET v = '0' WHERE k = 'alarm:maintenance'");
    host.invoke((engine) => engine.alarm()).catch(() => undefined);
  }
  await runUntil(universe, universe.now + CRON_MS);
}
