import { type Intent, intend, pursue } from './client.ts';
import { NO_FAULTS } from './faults.ts';
import { cancel, resolve } from './people.ts';
import type { PlannedFault } from './planned.ts';
import type { CallOutcome } from './provider.ts';
import type { ReportPlan } from './reports.ts';
import type { Schedule, Stage } from './schedule.ts';
import type { Family, Place } from './variants.ts';

/** Crashes at the marks that one plain send never reaches: what people do, what runs out, what is counted too often. */

interface Setting {
  outcome?: CallOutcome;
  reports?: ReportPlan;
  to?: string[];
  planned?: readonly PlannedFault[];
  /** What somebody does about the send, and after how many ms. */
  act?: { after: number; run: (stage: Stage, intent: Intent) => Promise<void> };
}

const MINUTE = 60_000;

const LOST_POINTER: PlannedFault = { call: /^send to pm-outbound/, harm: 'lost' };
/** Nobody hears how the call ended, so its claim runs out. */
const LOST_RECORD: PlannedFault = { call: /^outcome /, harm: 'lost', times: 2 };
/** What was reserved for a commit that failed waits until its hold is over. */
const FAILED_COMMIT: PlannedFault = { statement: /INTO idempotency/ };

const SETTINGS: [string, Family['marks'] & object, Setting][] = [
  [
    'canceled while it is queued',
    ['cancel.in_transaction', 'cancel.committed', 'dispatch.before_send', 'dispatch.after_send'],
    { planned: [LOST_POINTER], act: { after: 5_000, run: cancel } },
  ],
  [
    'settled by a person',
    ['resolve.in_transaction', 'resolve.committed'],
    { outcome: 'server_error', act: { after: 30_000, run: (stage, intent) => resolve(stage, intent, 'sent') } },
  ],
  ['a claim that runs out', ['claim.expired'], { planned: [LOST_RECORD] }],
  ['a hold that runs out', ['quota.hold_expired'], { planned: [FAILED_COMMIT] }],
  [
    'complaints until a pause',
    ['event.paused', 'event.outcome_recorded'],
    { reports: ['complained'], to: ['a', 'b', 'c', 'd', 'e'].map((name) => `${name}@example.net`) },
  ],
];

export function rareCrashFamilies(): Family[] {
  return SETTINGS.map(([name, marks, setting]) => ({
    name: `${name}, crash`,
    depth: 2,
    marks,
    make: (at: Place | null) => schedule(setting, at),
  }));
}

function schedule(
  { outcome = 'accept', reports = [], to = ['a@example.net'], planned = [], act }: Setting,
  at: Place | null,
): Schedule {
  return {
    seed: 1,
    faults: { ...NO_FAULTS, crash_at: at },
    planned,
    tenants: [{ mode: 'live', identities: 1 }],
    plan: () => ({ outcome: () => outcome, reports: () => reports, delay: () => 1_000 }),
    act: (stage) => {
      const { universe, deployment, identities } = stage;
      const [identity] = identities;
      if (identity === undefined) throw new Error('no identity');
      const intent = intend('single', identity, { to, subject: 'One send', text: 'Hello.' });
      const later = (ms: number, run: () => Promise<void>): void => {
        universe.scheduler.after(ms, () => {
          run().catch((error: unknown) => universe.log(`actor: ${String(error)}`));
        });
      };
      // The client repeats its request even after it was answered, as one does that lost the answer.
      for (const ms of [0, 40_000]) later(ms, () => pursue(deployment, intent, 50));
      if (act !== undefined) later(act.after, () => act.run(stage, intent));
      return [intent];
    },
    stormy_ms: 15 * MINUTE,
  };
}
