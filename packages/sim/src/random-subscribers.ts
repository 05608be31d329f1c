import type { EventType } from '@pmail/core/events/types.ts';
import type { EndpointId } from '@pmail/engine/webhooks/endpoints.ts';
import { later } from './people.ts';
import { Process } from './process.ts';
import type { ReceiverPlan } from './receivers.ts';
import type { Stage } from './schedule.ts';
import type { NewEndpoint } from './subscribers.ts';

/** Endpoints of a random schedule, and what people do with them. */

const MINUTE = 60_000;

const TEN_FAILURES: ReceiverPlan = [...Array<'fail'>(10).fill('fail'), 'take'];

/** Those that are well most of the time are the most, as in life; the others cost thirteen attempts for each event. */
const PLANS: readonly ReceiverPlan[] = [
  ['take'],
  ['take'],
  ['take_slowly'],
  ['take_and_talk'],
  ['fail', 'take'],
  ['hang', 'take'],
  ['close', 'refuse', 'take'],
  ['redirect', 'hang', 'fail', 'take'],
  TEN_FAILURES,
  ['fail'],
  ['gone'],
];

const TYPES: readonly (readonly (EventType | '*')[])[] = [
  ['*'],
  ['*'],
  ['message.sent', 'message.uncertain', 'message.reconciled'],
  ['message.bounced', 'message.complained', 'suppression.created', 'webhook.disabled'],
];

/** Some schedules have subscribers, most have none. */
export function subscribe(stage: Stage): void {
  const { universe } = stage;
  if (universe.random() >= 0.2) return;
  for (let count = universe.between(1, 3); count > 0; count--) {
    later(stage, universe.random() < 0.7 ? 0 : universe.between(0, 5 * MINUTE), () => goOnWith(stage, draw(stage)));
  }
}

function draw({ universe, identities }: Stage): NewEndpoint {
  const identity = universe.pick(identities);
  const plan = universe.pick(PLANS);
  return {
    tenant_id: universe.random() < 0.2 ? null : identity.tenant_id,
    plan,
    types: universe.pick(TYPES),
    identities: universe.random() < 0.2 ? [identity.identity_id] : null,
    inside: universe.random() < 0.06,
  };
}

async function goOnWith(stage: Stage, endpoint: NewEndpoint): Promise<void> {
  const { universe, deployment } = stage;
  const { subscribers } = deployment;
  const id: EndpointId = await subscribers.add(endpoint);
  const soon = (): number => universe.between(10_000, 12 * MINUTE);
  if (universe.random() < 0.15) {
    const off = soon();
    later(stage, off, () => subscribers.turn(id, false));
    if (universe.random() < 0.7) later(stage, off + soon(), () => subscribers.turn(id, true));
  }
  if (universe.random() < 0.05) later(stage, soon(), () => subscribers.remove(id));
  if (universe.random() < 0.25) {
    later(stage, universe.between(4, 18) * MINUTE, () => {
      const since = universe.now - universe.between(1, 4) * MINUTE;
      return subscribers.replay(new Process('operator'), id, since);
    });
  }
}
