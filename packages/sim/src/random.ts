import { LIMITS } from '@pmail/core/limits.ts';
import type { SendBody } from '@pmail/core/message/request.ts';
import type { PolicyPatch } from '@pmail/core/policy/document.ts';
import { answerSomething } from './answers.ts';
import { type Intent, intend, pursue } from './client.ts';
import { CHANCES, type ChanceOf, drawFaults } from './faults.ts';
import {
  breakDown,
  cancel,
  changeDomain,
  conflict,
  later,
  pause,
  resolve,
  suppress,
  suspend,
  turnClocks,
} from './people.ts';
import { RELAY_DOMAIN, type SimIdentity, type SimTenant } from './population.ts';
import { CALL_OUTCOMES, type ProviderPlan } from './provider.ts';
import { subscribe } from './random-subscribers.ts';
import { REPORT_PLANS, type ReportPlan } from './reports.ts';
import { putBack } from './restores.ts';
import type { Schedule, Stage } from './schedule.ts';
import { type Random, seededRandom } from './scheduler.ts';
import { START, type Universe } from './universe.ts';

const MINUTE = 60_000;

/** What is taken away from a random schedule, to find out what it fails by. */
export interface Reduction {
  /** The only faults that may happen, beside those that are no chances. */
  faults?: ReadonlySet<ChanceOf>;
  /** So many sends at most. */
  sends?: number;
  /** False: nobody pauses, cancels, resolves, answers or subscribes. */
  people?: boolean;
  /** Another sequence of chance with the same set-up. */
  draw?: number;
}

/** A random schedule: several tenants and identities, many sends at once, and people who interfere. */
export function randomSchedule(seed: number, reduction: Reduction = {}): Schedule {
  const random = seededRandom(seed ^ 0x5eed);
  // A few last long enough for things to be away for an hour, and a few go on when all keys have run out.
  const long = random() < 0.08;
  const monthLater = random() < 0.06;
  const faults = drawFaults(random);
  const { faults: kept } = reduction;
  if (kept !== undefined) for (const name of CHANCES) if (!kept.has(name)) faults[name] = 0;
  return {
    seed: seed + (reduction.draw ?? 0) * 1_000_003,
    faults,
    start: drawStart(random),
    tenants: [
      { mode: 'live', identities: 3, ...drawLimits(random) },
      { mode: 'test', identities: 2, ...drawLimits(random) },
    ],
    plan: providerPlan,
    act: (stage) => act(stage, long, reduction),
    waits: { webhook_wait_ms_max: 2 * MINUTE },
    steps_missing: random() < 0.1 ? 1 + Math.floor(random() * 2) : 0,
    stormy_ms: (long ? 90 : 20) * MINUTE,
    // After the clocks were turned nobody can tell when a month is over.
    ...(monthLater && faults.clock === 0 ? { month_later: actAgain } : {}),
  };
}

/** Local midnights of the tenants, in ordinary nights and in those when the clocks change. */
const MIDNIGHTS = [
  Date.UTC(2026, 9, 14, 22),
  Date.UTC(2026, 9, 15, 0),
  Date.UTC(2026, 9, 24, 22),
  Date.UTC(2026, 9, 25, 23),
  Date.UTC(2027, 2, 27, 23),
  Date.UTC(2027, 2, 28, 22),
];

/** Mostly an evening, now and then a few minutes before a day ends. */
function drawStart(random: Random): number {
  if (random() < 0.8) return START;
  return (MIDNIGHTS[Math.floor(random() * MIDNIGHTS.length)] ?? START) - Math.floor(random() * 6 * MINUTE);
}

/** Some tenants soon reach a cap, an allowance, or both. */
function drawLimits(random: Random): Pick<SimTenant, 'policy' | 'granted'> {
  const policy: PolicyPatch = {};
  if (random() < 0.2) policy.identity_daily_send_cap = Math.floor(random() * 8);
  if (random() < 0.15) policy.tenant_daily_send_cap = Math.floor(random() * 12);
  return { policy, ...(random() < 0.3 ? { granted: Math.floor(random() * 20) } : {}) };
}

function providerPlan(universe: Universe): ProviderPlan {
  const plans = new Map<string, ReportPlan>();
  return {
    outcome: (message, call) => {
      // A provider that puts a message off for ever is a case of its own; here it gives in after a while.
      if (call > 6) return 'accept';
      if (message.subject === TWIN && universe.random() < 0.8) return 'accept_and_lose_answer';
      const partial = message.from.address.endsWith(`@${RELAY_DOMAIN}`);
      return universe.random() < 0.5
        ? 'accept'
        : // A relay takes some of them; Cloudflare takes all or none, and tells whom it was for.
          universe.pick(CALL_OUTCOMES.filter((name) => name !== (partial ? 'suppress' : 'partial')));
    },
    reports: (recipient) => {
      let plan = plans.get(recipient);
      if (plan === undefined) {
        plan = universe.pick(REPORT_PLANS);
        plans.set(recipient, plan);
      }
      return plan;
    },
    delay: (n) => universe.between(0, n === 0 ? 8_000 : 90_000),
  };
}

const SCRIPTS = ['delivered', 'bounce', 'softbounce', 'complaint', 'deferred', 'reject', 'timeout'];

function body(universe: Universe, identity: SimIdentity, identities: SimIdentity[], n: number): SendBody {
  const count = universe.between(1, 4);
  const to = Array.from({ length: count }, (_, index) => {
    if (identity.mode === 'live') return `r${n}-${index}@example.net`;
    const local = identities.filter(({ mode }) => mode === 'test');
    return universe.random() < 0.4 ? universe.pick(local).address : `${universe.pick(SCRIPTS)}@simulator.invalid`;
  });
  return { to: [...new Set(to)], subject: `Send ${n}`, ...content(universe, n) };
}

