import { WEBHOOK_ATTEMPTS_MAX } from '@pmail/core/webhooks/schedule.ts';
import type { MarkName } from '@pmail/engine/marks.ts';
import type { Waits } from '@pmail/engine/settings.ts';
import { createComposer } from '@pmail/mime/compose.ts';
import { readMail } from '@pmail/mime/read-mail.ts';
import type { CaseId } from './case-list.ts';
import { checkAtRest, checkWhenCalm } from './checkers/all.ts';
import type { Evidence, Violation } from './checkers/evidence.ts';
import type { Intent } from './client.ts';
import { Deployment } from './deployment.ts';
import { type Faults, NO_FAULTS } from './faults.ts';
import type { PlannedFault } from './planned.ts';
import { populate, type SimIdentity, type SimTenant } from './population.ts';
import type { ProviderPlan } from './provider.ts';
import { describeWork, drain, runUntil, startCron, sweep } from './rest.ts';
import { Universe } from './universe.ts';
import type { Wiring } from './wiring.ts';

/** One run of the simulator: what is set up, and what is done in it. */
export interface Schedule {
  seed: number;
  faults: Faults;
  /** Faults at exact places, beside those by chance. */
  planned?: readonly PlannedFault[];
  /** Unix ms at which it begins. */
  start?: number;
  tenants: SimTenant[];
  plan: (universe: Universe) => ProviderPlan;
  /** Starts the clients; what it returns is what the checkers hold the service to. */
  act: (stage: Stage) => Intent[];
  /** How long faults go on before everything has to come to rest. */
  stormy_ms: number;
  /** When the crons may look less often, as nothing but back-offs is left. */
  quiet_after_ms?: number;
  /** After so many steps a run is given up as one that never comes to rest. */
  steps_max?: number;
  /** What is done when the keys of all sends have run out, and the intents of that. */
  month_later?: (stage: Stage, intents: readonly Intent[]) => Intent[];
  /** Waits of the service, where the real ones would take days. */
  waits?: Partial<Waits>;
  wiring?: Partial<Wiring>;
  /** Nobody has the provider report again at rest: what is heard is heard by the first reports and their own repeats. */
  reports_once?: boolean;
  /** So many steps of their schema are missing in the storage of the objects at the beginning. */
  steps_missing?: number;
}

/** What a schedule's actors may touch. */
export interface Stage {
  universe: Universe;
  deployment: Deployment;
  identities: SimIdentity[];
  /** Unix ms from which on counters are held against the rows; an actor that lets days go by moves it. */
  since: number;
}

export interface Report {
  seed: number;
  violations: Violation[];
  history: string[];
  marks: ReadonlyMap<MarkName, number>;
  /** Marks at which somebody died, and how often. */
  crashes: ReadonlyMap<MarkName, number>;
  cases: ReadonlyMap<CaseId, number>;
  happened: ReadonlySet<string>;
  /** Changes of recipients' statuses, `old → new`, and how often each was made. */
  transitions: ReadonlyMap<string, number>;
  /** How often each planned fault has struck. */
  struck: readonly number[];
  steps: number;
  virtual_ms: number;
}

/** A run with the world it has left behind, for those who want to look into it. */
export interface Play {
  report: Report;
  stage: Stage;
  intents: Intent[];
}

const QUIET_AFTER_MS = 45 * 60_000;
/** A back-off ends after a day; a little more and everything has to be at rest. */
const DRAIN_MS = 30 * 3_600_000;
const STEPS_MAX = 400_000;
const MONTH_MS = 30 * 24 * 3_600_000;

/** Runs a schedule to rest and holds the outcome against the invariants. */
export async function runSchedule(schedule: Schedule): Promise<Report> {
  const { report, stage } = await playSchedule(schedule);
  stage.deployment.close();
  return report;
}

