import { ApiError, type PmailClient } from '@pmail/client/client.ts';
import type { Participant, Place } from '../load/place.ts';
import { conflict, newSend, post, type Send } from '../load/sends.ts';

/** A mixed load at a steady pace, by several people of one tenant. */

export interface LoadLog {
  sends: Send[];
  done: Record<string, number>;
  /** What was answered otherwise than it should be. */
  faults: string[];
}

export interface Actor {
  place: Place;
  people: Participant[];
  chance: () => number;
  run: string;
}

/** What is done, and how often of a hundred. */
const MIX: readonly [string, number][] = [
  ['send', 45],
  ['repeat', 12],
  ['another body', 4],
  ['read', 14],
  ['list', 8],
  ['answer', 9],
  ['cancel', 8],
];

/** Keeps at most so many requests in the air; a machine that cannot keep the pace is not pushed further. */
const IN_AIR_MAX = 24;

/** What is done while the load holds its breath, and how often. */
interface Pause {
  every_ms: number;
  work: (log: LoadLog) => Promise<void>;
}

/** @param pace actions a second */
export async function soakLoad(actor: Actor, pace: number, until: number, pause: Pause): Promise<LoadLog> {
  const log: LoadLog = { sends: [], done: {}, faults: [] };
  const air = new Map<Promise<void>, { name: string; since: number }>();
  let paused = Date.now();
  for (let n = 0; Date.now() < until; n++) {
    if (Date.now() - paused >= pause.every_ms) {
      await landed(air, log);
      await pause.work(log);
      paused = Date.now();
    }
    const name = draw(actor.chance);
    const work = act(actor, log, name, n)
      .catch((error: unknown) => {
        // An answer that says "later" is one; the next repeat of the key finds out.
        if (error instanceof ApiError && error.retryable) return;
        log.faults.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
      })
      .finally(() => air.delete(work));
    air.set(work, { name, since: Date.now() });
    log.done[name] = (log.done[name] ?? 0) + 1;
    if (air.size >= IN_AIR_MAX) await Promise.race(air.keys());
    await new Promise((resolve) => {
      setTimeout(resolve, 1_000 / pace);
    });
  }
  await landed(air, log);
  return log;
}

/** What took longer than anything may is a fault of the service, even when it is answered in the end. */
const ANSWER_MS_MAX = 90_000;

async function landed(air: ReadonlyMap<Promise<void>, { name: string; since: number }>, log: LoadLog): Promise<void> {
  const late = setTimeout(() => {
    const waiting = [...air.values()].map(
      ({ name, since }) => `${name} for ${Math.round((Date.now() - since) / 1_000)} s`,
    );
    log.faults.push(`without an answer: ${waiting.join(', ')}`);
    console.log(`  waits for ${waiting.join(', ')}`);
  }, ANSWER_MS_MAX);
  try {
    await Promise.all(air.keys());
  } finally {
    clearTimeout(late);
  }
}

function draw(chance: () => number): string {
  let left = chance() * MIX.reduce((sum, [, share]) => sum + share, 0);
  for (const [name, share] of MIX) {
    left -= share;
    if (left < 0) return name;
  }
  return 'send';
}

function pick<T>(list: readonly T[], chance: () => number): T | undefined {
  return list[Math.floor(chance() * list.length)];
}

async function act(actor: Actor, log: LoadLog, name: string, n: number): Promise<void> {
  const { place, chance } = actor;
  const { client } = place;
  const from = pick(actor.people, chance) ?? place.sender;
  // Of what was sent lately, so that the load is of today however long it runs.
  const recent = pick(log.sends.slice(-200), chance);
  const answer = recent?.answers[0];
  if (name === 'list') {
    await client.call('messages.list', { params: { identity_id: from.id }, query: { limit: 20 } });
    return;
  }
  if (name === 'answer') return reply(actor, log, from, n);
  if (recent === undefined || answer === undefined || name === 'send') {
    const send = newSend(place, String(n), `soak-${actor.run}-${n}`, letter(actor, n), { from });
    log.sends.push(send);
    await post(place, send);
    return;
  }
  const params = { identity_id: recent.from.id, message_id: answer.id };
  if (name === 'repeat') await post(place, recent);
  else if (name === 'another body') await conflict(place, recent);
  else if (name === 'read') await client.call('messages.get', { params });
  else await cancel(client, params);
}

function letter({ people, chance, run }: Actor, n: number) {
  const draw = chance();
  const script = draw < 0.04 ? 'softbounce' : draw < 0.07 ? 'bounce' : draw < 0.1 ? 'reject' : 'delivered';
  const other = pick(people, chance)?.address;
  const to = draw > 0.6 && other !== undefined ? [other] : [`${script}+${n}-${run}@simulator.invalid`];
  const text = `Message ${n}. ${'Some words to carry. '.repeat(1 + Math.floor(chance() * 200))}`;
  return { to, subject: `Soak ${n}`, text };
}

async function reply(actor: Actor, log: LoadLog, from: Participant, n: number): Promise<void> {
  const { place } = actor;
  const { body } = await place.client.call('messages.list', {
    params: { identity_id: from.id },
    query: { direction: 'inbound', limit: 5 },
  });
  const [target] = body.data;
  if (target === undefined) return;
  const other = { from, operation: 'reply' as const, target: target.id };
  const send = newSend(place, String(n), `soak-${actor.run}-${n}`, { text: `Answer ${n}.` }, other);
  log.sends.push(send);
  await post(place, send);
  // In half an hour machines answer each other so often that the service steps in, as it should.
  if (send.faults.includes('refused: loop_detected')) log.sends.splice(log.sends.indexOf(send), 1);
}

async function cancel(client: PmailClient, params: { identity_id: string; message_id: string }): Promise<void> {
  try {
    await client.call('messages.cancel', { params });
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'not_cancelable') throw error;
  }
}