/** Now and then more than a row holds, or more than a message may be. */
function content(universe: Universe, n: number): Pick<SendBody, 'text' | 'attachments'> {
  const text = `Text of send ${n}.`;
  const draw = universe.random();
  if (draw < 0.002) return { text: 'A line of a long text.\n'.repeat(LIMITS.row_text_bytes_max / 20) };
  if (draw >= 0.0028) return { text };
  const content_base64 = 'AAAA'.repeat(LIMITS.composed_bytes_max / 4);
  return { text, attachments: [{ filename: 'large.bin', content_type: 'application/octet-stream', content_base64 }] };
}

function act(stage: Stage, long: boolean, { sends: most = 10, people = true }: Reduction): Intent[] {
  const { universe, deployment, identities } = stage;
  const intents: Intent[] = [];
  const sends = Math.min(universe.between(2, 10), most);
  // Either one after the other, or all at once, so that they share batches and meet at quotas.
  const within = universe.random() < 0.3 ? 3_000 : 5 * MINUTE;
  for (let n = 0; n < sends; n++) {
    const identity = universe.pick(identities);
    const intent = intend(`key-${n}`, identity, body(universe, identity, identities, n));
    intents.push(intent);
    goOnWith(stage, intent, n, universe.between(0, within), people);
  }
  extraSends(stage).forEach((intent, n) => {
    intents.push(intent);
    goOnWith(stage, intent, sends + n, universe.between(0, within), people);
  });
  if (people) interfere(stage, intents, within, long);
  while (universe.chance('power_loss')) {
    universe.scheduler.after(universe.between(0, 900_000), () => deployment.powerLoss(universe.random() < 0.5));
    if (universe.random() < 0.5) break;
  }
  return intents;
}

/** Subscribers, and everybody beside the clients who does something meanwhile. */
function interfere(stage: Stage, intents: Intent[], within: number, long: boolean): void {
  const { universe, identities } = stage;
  subscribe(stage);
  const answers = universe.between(0, 6);
  for (let n = 0; n < answers; n++) {
    later(stage, universe.between(5_000, 12 * MINUTE), () => answerSomething(stage, intents, n));
  }
  const soon = (): number => universe.between(0, within);
  if (universe.random() < 0.2) later(stage, soon(), () => pause(stage, universe.pick(identities)));
  if (universe.random() < 0.2) later(stage, soon(), () => suspend(stage, universe.pick(identities)));
  while (universe.random() < 0.2) later(stage, soon(), () => changeDomain(stage));
  if (universe.chance('clock')) universe.scheduler.after(soon(), () => turnClocks(stage));
  if (universe.chance('restore')) putBack(stage, soon());
  while (universe.chance('outage')) universe.scheduler.after(soon(), () => breakDown(stage, long));
}

const TWIN = 'Twin';

/** Now and then the same mail twice under two keys, and now and then one to a crowd. */
function extraSends({ universe, identities }: Stage): Intent[] {
  const [identity] = identities;
  if (identity === undefined) return [];
  const twin: SendBody = { to: ['twin@example.net'], subject: TWIN, text: 'The same.' };
  const twins = universe.random() < 0.06 ? ['twin-0', 'twin-1'].map((key) => intend(key, identity, twin)) : [];
  if (universe.random() >= 0.02) return twins;
  const crowd = Array.from({ length: 45 }, (_, n) => `c${n}@example.net`);
  return [...twins, intend('crowd', identity, { to: crowd, subject: 'To a crowd', text: 'Hello all.' })];
}

/** One send, with everything that its client and other people do about it. */
function goOnWith(stage: Stage, intent: Intent, n: number, start: number, people: boolean): void {
  const { universe, deployment } = stage;
  const again = (): Promise<void> => pursue(deployment, intent, 200);
  later(stage, start, again);
  // The same request again: at once, a little later, much later.
  if (universe.random() < 0.5) later(stage, start + universe.between(0, 50), again);
  if (universe.random() < 0.3) later(stage, start + universe.between(1_000, 600_000), again);
  if (!people) return;
  if (universe.random() < 0.3) later(stage, start + universe.between(0, 60_000), () => conflict(stage, intent));
  if (universe.random() < 0.2) later(stage, start + universe.between(0, 20_000), () => cancel(stage, intent));
  // The moment at which a consumer has it, where cancels and claims meet.
  if (universe.random() < 0.15) later(stage, start + universe.between(50, 4_000), () => cancel(stage, intent));
  if (universe.random() < 0.1) later(stage, start + universe.between(0, 30_000), () => suppress(stage, intent, n));
  if (universe.random() < 0.4) {
    later(stage, start + universe.between(31_000, universe.random() < 0.5 ? 120_000 : 900_000), () => {
      return resolve(stage, intent, universe.random() < 0.5 ? 'sent' : 'not_sent');
    });
  }
}

/** Every key has run out: each is new again, with the body of before or with another. */
function actAgain(stage: Stage, before: readonly Intent[]): Intent[] {
  const { universe, deployment } = stage;
  return before
    .filter(({ operation, answers }) => operation === 'send' && answers.length > 0)
    .slice(0, 3)
    .map((old, n) => {
      const other = { ...old.body, subject: `Again ${n}`, text: 'Another text, a month later.' };
      const intent = intend(old.key, old.identity, universe.random() < 0.5 ? other : old.body);
      later(stage, universe.between(0, 60_000), () => pursue(deployment, intent, 200));
      return intent;
    });
}
