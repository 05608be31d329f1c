import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { PmailClient } from '@pmail/client/client.ts';
import type { MessageResource } from '@pmail/core/message/resource.ts';
import { readOptions } from '@pmail/testkit/options.ts';
import { ProviderLog } from '@pmail/testkit/provider-log.ts';
import { ROOT } from '@pmail/testkit/runtime/build.ts';
import { Runtime } from '@pmail/testkit/runtime/runtime.ts';
import { examples, forRun, type Place, prepare, SHORT_WAITS } from '../load/place.ts';
import { conflict, newSend, post, readMessage, type Send, waitForRest } from '../load/sends.ts';
import { judge } from '../load/verdict.ts';
import { converse } from './conversation.ts';
import { eventsSince, heading, printRecipients, printTimelines } from './report.ts';
import { printDeliveries, type Subscriber, subscribe } from './subscriber.ts';

/**
 * The main job end to end on the local runtime: real sends with keys, repeats, a conflict, a SIGKILL with sends in
 * flight, recovery on the same state, and a verdict that compares the service's word with the provider's own log.
 */

const USAGE = `npm run demo
    sends, repeats, kills the runtime in the middle, recovers and gives a verdict; it has no options.
    A second run goes on with the same state, which npm run reset forgets`;

const BURST = 24;
const REST_LIMIT_MS = 60_000;

async function main(): Promise<number> {
  readOptions(USAGE, (args) => parseArgs({ args, options: {} }));
  const run = randomBytes(3).toString('hex');
  const started = Date.now();
  heading(`run ${run}: starting the local runtime`);
  const provider = await ProviderLog.start();
  const runtime = await Runtime.start({
    state: join(ROOT, '.state', 'demo'),
    cron_ms: 2_000,
    vars: {
      PM_WAITS: JSON.stringify(SHORT_WAITS),
      PM_PROVIDER_LOG_URL: provider.url,
      PM_WEBHOOK_LOOPBACK: 'on',
    },
  });
  console.log(`listening on ${runtime.url}, state in .state/demo`);
  let subscriber: Subscriber | undefined;
  try {
    const place = await prepare(runtime);
    subscriber = await subscribe(place, run);
    console.log(`${place.sender.address} writes, ${place.desk.address} receives`);
    const sends = await sendExamples(place, run);
    await waitForRest(place, sends, REST_LIMIT_MS);
    const talk = await converse(place, run);
    const burst = await killInFlight(place, runtime, provider, run);
    const all = [...sends, ...talk.sends, ...burst];

    heading('everything again with the same keys');
    for (const send of all) await post(place, send);
    console.log(`${all.length} requests repeated`);

    heading('waiting for rest');
    const messages = await waitForRest(place, all, REST_LIMIT_MS);
    await resolveUncertain(place, all, messages, provider);

    const events = await eventsSince(place, started - 1_000);
    heading('timelines');
    printTimelines(
      [...sends, ...talk.sends, ...burst.filter((send) => isInteresting(send, messages))],
      messages,
      events,
    );
    heading('recipients');
    printRecipients([...sends, ...talk.sends], messages);
    heading('webhooks received and verified');
    const told = await printDeliveries(subscriber, place, await eventsSince(place, subscriber.since));
    return await verdict(place, all, messages, provider, started, [...talk.faults, ...told]);
  } finally {
    await runtime.stop();
    await provider.stop();
    await subscriber?.receiver.stop();
  }
}

/** Each example with a key, then again with it, then one with another body. */
async function sendExamples(place: Place, run: string): Promise<Send[]> {
  heading('the sends under examples/, each with a key, then once more with it');
  const sends: Send[] = [];
  for (const [name, body] of await examples()) {
    const send = newSend(place, name, `demo-${run}-${name}`, forRun(body, run));
    sends.push(send);
    const first = await post(place, send);
    const again = await post(place, send);
    console.log(
      `  ${name.padEnd(22)} ${first?.id ?? 'refused'}  repeat: ${again?.deduplicated ? 'replayed' : 'NOT REPLAYED'}`,
    );
  }
  const [plain] = sends.filter(({ title }) => title === 'plain');
  if (plain !== undefined) console.log(`  same key, another body: ${await conflict(place, plain)}`);
  return sends;
}

