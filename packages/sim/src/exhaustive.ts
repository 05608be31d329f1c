import type { SendBody } from '@pmail/core/message/request.ts';
import { MARKS } from '@pmail/engine/marks.ts';
import { type Intent, intend, pursue } from './client.ts';
import { rareCrashFamilies } from './crash-ways.ts';
import { NO_FAULTS } from './faults.ts';
import type { PlannedFault } from './planned.ts';
import { CALL_OUTCOMES, type CallOutcome } from './provider.ts';
import { raceFamilies } from './races.ts';
import type { ReportPlan } from './reports.ts';
import type { Schedule, Stage } from './schedule.ts';
import { everyPlace, type Family, type Place, placeIn, type Ran } from './variants.ts';
import { webhookFamilies } from './webhook-ways.ts';

/**
 * One send, in every way: each crash point that it reaches, with none, one or two extra deliveries of every queue
 * message, each thing that a provider can do with the call, each order of its reports.
 */

/** The reports of one recipient in every order that a network can make of them. */
const REPORT_ORDERS: readonly ReportPlan[] = [
  [],
  ['delivered'],
  ['deferred', 'delivered'],
  ['delivered', 'deferred'],
  ['deferred', 'bounced_hard'],
  ['bounced_hard', 'deferred'],
  ['delivered', 'complained'],
  ['complained', 'delivered'],
  ['delivered', 'bounced_hard', 'complained'],
  ['complained', 'bounced_hard', 'delivered'],
];

/** What befalls the first pointer, so that the dispatch alarm has to bring the message back. */
const POINTER_FAULTS: readonly PlannedFault[] = [
  { call: /^send to pm-outbound/, harm: 'lost' },
  { call: /^send to pm-outbound/, harm: 'answer_lost' },
];

interface Variant {
  outcome: CallOutcome;
  /** Which identity sends: each has a provider of its own. */
  sender: number;
  reports: ReportPlan;
  copies: number;
  crash: Place | null;
}

const LIVE_BODY: SendBody = {
  to: ['a@example.net', 'b@example.net', 'c@example.net'],
  subject: 'One send',
  text: 'Hello.',
};

/** Identities by what their provider does: nothing special, partial acceptance, naming our id in its reports. */
const PLAIN = 0;
const RELAY = 1;
const NAMING = 2;

/** What only a relay does. */
const BY_RELAY: ReadonlySet<CallOutcome> = new Set(['partial', 'out_of_step', 'out_of_step_late']);

function singleSchedule(variant: Variant): Schedule {
  return {
    seed: 1,
    faults: { ...NO_FAULTS, copies: variant.copies, crash_at: variant.crash },
    tenants: [{ mode: 'live', identities: 3 }],
    plan: () => ({
      // Only the first call is the case; later ones are only made for what it left queued.
      outcome: (_message, call) => (call === 0 ? variant.outcome : 'accept'),
      reports: () => variant.reports,
      delay: (n) => (n === 0 ? 100 : 2_000),
    }),
    act: (stage) => [send(stage, variant.sender, LIVE_BODY)],
    stormy_ms: 120_000,
  };
}

function send({ deployment, identities, universe }: Stage, index: number, body: SendBody): Intent {
  const identity = identities[index];
  if (identity === undefined) throw new Error('no such identity');
  const intent = intend('single', identity, body);
  // The client repeats its request even after it was answered, as one does that lost the answer.
  for (const delay of [0, 40_000]) {
    universe.scheduler.after(delay, () => {
      pursue(deployment, intent, 50).catch((error: unknown) => universe.log(`client broke: ${String(error)}`));
    });
  }
  return intent;
}

/** A test tenant's send: every script of the simulator, and mail to itself and to another mailbox. */
const TEST_RECIPIENTS = [
  ['delivered@simulator.invalid'],
  ['bounce@simulator.invalid', 'softbounce@simulator.invalid', 'complaint@simulator.invalid'],
  ['deferred@simulator.invalid'],
  ['reject@simulator.invalid', 'delivered@simulator.invalid'],
  ['timeout@simulator.invalid', 'delivered@simulator.invalid'],
  ['agent1.t0@agents.example'],
  ['agent0.t0@agents.example', 'agent1.t0+tag@agents.example', 'delivered@simulator.invalid'],
] as const;

function testSchedule(to: readonly string[], copies: number, crash: Variant['crash']): Schedule {
  return {
    seed: 1,
    faults: { ...NO_FAULTS, copies, crash_at: crash },
    tenants: [{ mode: 'test', identities: 2 }],
    plan: () => ({ outcome: () => 'accept', reports: () => [], delay: () => 0 }),
    act: (stage) => [send(stage, 0, { to: [...to], subject: 'One test send', text: 'Hello.' })],
    stormy_ms: 120_000,
  };
}

function families(): Family[] {
  const list: Family[] = [];
  for (const copies of [0, 1, 2]) {
    for (const outcome of CALL_OUTCOMES) {
      for (const reports of reportsFor(outcome)) {
        list.push({
          name: `${outcome} [${reports.join(' ')}] x${copies}, crash`,
          make: (crash) =>
            singleSchedule({ outcome, sender: BY_RELAY.has(outcome) ? RELAY : PLAIN, reports, copies, crash }),
          depth: 2,
        });
      }
    }
    // What one more delivery finds here, a second finds too.
    if (copies === 1) continue;
    // Reports that name our message, so that each of them counts whatever became of our own record.
    for (const outcome of ['accept', 'accept_and_lose_answer'] as const) {
      for (const reports of REPORT_ORDERS.slice(1, 4)) {
        list.push({
          name: `named ${outcome} [${reports.join(' ')}] x${copies}, crash`,
          make: (crash) => singleSchedule({ outcome, sender: NAMING, reports, copies, crash }),
          depth: 2,
          // Until somebody has the message to hand over, such a send is like any other.
          marks: MARKS.filter((mark) => !mark.startsWith('submit.')),
        });
      }
    }
    for (const fault of POINTER_FAULTS) {
      const accepted = { outcome: 'accept', sender: PLAIN, reports: ['delivered'], copies } as const;
      list.push({
        name: `the pointer's call is ${'harm' in fault ? fault.harm : ''} x${copies}, crash`,
        make: (crash) => ({ ...singleSchedule({ ...accepted, crash }), planned: [fault], stormy_ms: 15 * 60_000 }),
        depth: 2,
      });
    }
    for (const to of TEST_RECIPIENTS) {
      list.push({
        name: `test ${to.join(' ')} x${copies}, crash`,
        make: (crash) => testSchedule(to, copies, crash),
        depth: 2,
      });
    }
  }
  return list;
}

/** Every order where the provider took the message and will report, else the first two. */
function reportsFor(outcome: CallOutcome): readonly ReportPlan[] {
  return outcome === 'accept' || outcome === 'accept_and_lose_answer' ? REPORT_ORDERS : REPORT_ORDERS.slice(0, 2);
}

function allFamilies(): Family[] {
  return [...families(), ...rareCrashFamilies(), ...raceFamilies(), ...webhookFamilies()];
}

/** The schedule of one way by its name, to run it alone. */
export function wayOf(name: string): Schedule | undefined {
  for (const family of allFamilies()) {
    const place = placeIn(family, name);
    if (place !== undefined) return family.make(place);
  }
  return undefined;
}

/** Runs one part of all cases. */
export async function* exhaustiveCases(part: number, parts: number): AsyncGenerator<Ran> {
  for (const family of allFamilies().filter((_family, index) => index % parts === part)) yield* everyPlace(family);
}
