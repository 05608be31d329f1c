import type { SendBody } from '@pmail/core/message/request.ts';
import { MARKS, type MarkName } from '@pmail/engine/marks.ts';
import { type Intent, intend, pursue } from './client.ts';
import { rareCrashFamilies } from './crash-ways.ts';
import { NO_FAULTS } from './faults.ts';
import type { PlannedFault } from './planned.ts';
import { CALL_OUTCOMES, type CallOutcome } from './provider.ts';
import { raceFamilies } from './races.ts';
import { ordersOf, type ReportPlan } from './reports.ts';
import type { Schedule, Stage } from './schedule.ts';
import { everyPlace, type Family, type Place, placeIn, type Ran, type Way, wayAt } from './variants.ts';
import { webhookFamilies } from './webhook-ways.ts';

/**
 * One send, in every way: what a provider can do with the call, the orders of its reports, none to two extra deliveries of
 * every queue message, each crash point that is reached. Not everything is crossed with everything: `marksFor` says where
 * somebody dies, and docs/simulator.md how much that is.
 */

/** What can be reported about one recipient, each thing once. */
const REPORTED = ['deferred', 'delivered', 'bounced_hard', 'complained'] as const;

/** Every order of every choice of them, from none to all. */
const EVERY_ORDER = ordersOf(REPORTED);

/** A call that was not taken has the next one taken, whose reports are those of a plain send. */
const PLAIN_ORDERS: readonly ReportPlan[] = [[], ['delivered']];

/** Orders in which a crash is also looked at together with extra deliveries, for the two plainest acceptances. */
const CROSSED_WITH_COPIES: ReadonlySet<string> = new Set(
  [
    ['deferred', 'delivered'],
    ['delivered', 'deferred'],
    ['deferred', 'bounced_hard'],
    ['bounced_hard', 'deferred'],
    ['delivered', 'complained'],
    ['complained', 'delivered'],
    ['delivered', 'bounced_hard', 'complained'],
    ['complained', 'bounced_hard', 'delivered'],
  ].map((reports) => reports.join(' ')),
);

/**
 * Calls that end with the mail taken. Under an id from before is one of them too, but nobody has had one before a lone
 * send: there it is a plain acceptance, and `random.ts` is where it shows.
 */
const TAKEN: ReadonlySet<CallOutcome> = new Set([
  'accept',
  'accept_and_lose_answer',
  'accept_late',
  'accept_without_id',
  'partial',
  'out_of_step_late',
]);
const PLAINLY_TAKEN: ReadonlySet<CallOutcome> = new Set(['accept', 'accept_and_lose_answer']);

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

/** One send to a provider that knows mail by an id of its own, or to a relay where only a relay does such a thing. */
function sendWays(copies: number): Family[] {
  return CALL_OUTCOMES.flatMap((outcome) =>
    (TAKEN.has(outcome) ? EVERY_ORDER : PLAIN_ORDERS).map((reports) => ({
      name: `${outcome} [${reports.join(' ')}] x${copies}, crash`,
      make: (crash: Place | null) =>
        singleSchedule({ outcome, sender: BY_RELAY.has(outcome) ? RELAY : PLAIN, reports, copies, crash }),
      depth: 2,
      marks: marksFor(outcome, reports, copies),
    })),
  );
}

/** Where somebody dies: everywhere with up to two reports; with extra deliveries too, for fewer of their orders. */
function marksFor(outcome: CallOutcome, reports: ReportPlan, copies: number): readonly MarkName[] {
  const plain = PLAIN_ORDERS.some((order) => order.join(' ') === reports.join(' '));
  const crossed = PLAINLY_TAKEN.has(outcome) && CROSSED_WITH_COPIES.has(reports.join(' '));
  return plain || crossed || (copies === 0 && reports.length <= 2) ? MARKS : [];
}

/** Reports that name our message, so that each of them counts whatever became of our own record. */
function namedWays(copies: number): Family[] {
  return [...TAKEN]
    .filter((outcome) => !BY_RELAY.has(outcome))
    .flatMap((outcome) =>
      EVERY_ORDER.map((reports) => ({
        name: `named ${outcome} [${reports.join(' ')}] x${copies}, crash`,
        make: (crash: Place | null) => singleSchedule({ outcome, sender: NAMING, reports, copies, crash }),
        depth: 2,
        marks: namedMarksFor(outcome, reports, copies),
      })),
    );
}

const NAMED_CROSSED: ReadonlySet<string> = new Set(['delivered', 'deferred delivered', 'delivered deferred']);

function namedMarksFor(outcome: CallOutcome, reports: ReportPlan, copies: number): readonly MarkName[] {
  // With a crash, what one more delivery finds here, a second finds too.
  if (copies === 1 || !PLAINLY_TAKEN.has(outcome) || !NAMED_CROSSED.has(reports.join(' '))) return [];
  // Until somebody has the message to hand over, such a send is like any other.
  return MARKS.filter((mark) => !mark.startsWith('submit.'));
}

/** The families of one send. */
export function sendFamilies(): Family[] {
  const list: Family[] = [];
  for (const copies of [0, 1, 2]) {
    list.push(...sendWays(copies), ...namedWays(copies));
    // What one more delivery finds here, a second finds too.
    if (copies === 1) continue;
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

function allFamilies(): Family[] {
  return [...sendFamilies(), ...rareCrashFamilies(), ...raceFamilies(), ...webhookFamilies()];
}

/** One way by its name, to run it alone as the run did. */
export function findWay(name: string): Way | undefined {
  for (const family of allFamilies()) {
    const place = placeIn(family, name);
    if (place !== undefined) return wayAt(family, place);
  }
  return undefined;
}

/** The schedule of one way by its name, for who looks at it in a way of their own. */
export function wayOf(name: string): Schedule | undefined {
  return findWay(name)?.schedule;
}

/** Runs one part of all cases. */
export async function* exhaustiveCases(part: number, parts: number): AsyncGenerator<Ran> {
  for (const family of allFamilies().filter((_family, index) => index % parts === part)) yield* everyPlace(family);
}