/** The same, and leaves the world standing. */
export async function playSchedule(schedule: Schedule): Promise<Play> {
  const universe = new Universe(schedule.seed, NO_FAULTS, schedule.planned, schedule.start);
  const { scheduler } = universe;
  scheduler.stepsMax = schedule.steps_max ?? STEPS_MAX;
  const { plan, waits, wiring, steps_missing } = schedule;
  const deployment = new Deployment(universe, {
    composer: createComposer(),
    parse: readMail,
    plan: plan(universe),
    waits,
    wiring,
    steps_missing,
  });
  const identities = populate(deployment, schedule.tenants);
  universe.faults = schedule.faults;
  const stage: Stage = { universe, deployment, identities, since: 0 };
  const intents = schedule.act(stage);
  const evidence = (): Evidence => ({ ...stage, intents, calmAt });
  const cron = startCron(stage, schedule.quiet_after_ms ?? Math.max(QUIET_AFTER_MS, schedule.stormy_ms));

  const stormEnds = scheduler.now + schedule.stormy_ms;
  let calmAt = Number.POSITIVE_INFINITY;
  await runUntil(universe, stormEnds);
  universe.calm();
  calmAt = universe.now;
  universe.log('faults stop');
  const violations = checkWhenCalm(evidence());
  if (!(await drain(stage, stormEnds + DRAIN_MS, schedule.reports_once)))
    violations.push({ invariant: 'I7', text: describeWork(stage) });
  cron.cancel();
  const restAfter = scheduler.now - stormEnds;
  meetAtRest(stage);
  await sweep(stage);
  violations.push(...checkAtRest(evidence()));
  if (schedule.month_later !== undefined) violations.push(...(await monthLater(schedule, stage, intents)));
  return {
    report: {
      seed: schedule.seed,
      violations,
      history: universe.history,
      marks: universe.marks,
      crashes: universe.crashes,
      cases: universe.cases,
      happened: universe.happened,
      transitions: transitionsOf(stage),
      struck: universe.plan.struck,
      steps: scheduler.steps,
      virtual_ms: restAfter,
    },
    stage,
    intents,
  };
}

function transitionsOf({ deployment }: Stage): Map<string, number> {
  const out = new Map<string, number>();
  for (const { sql } of deployment.mailboxes.values()) {
    const rows = sql.all<{ change: string; n: number }>(
      "SELECT old || ' → ' || new AS change, COUNT(*) AS n FROM sim_trace WHERE address IS NOT NULL AND old <> '' GROUP BY change",
    );
    for (const { change, n } of rows) out.set(change, (out.get(change) ?? 0) + n);
  }
  return out;
}

/** What shows in the records alone: a complaint or a bounce after the delivery, how deliveries of webhooks ended. */
function meetAtRest({ universe, deployment }: Stage): void {
  for (const { sql } of deployment.mailboxes.values()) {
    const rows = sql.all<{ new: string }>(
      "SELECT new FROM sim_trace WHERE old = 'delivered' AND address IS NOT NULL AND new IN ('complained', 'bounced')",
    );
    for (const { new: next } of rows) universe.meet(next === 'complained' ? 'V5' : 'V6');
  }
  if (!deployment.subscribers.any) return;
  const dead = deployment.directory.all<{ error: string; attempt: number }>(
    "SELECT error, attempt FROM webhook_deliveries WHERE status = 'dead'",
  );
  for (const { error, attempt } of dead) {
    if (error === 'endpoint_disabled') universe.meet('V10 off');
    else if (attempt >= WEBHOOK_ATTEMPTS_MAX) universe.meet('V10 dead');
  }
}

/** The same world when every key has run out, with only the daily work in between. */
async function monthLater(
  { month_later: act }: Schedule,
  stage: Stage,
  before: readonly Intent[],
): Promise<Violation[]> {
  const { universe, deployment } = stage;
  await runUntil(universe, universe.scheduler.now + MONTH_MS);
  universe.log('a month later');
  // As whoever asks for the usage does: a new month begins with it.
  for (const quota of deployment.quotas.values()) quota.invoke((engine) => engine.usage()).catch(() => undefined);
  await runUntil(universe, universe.scheduler.now + 1_000);
  stage.since = universe.now;
  const intents = act?.(stage, before) ?? [];
  const cron = startCron(stage, QUIET_AFTER_MS);
  const rested = await drain(stage, universe.scheduler.now + DRAIN_MS);
  cron.cancel();
  await sweep(stage);
  return [
    ...(rested ? [] : [{ invariant: 'I7', text: describeWork(stage) }]),
    ...checkAtRest({ ...stage, intents, calmAt: universe.now }),
  ];
}
