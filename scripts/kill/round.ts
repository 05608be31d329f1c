import { randomBytes } from 'node:crypto';
import { PmailClient } from '@pmail/client/client.ts';
import type { MessageResource } from '@pmail/core/message/resource.ts';
import type { ProviderLog } from '@pmail/testkit/provider-log.ts';
import type { Runtime } from '@pmail/testkit/runtime/runtime.ts';
import type { Place } from '../load/place.ts';
import { newSend, readMessage, waitForRest } from '../load/sends.ts';
import { type Fault, judge } from '../load/verdict.ts';
import type { Exercised } from './checks.ts';
import { insist, live, mustConflict, type Story, story } from './history.ts';
import { judgeLedger, listOutbound } from './ledger.ts';
import { freshPlace } from './place.ts';

const SENDS_PER_ROUND = 30;
const CLIENTS = 6;
const REST_LIMIT_MS = 60_000;
/** A round in which nothing comes to the provider is a round all the same. */
const HELD_LIMIT_MS = 10_000;

export interface RoundResult extends Exercised {
  round: number;
  /** What the clients knew of their keys when the runtime died. */
  ok: number;
  fail: number;
  canceled: number;
  seconds: number;
  /** Ms spent in each part of the round. */
  phases: Record<string, number>;
  faults: Fault[];
  /** Of a round that is not clean: what each client did and heard, and what the service and the provider say. */
  history: unknown;
}

/** The moments are chosen by a seed; how far the runtime has come by then is the machine's affair. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

export async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

/** One round on a runtime that runs, and runs again at its end. */
export async function playRound(
  runtime: Runtime,
  base: Place,
  provider: ProviderLog,
  round: number,
  chance: () => number,
): Promise<RoundResult> {
  const started = performance.now();
  const phases: Record<string, number> = {};
  let last = started;
  const phase = (name: string): void => {
    phases[name] = Math.round(performance.now() - last);
    last = performance.now();
  };
  const run = randomBytes(3).toString('hex');
  const place = await freshPlace(runtime, base, run);
  const stories = Array.from({ length: SENDS_PER_ROUND }, (_, n) => story(drawSend(place, round, n, run, chance)));
  // Every chance is drawn before things happen at once, so that a seed means the same each time.
  const chances = stories.map(() => seeded(Math.floor(chance() * 2 ** 32)));
  // Every second one, so that no run of some length is without calls in the provider's hands.
  const keepsBack = round % 2 === 0;
  const moment = 100 + chance() * 1_400;
  const again = drawKills(chance);

  phase('identities');
  const before = provider.taken.length;
  if (keepsBack) provider.hold();
  const impatient = new PmailClient({ url: runtime.url, key: place.key, retries: 0 });
  const begun = load({ ...place, client: impatient }, stories, chances);
  // However slow the machine is: what is to die in the provider's hands has to be there first.
  if (keepsBack) await untilHeld(provider);
  await pause(moment);
  const held = provider.held;
  await runtime.kill();
  await begun;
  provider.release();
  const taken = (): Set<string> => new Set(provider.taken.slice(before).map(({ message_id }) => message_id));
  const early = taken();
  const waiting = stories.flatMap(({ send }) => send.answers.slice(0, 1)).filter(({ id }) => !early.has(id));
  const count = (known: Story['known']): number => stories.filter((own) => own.known === known).length;
  const counts = { ok: count('ok'), fail: count('fail'), indeterminate: count('indeterminate') };

  phase('load');
  for (const ms of again) {
    const starting = runtime.start().catch(() => undefined);
    await pause(ms);
    await runtime.kill();
    await starting;
  }
  await runtime.start();
  phase('recovery');
  // Also while it has only just come back, and nothing is at rest yet.
  await Promise.all(stories.map((own) => insist(place, own)));
  await Promise.all(stories.slice(0, 3).map((own) => mustConflict(place, own)));
  phase('repeats');
  const sends = stories.map(({ send }) => send);
  const messages = await waitForRest(place, sends, REST_LIMIT_MS);
  phase('rest');
  const settled = await settleAll(place, messages, provider);
  const late = taken();
  const faults = [
    ...stories.flatMap((own) => own.faults),
    ...(await judge(place, sends, messages, provider)),
    ...judgeLedger(sends, await listOutbound(place, place.sender), provider.taken.slice(before)),
    ...stories.flatMap((own) => judgeCancel(own, messages)),
  ];
  phase('verdict');
  return {
    round,
    kills: 1 + again.length,
    ...counts,
    held,
    waited: waiting.filter(({ id }) => late.has(id)).length,
    ...settled,
    conflicts: stories.reduce((sum, own) => sum + own.conflicts, 0),
    canceled: [...messages.values()].filter(({ status }) => status === 'canceled').length,
    seconds: Math.round((performance.now() - started) / 100) / 10,
    phases,
    faults,
    history: faults.length === 0 ? null : historyOf(stories, messages, provider),
  };
}

