import { MARKS } from '@pmail/engine/marks.ts';
import type { EndpointId } from '@pmail/engine/webhooks/endpoints.ts';
import { type Intent, intend, pursue } from './client.ts';
import { NO_FAULTS } from './faults.ts';
import { Process } from './process.ts';
import type { ReceiverPlan } from './receivers.ts';
import type { Schedule, Stage } from './schedule.ts';
import type { Family, Place } from './variants.ts';

/**
 * The events of one send on their way to two subscribers, in every way: a crash, and a person who turns an endpoint off,
 * removes it or asks for a replay, at the moment at which each mark on that way is reached.
 */

const ON_THE_WAY = MARKS.filter((mark) => mark.startsWith('webhook.') || mark.startsWith('outbox.'));

const RECEIVERS: readonly ReceiverPlan[] = [['take'], ['fail', 'take'], ['hang', 'take'], ['gone']];

type Act = (stage: Stage, endpoint: EndpointId) => Promise<void>;

const ACTS: Record<string, Act> = {
  'turned off': ({ deployment }, id) => deployment.subscribers.turn(id, false),
  'turned off and on': async ({ deployment, universe }, id) => {
    await deployment.subscribers.turn(id, false);
    universe.scheduler.after(10_000, () => settle(universe.log.bind(universe), deployment.subscribers.turn(id, true)));
  },
  removed: ({ deployment }, id) => deployment.subscribers.remove(id),
  replayed: ({ deployment }, id) => deployment.subscribers.replay(new Process('operator'), id, 0),
};

export function webhookFamilies(): Family[] {
  const crashes = RECEIVERS.flatMap((plan) =>
    [0, 1].map((copies) => ({
      name: `webhook ${plan.join(' ')} x${copies}, crash`,
      depth: 3,
      marks: ON_THE_WAY,
      make: (at: Place | null) => schedule(plan, { copies, crash_at: at }, () => undefined),
    })),
  );
  const acts = Object.entries(ACTS).map(([name, act]) => ({
    name: `webhook fail take, ${name}`,
    depth: 2,
    marks: ON_THE_WAY,
    make: (at: Place | null) =>
      schedule(['fail', 'take'], {}, (stage, id) => {
        const { universe } = stage;
        if (at !== null) universe.atMark(at.mark, at.nth, () => settle(universe.log.bind(universe), act(stage, id)));
      }),
  }));
  return [...crashes, ...acts];
}

function schedule(
  plan: ReceiverPlan,
  faults: Partial<Schedule['faults']>,
  interfere: (stage: Stage, endpoint: EndpointId) => void,
): Schedule {
  return {
    seed: 1,
    faults: { ...NO_FAULTS, ...faults },
    tenants: [{ mode: 'live', identities: 1 }],
    plan: () => ({ outcome: () => 'accept', reports: () => ['delivered'], delay: () => 2_000 }),
    act: (stage) => {
      const { universe, deployment, identities } = stage;
      const [identity] = identities;
      if (identity === undefined) throw new Error('no identity');
      const intent: Intent = intend('single', identity, { to: ['a@example.net'], subject: 'One send', text: 'Hello.' });
      const start = async (): Promise<void> => {
        const { tenant_id } = identity;
        const id = await deployment.subscribers.add({ tenant_id, plan });
        await deployment.subscribers.add({ tenant_id: null, plan: ['take'] });
        interfere(stage, id);
        await pursue(deployment, intent, 50);
      };
      settle(universe.log.bind(universe), start());
      return [intent];
    },
    stormy_ms: 240_000,
  };
}

function settle(log: (line: string) => void, work: Promise<void>): void {
  work.catch((error: unknown) => log(`actor: ${String(error)}`));
}
