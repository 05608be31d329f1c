import { randomBytes } from 'node:crypto';
import { PmailClient } from '@pmail/client/client.ts';
import type { MessageResource } from '@pmail/core/message/resource.ts';
import type { ProviderLog } from '@pmail/testkit/provider-log.ts';
import type { Runtime } from '@pmail/testkit/runtime/runtime.ts';
import { type Answers, type Counts, judgeAnswers } from '../load/answers.ts';
import { persist } from '../load/persist.ts';
import type { Place } from '../load/place.ts';
import { newSend, waitForRest } from '../load/sends.ts';
import { type Fault, judge } from '../load/verdict.ts';
import { addUp, type Exercised } from './checks.ts';
import { killAlive } from './end.ts';
import { insist, live, mustConflict, type Story, story } from './history.ts';
import { judgeLedger, listOutbound } from './ledger.ts';
import { freshPlace } from './place.ts';
import { settleAll } from './settle.ts';

const SENDS_PER_ROUND = 30;
const CLIENTS = 6;
/** What hangs does so after three minutes too; a minute is what a machine with other work takes to drain a round. */
const REST_LIMIT_MS = 180_000;
/** A round in which nothing comes to the provider is a round all the same. */
const HELD_LIMIT_MS = 60_000;

export interface RoundResult extends Exercised {
  round: number;
  /** What the clients knew of their keys when the runtime died. */
  ok: number;
  fail: number;
  not_sent: number;
  canceled: number;
  seconds: number;
  /** Ms spent in each part of the round. */
  phases: Record<string, number>;
  faults: Fault[];
  /** Whether it ended before its verdict; nobody knows what the runtime is doing then. */
  broken: boolean;
  /** What was answered while the runtime had to be there, and around its kills. */
  answers: { calm: Counts; around: Counts };
  /** Of a round that is not clean: what each client did and heard, and what the service and the provider say. */
  history: unknown;
}

/** What all rounds of a run play on. */
export interface Stage {
  runtime: Runtime;
  platform: PmailClient;
  place: Place;
  provider: ProviderLog;
  answers: Answers;
}