function historyOf(stories: Story[], messages: Map<string, MessageResource>, provider: ProviderLog): unknown {
  return stories.map(({ send, known, cancel, faults }) => {
    const id = send.answers[0]?.id ?? null;
    const { key, body, answers, unanswered } = send;
    const message = id === null ? null : (messages.get(id) ?? null);
    const taken = id === null ? [] : provider.callsFor(id);
    return { key, to: body.to, answered: answers.length, unanswered, known, cancel, faults, id, message, taken };
  });
}

async function untilHeld(provider: ProviderLog): Promise<void> {
  const ends = performance.now() + HELD_LIMIT_MS;
  while (provider.held === 0 && performance.now() < ends) await pause(20);
}

/** How long it lives each time that it is killed while it comes back: not at all, nearly, or a little. */
function drawKills(chance: () => number): number[] {
  const kills: number[] = [];
  while (chance() < 0.3) kills.push(chance() < 0.3 ? 0 : chance() * 2_500);
  return kills;
}

function drawSend(place: Place, round: number, n: number, run: string, chance: () => number) {
  const choice = chance();
  const simulated = choice < 0.1 ? 'softbounce' : choice < 0.2 ? 'timeout' : choice < 0.25 ? 'reject' : 'delivered';
  const to = choice > 0.7 ? [place.desk.address] : [`${simulated}+r${n}+${run}@simulator.invalid`];
  // Some go to both kinds at once.
  if (choice > 0.9) to.push(`delivered+r${n}+${run}@simulator.invalid`);
  // By its subject a message is known as that of its key, also when no client was ever told of it.
  const subject = `Round ${round}, send ${n}`;
  return newSend(place, `${round}.${n}`, `kill-${run}-${n}`, { to, subject, text: `Send ${n}.` });
}

/** Several clients at once, each with its share. */
async function load(place: Place, stories: Story[], chances: (() => number)[]): Promise<void> {
  const queue = stories.map((own, n) => [own, chances[n] ?? Math.random] as const);
  const clients = Array.from({ length: CLIENTS }, async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await live(place, ...next);
  });
  await Promise.all(clients);
}

/** What a person does about uncertain sends: looks into the provider's log and says what is there. */
async function settleAll(
  place: Place,
  messages: Map<string, MessageResource>,
  provider: ProviderLog,
): Promise<Pick<Exercised, 'settled_sent' | 'settled_not_sent'>> {
  const settled = { settled_sent: 0, settled_not_sent: 0 };
  const uncertain = [...messages.values()].filter(({ deliveries }) =>
    deliveries?.some(({ status }) => status === 'uncertain'),
  );
  for (const { id } of uncertain) {
    const outcome = provider.callsFor(id).length > 0 ? 'sent' : 'not_sent';
    await place.client.call('messages.resolve', {
      params: { identity_id: place.sender.id, message_id: id },
      body: { outcome },
    });
    settled[`settled_${outcome}`]++;
    messages.set(id, await readMessage(place, place.sender, id));
  }
  return settled;
}

/** A cancel that was confirmed holds, and one that was refused did not happen. */
function judgeCancel({ send, cancel }: Story, messages: Map<string, MessageResource>): Fault[] {
  const message = messages.get(send.answers[0]?.id ?? '');
  if (message === undefined) return [];
  if (cancel === 'canceled' && message.status !== 'canceled') {
    return [{ invariant: 'S14', text: `${send.title}: its cancel was confirmed, and it is ${message.status}` }];
  }
  if ((cancel === 'refused' || cancel === 'none') && message.status === 'canceled') {
    return [{ invariant: 'S14', text: `${send.title}: is canceled, and nobody has done that` }];
  }
  return [];
}
