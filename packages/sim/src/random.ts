import type { MessageId } from '@pmail/core/ids.ts';
import type { SendBody } from '@pmail/core/message/request.ts';
import type { PolicyPatch } from '@pmail/core/policy/document.ts';
import { statement } from '@pmail/engine/sql.ts';
import { answerSomething } from './answers.ts';
import { type Intent, intend, messageOf, pursue, request } from './client.ts';
import { drawFaults } from './faults.ts';
import type { SimIdentity, SimTenant } from './population.ts';
import { Process } from './process.ts';
import { CALL_OUTCOMES, type ProviderPlan, REPORT_PLANS, type ReportPlan } from './provider.ts';
import type { Schedule, Stage } from './schedule.ts';
import { type Random, seededRandom } from './scheduler.ts';
import type { Universe } from './universe.ts';

/** A random schedule: several tenants and identities, many sends at once, and people who interfere. */
export function randomSchedule(seed: number): Schedule {
  const random = seededRandom(seed ^ 0x5eed);
  return {
    seed,
    faults: drawFaults(random),
    tenants: [
      { mode: 'live', identities: 3, ...drawLimits(random) },
      { mode: 'test', identities: 2, ...drawLimits(random) },
    ],
    plan: providerPlan,
    act,
    stormy_ms: 20 * 60_000,
  };
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
      const partial = message.from.address.endsWith('@relay.example');
      return universe.random() < 0.5
        ? 'accept'
        : universe.pick(CALL_OUTCOMES.filter((name) => partial || name !== 'partial'));
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
  return { to: [...new Set(to)], subject: `Send ${n}`, text: `Text of send ${n}.` };
}

function act(stage: Stage): Intent[] {
  const { universe, identities } = stage;
  const intents: Intent[] = [];
  const sends = universe.between(2, 10);
  for (let n = 0; n < sends; n++) {
    const identity = universe.pick(identities);
    const intent = intend(`key-${n}`, identity, body(universe, identity, identities, n));
    intents.push(intent);
    const start = universe.between(0, 5 * 60_000);
    later(stage, start, () => pursue(stage.deployment, intent, 200));
    // The same request again: at once, a little later, much later.
    if (universe.random() < 0.5)
      later(stage, start + universe.between(0, 50), () => pursue(stage.deployment, intent, 200));
    if (universe.random() < 0.3)
      later(stage, start + universe.between(1_000, 600_000), () => pursue(stage.deployment, intent, 200));
    if (universe.random() < 0.3) later(stage, start + universe.between(0, 60_000), () => conflict(stage, intent));
    if (universe.random() < 0.2) later(stage, start + universe.between(0, 20_000), () => cancel(stage, intent));
    if (universe.random() < 0.4) later(stage, start + universe.between(60_000, 900_000), () => resolve(stage, intent));
  }
  const answers = universe.between(0, 6);
  for (let n = 0; n < answers; n++) {
    later(stage, universe.between(5_000, 12 * 60_000), () => answerSomething(stage, intents, n));
  }
  if (universe.random() < 0.2) later(stage, universe.between(0, 300_000), () => pause(stage));
  while (universe.chance('power_loss')) {
    universe.scheduler.after(universe.between(0, 900_000), () => stage.deployment.powerLoss(universe.random() < 0.5));
    if (universe.random() < 0.5) break;
  }
  return intents;
}

function later({ universe }: Stage, ms: number, work: () => Promise<void>): void {
  universe.scheduler.after(ms, () => {
    work().catch((error: unknown) => universe.log(`actor: ${error instanceof Error ? error.name : '?'}`));
  });
}

/** The same key with another body: must change nothing, whichever comes first. */
async function conflict(stage: Stage, intent: Intent): Promise<void> {
  const reply = await request(stage.deployment, intent, { ...intent.body, text: 'Another text.' });
  const before = intent.answers.length > 0;
  if (reply.ok && !before) {
    // It came first, so the key is its own, and the client's real request will hear of the conflict.
    intent.conflicts.push({ accepted: false, code: null });
    return;
  }
  intent.conflicts.push({ accepted: reply.ok, code: reply.ok ? null : reply.code });
}

async function cancel(stage: Stage, intent: Intent): Promise<void> {
  const id = messageOf(intent);
  if (id === undefined) return;
  await stage.deployment
    .remote(new Process('canceler'), intent.identity.identity_id)
    .engine((engine) => engine.cancel(id), `cancel ${id}`);
}

/** A person looks at a message and, when it is uncertain, says what became of it. */
async function resolve(stage: Stage, intent: Intent): Promise<void> {
  const id = messageOf(intent);
  if (id === undefined) return;
  const outcome = stage.universe.random() < 0.5 ? 'sent' : 'not_sent';
  const person = stage.deployment.remote(new Process('person'), intent.identity.identity_id);
  await person.engine(async (engine) => {
    const answer = await engine.resolve(id, outcome);
    if (answer.ok) settled(stage, id, outcome);
    return answer;
  }, `resolve ${id} ${outcome}`);
}

function settled({ resolved, universe }: Stage, id: MessageId, outcome: 'sent' | 'not_sent'): void {
  resolved.set(id, outcome);
  universe.log(`person: ${id} is ${outcome}`);
}

/** Somebody pauses an identity, and lets it go on later. */
async function pause({ deployment, universe, identities }: Stage): Promise<void> {
  const { identity_id } = universe.pick(identities);
  const set = (status: string, reason: string | null) =>
    deployment.db.batch([
      statement('UPDATE identities SET status = ?, pause_reason = ? WHERE id = ?', status, reason, identity_id),
    ]);
  universe.log(`paused: ${identity_id}`);
  await set('paused', 'manual');
  universe.scheduler.after(universe.between(10_000, 300_000), () => {
    set('active', null).catch(() => undefined);
  });
}