/** What a round knows so far, for whoever has to look into it. */
interface Scene {
  stories: Story[];
  messages: Map<string, MessageResource>;
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

/** One round on a runtime that runs, and runs again at its end. What goes wrong in it is a fault, and nothing is thrown. */
export async function playRound(stage: Stage, round: number, chance: () => number): Promise<RoundResult> {
  const started = performance.now();
  const scene: Scene = { stories: [], messages: new Map() };
  const result: RoundResult = {
    ...addUp([]),
    ...{ round, ok: 0, fail: 0, not_sent: 0, canceled: 0, seconds: 0, phases: {}, faults: [], broken: false },
    answers: { calm: new Map(), around: new Map() },
    history: null,
  };
  try {
    await course(stage, scene, result, chance);
  } catch (error) {
    const text = `the round broke off after ${Object.keys(result.phases).at(-1) ?? 'nothing'}: ${String(error)}`;
    result.faults.push({ invariant: 'round', text });
    result.broken = true;
  }
  result.answers = stage.answers.take();
  const wrong = judgeAnswers(result.answers, 0);
  result.faults.push(...wrong.map((text) => ({ invariant: 'answers', text })));
  result.seconds = Math.round((performance.now() - started) / 100) / 10;
  if (result.faults.length > 0) result.history = historyOf(scene, stage.provider);
  return result;
}

async function course(stage: Stage, scene: Scene, result: RoundResult, chance: () => number): Promise<void> {
  const { runtime, provider, answers } = stage;
  const { round } = result;
  let last = performance.now();
  const phase = (name: string): void => {
    result.phases[name] = Math.round(performance.now() - last);
    last = performance.now();
  };
  const kill = async (recovers: boolean): Promise<void> => {
    answers.outage();
    if (!(await killAlive(runtime))) {
      result.faults.push({ invariant: 'P8', text: 'the runtime had ended by itself before a kill' });
      return;
    }
    result.kills++;
    if (recovers) result.kills_in_recovery++;
  };
  const run = randomBytes(3).toString('hex');
  const place = await freshPlace(stage.platform, stage.place, run);
  const stories = Array.from({ length: SENDS_PER_ROUND }, (_, n) => story(drawSend(place, round, n, run, chance)));
  scene.stories = stories;
  // Every chance is drawn before things happen at once, so that a seed means the same each time.
  const chances = stories.map(() => seeded(Math.floor(chance() * 2 ** 32)));
  // Every second one, so that no run of some length is without calls in the provider's hands.
  const keepsBack = round % 2 === 0;
  // Every fourth one dies early, while requests are on their way even on a machine that answers them all at once.
  const moment = 100 + chance() * (round % 4 === 1 ? 300 : 1_400);
  const again = drawKills(round, chance);

  phase('identities');
  const before = provider.taken.length;
  if (keepsBack) provider.hold();
  const impatient = new PmailClient({ url: runtime.url, key: place.key, retries: 0, fetch: answers.fetch });
  let lives = true;
  const begun = load({ ...place, client: impatient }, stories, chances, () => lives);
  // However slow the machine is: what is to die in the provider's hands has to be there first.
  if (keepsBack) await untilHeld(provider);
  await pause(moment);
  result.held = provider.held;
  lives = false;
  await kill(false);
  await begun;
  provider.release();
  await provider.untilAlone();
  const taken = (): Set<string> => new Set(provider.taken.slice(before).map(({ message_id }) => message_id));
  const early = taken();
  const waiting = stories.flatMap(({ send }) => send.answers.slice(0, 1)).filter(({ id }) => !early.has(id));
  const count = (known: Story['known']): number => stories.filter((own) => own.known === known).length;
  result.ok = count('ok');
  result.fail = count('fail');
  result.answers_lost = count('indeterminate');
  result.not_sent = count('not_sent');
  result.asked_twice = stories.filter(({ twice }) => twice).length;

  phase('load');
  for (const ms of again) {
    const starting = runtime.start().catch(() => undefined);
    await pause(ms);
    await kill(true);
    await starting;
  }
  await runtime.start();
  await untilBack(place);
  answers.back();
  phase('recovery');
  // Also while it has only just come back, and nothing is at rest yet.
  await Promise.all(stories.map((own) => insist(place, own)));
  const contested = stories.filter(({ conflicts }, n) => conflicts.before > 0 || n < 3);
  await Promise.all(contested.map((own) => mustConflict(place, own)));
  result.conflicts = stories.filter(({ conflicts }) => conflicts.before > 0 && conflicts.after > 0).length;
  phase('repeats');
  const sends = stories.map(({ send }) => send);
  const messages = await waitForRest(place, sends, REST_LIMIT_MS);
  scene.messages = messages;
  phase('rest');
  const { faults, ...settled } = await settleAll(place, messages, provider);
  Object.assign(result, settled);
  const late = taken();
  result.waited = waiting.filter(({ id }) => late.has(id)).length;
  result.canceled = [...messages.values()].filter(({ status }) => status === 'canceled').length;
  result.faults.push(
    ...faults,
    ...stories.flatMap((own) => own.faults),
    ...(await judge(place, sends, messages, provider)),
    ...judgeLedger(sends, await listOutbound(place, place.sender), provider.taken.slice(before)),
    ...stories.flatMap((own) => judgeCancel(own, messages)),
  );
  phase('verdict');
}

function historyOf({ stories, messages }: Scene, provider: ProviderLog): unknown {
  return stories.map(({ send, known, cancel, twice, conflicts, faults }) => {
    const id = send.answers[0]?.id ?? null;
    const { key, body, answers, unanswered, unsent } = send;
    const message = id === null ? null : (messages.get(id) ?? null);
    const taken = id === null ? [] : provider.callsFor(id);
    const heard = { answered: answers.length, unanswered, unsent, known, cancel, twice, conflicts };
    return { key, to: body.to, ...heard, faults, id, message, taken };
  });
}

/** Until it reads from its directory and from a mailbox; from then on it has no excuse. */
async function untilBack({ client, sender }: Place): Promise<void> {
  await persist(() => client.call('messages.list', { params: { identity_id: sender.id }, query: { limit: 1 } }));
}

async function untilHeld(provider: ProviderLog): Promise<void> {
  const ends = performance.now() + HELD_LIMIT_MS;
  while (provider.held === 0 && performance.now() < ends) await pause(20);
}

/**
 * How long it lives each time that it is killed while it comes back: not at all, nearly, or a little. Every third round has
 * such a kill for certain: by chance alone one run of ten rounds in thirty would have none.
 */
function drawKills(round: number, chance: () => number): number[] {
  const kills: number[] = [];
  while (chance() < (kills.length === 0 && round % 3 === 0 ? 1 : 0.3))
    kills.push(chance() < 0.3 ? 0 : chance() * 2_500);
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
async function load(place: Place, stories: Story[], chances: (() => number)[], lives: () => boolean): Promise<void> {
  const queue = stories.map((own, n) => [own, chances[n] ?? Math.random] as const);
  const clients = Array.from({ length: CLIENTS }, async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await live(place, ...next, lives);
  });
  await Promise.all(clients);
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