/** A burst of sends, and a SIGKILL while some of them are at the provider, some queued and some not even answered. */
async function killInFlight(place: Place, runtime: Runtime, provider: ProviderLog, run: string): Promise<Send[]> {
  heading(`${BURST} more at once, and SIGKILL while they are in flight`);
  const impatient: Place = { ...place, client: new PmailClient({ url: runtime.url, key: place.key, retries: 0 }) };
  provider.hold();
  const burst = Array.from({ length: BURST }, (_, index) => {
    const to = index % 3 === 0 ? [place.desk.address] : [`delivered+burst${index}+${run}@simulator.invalid`];
    return newSend(place, `burst ${index}`, `demo-${run}-burst-${index}`, {
      to,
      subject: `Burst ${index}`,
      text: `Number ${index}.`,
    });
  });
  // The first half is accepted, and the provider has taken one of it without answering; the other half has only begun.
  await Promise.all(burst.slice(0, BURST / 2).map((send) => post(impatient, send)));
  await until(() => provider.held > 0, 15_000);
  const late = burst.slice(BURST / 2).map((send) => post(impatient, send));
  await new Promise((resolve) => {
    setTimeout(resolve, 40);
  });
  await runtime.kill();
  await Promise.all(late);
  const unanswered = burst.filter(({ answers }) => answers.length === 0).length;
  console.log(`  killed: ${provider.held} at the provider without an answer, ${unanswered} requests never answered`);
  provider.release();
  await runtime.start();
  console.log('  started again on the same state');
  return burst;
}

async function until(condition: () => boolean, limitMs: number): Promise<void> {
  const ends = Date.now() + limitMs;
  while (!condition() && Date.now() < ends) {
    await new Promise((resolve) => {
      setTimeout(resolve, 20);
    });
  }
}

/** What a person does about an uncertain send: looks whether it arrived, and says so. Here the provider's log tells. */
async function resolveUncertain(
  place: Place,
  sends: Send[],
  messages: Map<string, MessageResource>,
  provider: ProviderLog,
): Promise<void> {
  const uncertain = [...messages.values()].filter(({ status }) => status === 'uncertain');
  heading(`${uncertain.length} uncertain; a person looks at the provider and resolves them`);
  for (const message of uncertain) {
    const outcome = provider.callsFor(message.id).length > 0 ? 'sent' : 'not_sent';
    const title = sends.find(({ answers }) => answers[0]?.id === message.id)?.title ?? message.id;
    await place.client.call('messages.resolve', {
      params: { identity_id: place.sender.id, message_id: message.id },
      body: { outcome },
    });
    const after = await readMessage(place, place.sender, message.id);
    messages.set(message.id, after);
    console.log(`  ${title.padEnd(12)} ${outcome.padEnd(8)} -> ${after.status}`);
  }
}

/** Of the burst only those with a story: the rest went the usual way. */
function isInteresting(send: Send, messages: Map<string, MessageResource>): boolean {
  const message = messages.get(send.answers[0]?.id ?? '');
  return message !== undefined && (message.status !== 'delivered' || message.flags.includes('reconciled'));
}

async function verdict(
  place: Place,
  sends: Send[],
  messages: Map<string, MessageResource>,
  provider: ProviderLog,
  started: number,
  known: string[],
): Promise<number> {
  heading('verdict');
  const faults = [...known, ...(await judge(place, sends, messages, provider)).map(({ text }) => text)];
  for (const fault of faults) console.log(`  ${fault}`);
  const seconds = ((Date.now() - started) / 1000).toFixed(0);
  const requests = sends.reduce((sum, { answers, unanswered }) => sum + answers.length + unanswered, 0);
  console.log(
    `  ${sends.length} keys, ${requests} requests, ${provider.taken.length} emails taken by the provider, ${seconds} s`,
  );
  console.log(faults.length === 0 ? '  CLEAN: each key one email, none lost' : `  NOT CLEAN: ${faults.length} faults`);
  return faults.length === 0 ? 0 : 1;
}

process.exitCode = await main();
