import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { PmailClient } from '@pmail/client/client.ts';
import { ProviderLog } from '@pmail/testkit/provider-log.ts';
import { ROOT } from '@pmail/testkit/runtime/build.ts';
import { Runtime } from '@pmail/testkit/runtime/runtime.ts';
import { type Place, prepare, SHORT_WAITS } from '../load/place.ts';
import { isAtRest, newSend, post, readMessage, type Send, waitForRest } from '../load/sends.ts';
import { judge } from '../load/verdict.ts';

/**
 * `npm run kill -- --rounds N [--seed S]`: the real runtime under load, SIGKILL at a random moment (sometimes again
 * while it recovers), then everything is repeated with its key, and the client's history is held against the
 * provider's own log.
 */

const SENDS_PER_ROUND = 30;
const REST_LIMIT_MS = 90_000;

interface Round {
  number: number;
  run: string;
  random: () => number;
}

function readNumber(name: string, preset: number): number {
  const index = process.argv.indexOf(name);
  const value = index < 0 ? preset : Number(process.argv[index + 1]);
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`${name} needs a whole number`);
  return value;
}

/** The moments are chosen by a seed; how far the runtime has come by then is the machine's affair. */
function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

async function main(): Promise<number> {
  const rounds = readNumber('--rounds', 10);
  const seed = readNumber('--seed', randomBytes(3).readUIntBE(0, 3));
  console.log(`${rounds} rounds, seed ${seed}`);
  const state = join(ROOT, '.state', 'kill');
  await rm(state, { recursive: true, force: true });
  const provider = await ProviderLog.start();
  const runtime = await Runtime.start({
    state,
    cron_ms: 2_000,
    limits: false,
    vars: { PM_WAITS: JSON.stringify(SHORT_WAITS), PM_PROVIDER_LOG_URL: provider.url },
  });
  const started = Date.now();
  let faults = 0;
  let kills = 0;
  try {
    const place = await prepare(runtime);
    for (let number = 1; number <= rounds; number++) {
      const round: Round = { number, run: randomBytes(3).toString('hex'), random: seeded(seed + number * 7_919) };
      const result = await playRound(runtime, place, provider, round);
      kills += result.kills;
      faults += result.faults.length;
      for (const fault of result.faults) console.log(`  round ${number}: ${fault}`);
    }
  } finally {
    await runtime.stop();
    await provider.stop();
  }
  const seconds = ((Date.now() - started) / 1000).toFixed(0);
  console.log(`${rounds} rounds, ${kills} kills, ${provider.taken.length} emails taken by the provider, ${seconds} s`);
  console.log(faults === 0 ? 'clean' : `NOT CLEAN: ${faults} faults; seed ${seed}`);
  return faults === 0 ? 0 : 1;
}

async function playRound(
  runtime: Runtime,
  place: Place,
  provider: ProviderLog,
  round: Round,
): Promise<{ faults: string[]; kills: number }> {
  const { random, run, number } = round;
  const impatient: Place = { ...place, client: new PmailClient({ url: runtime.url, key: place.key, retries: 0 }) };
  const sends = Array.from({ length: SENDS_PER_ROUND }, (_, index) => {
    const choice = random();
    const simulated = choice < 0.1 ? 'softbounce' : choice < 0.2 ? 'timeout' : 'delivered';
    const to = choice > 0.7 ? [place.desk.address] : [`${simulated}+r${index}+${run}@simulator.invalid`];
    return newSend(place, `${number}.${index}`, `kill-${run}-${index}`, {
      to,
      subject: `Round ${number}`,
      text: `Send ${index}.`,
    });
  });
  if (random() < 0.5) provider.hold();
  const begun = load(impatient, sends, random);
  let kills = 0;
  await pause(random() * 900);
  await runtime.kill();
  kills++;
  await begun;
  provider.release();
  const unanswered = sends.filter(({ answers }) => answers.length === 0).length;
  while (random() < 0.3) {
    // Again while it recovers: before it is ready, or just after.
    const starting = runtime.start().catch(() => undefined);
    await pause(random() * 3_000);
    await runtime.kill();
    await starting;
    kills++;
  }
  await runtime.start();
  for (const send of sends) await retry(place, send);
  const messages = await waitForRest(place, sends, REST_LIMIT_MS);
  const uncertain = [...messages.values()].filter(({ status }) => status === 'uncertain');
  for (const { id } of uncertain) {
    const outcome = provider.callsFor(id).length > 0 ? 'sent' : 'not_sent';
    await place.client.call('messages.resolve', {
      params: { identity_id: place.sender.id, message_id: id },
      body: { outcome },
    });
    messages.set(id, await readMessage(place, place.sender, id));
  }
  const faults = await judge(place, sends, messages, provider);
  const late = [...messages.values()].filter((message) => !isAtRest(message)).length;
  console.log(
    `round ${number}: ${kills} kills, ${unanswered} of ${sends.length} unanswered, ${uncertain.length} uncertain, ${late} not at rest: ${faults.length === 0 ? 'clean' : 'NOT CLEAN'}`,
  );
  return { faults, kills };
}

/** Several clients at once, each with its share, some requests twice. */
async function load(place: Place, sends: Send[], random: () => number): Promise<void> {
  const queue = [...sends];
  const clients = Array.from({ length: 6 }, async () => {
    for (let send = queue.shift(); send !== undefined; send = queue.shift()) {
      const twice = random() < 0.2;
      await Promise.all(twice ? [post(place, send), post(place, send)] : [post(place, send)]);
    }
  });
  await Promise.all(clients);
}

/** Until there is an answer: the client of the real world does not give up either. */
async function retry(place: Place, send: Send): Promise<void> {
  for (let attempt = 0; attempt < 20; attempt++) {
    if ((await post(place, send)) !== null) return;
    await pause(250);
  }
  send.faults.push('never answered');
}

process.exitCode = await main();
