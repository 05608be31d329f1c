import type { SendBody } from '@pmail/core/message/request.ts';
import { type Intent, intend, pursue } from './client.ts';
import { NO_FAULTS } from './faults.ts';
import { cancel, conflict, resolve, suppress } from './people.ts';
import { PLATFORM_DOMAIN, RELAY_DOMAIN } from './population.ts';
import type { CallOutcome, ProviderPlan } from './provider.ts';
import type { Schedule, Stage } from './schedule.ts';
import type { Family, Place } from './variants.ts';

/**
 * Races, in every way: something happens at the moment at which each mark is reached. One send and somebody who
 * interferes; two answers to one message, which meet at the thread's lock; several sends that meet at a cap and an
 * allowance.
 */

export function raceFamilies(): Family[] {
  return [...interferences(), ...lockRaces(), ...holdRaces()];
}

type Act = (stage: Stage, intent: Intent) => Promise<void>;

const INTERFERENCES: Record<string, Act> = {
  cancel,
  'another body': conflict,
  'the same again': ({ deployment }, intent) => pursue(deployment, intent, 50),
  'settled as sent': (stage, intent) => resolve(stage, intent, 'sent'),
  'settled as not sent': (stage, intent) => resolve(stage, intent, 'not_sent'),
  suppressed: (stage, intent) => suppress(stage, intent, 0),
  paused: ({ deployment: { standing } }, { identity }) => standing.pause(identity.identity_id),
  'paused for a while': async (stage, { identity }) => {
    const { standing } = stage.deployment;
    await standing.pause(identity.identity_id);
    await wait(stage, 5_000);
    await standing.unpause(identity.identity_id);
  },
  'tenant suspended': ({ deployment: { standing } }, { identity }) => standing.suspend(identity.tenant_id),
  'its mailbox moves, and the old one lingers': async ({ deployment }, { identity }) => {
    deployment.mailbox(identity.identity_id).evict(true);
  },
  'domain failing': (stage, intent) => stage.deployment.standing.setDomain(domainOf(intent), 'failing'),
  'domain unproven for a while': async (stage, intent) => {
    const { standing } = stage.deployment;
    await standing.setDomain(domainOf(intent), 'verifying');
    await wait(stage, 90_000);
    await standing.setDomain(domainOf(intent), 'healthy');
  },
  'domain removed': (stage, intent) => stage.deployment.standing.setDomain(domainOf(intent), 'removed'),
};

function domainOf({ identity }: Intent): string {
  return identity.address.endsWith(`@${RELAY_DOMAIN}`) ? RELAY_DOMAIN : PLATFORM_DOMAIN;
}

function wait({ universe }: Stage, ms: number): Promise<void> {
  return new Promise((resolve) => {
    universe.scheduler.after(ms, resolve);
  });
}

/** What the first call comes to while somebody interferes. */
const OUTCOMES: readonly CallOutcome[] = ['accept', 'rate_limit', 'accept_and_lose_answer', 'partial'];

function interferences(): Family[] {
  return OUTCOMES.flatMap((outcome) =>
    Object.entries(INTERFERENCES).map(([name, act]) => ({
      name: `${outcome}, ${name}`,
      depth: 2,
      make: (at: Place | null) =>
        schedule(outcome, (stage) => {
          const intent = sender(stage, outcome === 'partial' ? 1 : 0, 'one', BODY);
          start(stage, intent, 0);
          if (at !== null) stage.universe.atMark(at.mark, at.nth, () => settle(stage, act(stage, intent)));
          return [intent];
        }),
    })),
  );
}

/** Two people of one identity answer the same message at once, and one of them may think better of it. */
function lockRaces(): Family[] {
  const acts: Record<string, Act | 'crash'> = {
    crash: 'crash',
    'the first canceled': cancel,
    paused: INTERFERENCES['paused for a while'] ?? cancel,
  };
  return Object.entries(acts).map(([name, act]) => ({
    name: `two answers, ${name}`,
    depth: 3,
    make: (at: Place | null) => ({
      ...schedule('accept', (stage) => {
        const first = sender(stage, 0, 'first', BODY);
        const answers = ['a', 'b'].map((key) => sender(stage, 0, key, { text: `Answer ${key}.` }));
        start(stage, first, 0);
        settle(stage, answerBoth(stage, first, answers));
        if (at !== null && act !== 'crash') {
          stage.universe.atMark(at.mark, at.nth, () => settle(stage, act(stage, answers[0] ?? first)));
        }
        return [first, ...answers];
      }),
      faults: { ...NO_FAULTS, crash_at: act === 'crash' ? at : null },
    }),
  }));
}

async function answerBoth(stage: Stage, first: Intent, answers: Intent[]): Promise<void> {
  await wait(stage, 10_000);
  const id = first.answers[0]?.id;
  if (id === undefined) throw new Error('the first message was not accepted in time');
  for (const answer of answers) {
    answer.operation = 'reply';
    answer.target_id = id;
    start(stage, answer, 0);
  }
}

/** Three sends at once where there is room for two, then a fourth that gets what a canceled one gave back. */
function holdRaces(): Family[] {
  const limits: Record<string, Schedule['tenants'][number]> = {
    'a cap of two': { mode: 'live', identities: 2, policy: { tenant_daily_send_cap: 2 } },
    'an allowance of seven': { mode: 'live', identities: 2, granted: 7 },
  };
  const acts: Record<string, Act | 'crash'> = { crash: 'crash', 'the first canceled': cancel };
  return Object.entries(limits).flatMap(([limit, tenant]) =>
    Object.entries(acts).map(([name, act]) => ({
      name: `three sends, ${limit}, ${name}`,
      depth: 3,
      make: (at: Place | null) => ({
        ...schedule('accept', (stage) => {
          const intents = [0, 1, 0, 1].map((index, n) =>
            sender(stage, index, `key-${n}`, { ...BODY, subject: `Send ${n}` }),
          );
          intents.forEach((intent, n) => {
            start(stage, intent, n === 3 ? 60_000 : 0);
          });
          const [first] = intents;
          if (at !== null && act !== 'crash' && first !== undefined) {
            stage.universe.atMark(at.mark, at.nth, () => settle(stage, act(stage, first)));
          }
          return intents;
        }),
        tenants: [tenant],
        faults: { ...NO_FAULTS, crash_at: act === 'crash' ? at : null },
      }),
    })),
  );
}

const BODY: SendBody = {
  to: ['a@example.net', 'b@example.net', 'c@example.net'],
  subject: 'One send',
  text: 'Hello.',
};

function schedule(outcome: CallOutcome, act: Schedule['act']): Schedule {
  const plan: ProviderPlan = {
    outcome: (_message, call) => (call === 0 ? outcome : 'accept'),
    reports: () => ['delivered'],
    delay: () => 2_000,
  };
  return {
    seed: 1,
    faults: NO_FAULTS,
    tenants: [{ mode: 'live', identities: 2 }],
    plan: () => plan,
    act,
    stormy_ms: 240_000,
  };
}

function sender({ identities }: Stage, index: number, key: string, body: SendBody): Intent {
  const identity = identities[index];
  if (identity === undefined) throw new Error('no such identity');
  return intend(key, identity, body);
}

/** Sends, and again a little later as one does that lost the answer. */
function start(stage: Stage, intent: Intent, delay: number): void {
  for (const ms of [delay, delay + 40_000]) {
    stage.universe.scheduler.after(ms, () => settle(stage, pursue(stage.deployment, intent, 50)));
  }
}

function settle({ universe }: Stage, work: Promise<void>): void {
  work.catch((error: unknown) => universe.log(`actor: ${String(error)}`));
}
