import type { MessageId } from '@pmail/core/ids.ts';
import type { SendBody, SendOperation } from '@pmail/core/message/request.ts';
import { type Intent, intend, pursue } from './client.ts';
import type { SimIdentity } from './population.ts';
import { Process } from './process.ts';
import type { Stage } from './schedule.ts';

/**
 * Agents that go on with a thread: they look into a mailbox, answer or forward what is there or write into its thread,
 * often several at once, so that they meet at the thread's lock.
 */

const OPERATIONS: readonly SendOperation[] = ['send', 'reply', 'reply', 'reply_all', 'reply_all', 'forward'];

interface Found {
  id: MessageId;
  thread_id: string;
  from: string | null;
}

export async function answerSomething(stage: Stage, intents: Intent[], n: number): Promise<void> {
  const { universe, deployment, identities } = stage;
  const identity = universe.pick(identities);
  const remote = deployment.remote(new Process(`reader ${n}`), identity.identity_id);
  const page = await remote.engine((engine) => engine.listMessages({}, 20, null, false), `list ${n}`);
  const found = page.items.map(({ id, thread_id, from }): Found => ({ id, thread_id, from: from?.address ?? null }));
  if (found.length === 0) return;
  const target = universe.pick(found);
  const together = universe.between(1, 3);
  const started: Promise<void>[] = [];
  for (let i = 0; i < together; i++) {
    const intent = answerTo(stage, identity, target, `key-a${n}-${i}`);
    intents.push(intent);
    for (let copies = universe.random() < 0.3 ? 2 : 1; copies > 0; copies--) {
      started.push(pursue(deployment, intent, 200));
    }
  }
  await Promise.all(started);
}

function answerTo({ universe }: Stage, identity: SimIdentity, target: Found, key: string): Intent {
  const operation = universe.pick(OPERATIONS);
  const text = `Answer ${key}.`;
  const to = [identity.mode === 'live' ? `${key}@example.net` : 'delivered@simulator.invalid'];
  const body: Record<SendOperation, SendBody> = {
    send: { to, subject: 'More of it', text, thread_id: target.thread_id },
    reply: { text },
    reply_all: { text },
    forward: { to, text },
  };
  return {
    ...intend(key, identity, body[operation]),
    operation,
    target_id: operation === 'send' ? null : target.id,
  };
}
