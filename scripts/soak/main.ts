import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { PmailClient } from '@pmail/client/client.ts';
import { positive, readOptions } from '@pmail/testkit/options.ts';
import { ProviderLog } from '@pmail/testkit/provider-log.ts';
import { ROOT } from '@pmail/testkit/runtime/build.ts';
import { Runtime } from '@pmail/testkit/runtime/runtime.ts';
import { freshPlace, liftCaps } from '../kill/place.ts';
import { seeded } from '../kill/round.ts';
import { Answers, judgeAnswers, LATER_ONE_IN, sayCounts, total } from '../load/answers.ts';
import { runInOwnState } from '../load/own-state.ts';
import { persist } from '../load/persist.ts';
import { type Participant, type Place, platformOf, prepare, SHORT_WAITS } from '../load/place.ts';
import { post, waitForRest } from '../load/sends.ts';
import { judge } from '../load/verdict.ts';
import { counted } from '../load/words.ts';
import { judgeMemory, OURS } from './judge.ts';
import { Listener } from './listener.ts';
import { type LoadLog, soakLoad } from './load.ts';
import { type Sample, takeSample } from './memory.ts';
import { leftovers } from './storage.ts';

/**
 * `npm run soak`: mixed load on the local runtime for so long; its memory is flat after the warm-up, no alarm is lost,
 * nothing is left in any queue, and every key has its one message.
 */

const USAGE = `npm run soak -- [--minutes N] [--pace N]
    mixed load on the local runtime for N minutes (30), with N actions a second (10); its memory must stay flat, and
    nothing may be left over. A run too short to tell anything about memory fails: have it last 3 minutes at least`;

const GROUPS = 6;
/** A sample stops each isolate for a moment. Rarer ones would leave more garbage between them, and so more resident. */
const SAMPLE_MS = 10_000;
/**
 * Whoever meets a busy thread goes on with something else; what has no answer is repeated at the end. A try without an
 * answer is repeated before the load calls it a fault; by its deadlines the service could take longer.
 */
const CLIENT = { retries: 8, waitMsMax: 1_000, timeoutMs: 60_000 };
const REST_LIMIT_MS = 180_000;
/** What a mailbox retries waits a few seconds. */
const SETTLE_MS = 20_000;

function read(args: string[]): { minutes: number; pace: number } {
  const { values } = parseArgs({
    args,
    options: { minutes: { type: 'string', default: '30' }, pace: { type: 'string', default: '10' } },
  });
  return { minutes: positive('minutes', values.minutes), pace: positive('pace', values.pace) };
}

async function people(platform: PmailClient, place: Place, run: string): Promise<Participant[]> {
  const groups: Participant[] = [];
  for (let n = 0; n < GROUPS; n++) {
    const { sender, desk, garage } = await freshPlace(platform, place, `${run}${n}`);
    groups.push(sender, desk, garage);
  }
  return groups;
}

/** Bounces are part of the load, and pausing for them is the subject of other tests. */
async function neverPause(platform: PmailClient, { tenant }: Place): Promise<void> {
  await persist(() =>
    platform.call('tenants.policy.update', {
      params: { tenant_id: tenant },
      body: { policy: { abuse: { complaint_rate_pause: 1, bounce_rate_pause: 1 } } },
    }),
  );
}

async function run({ minutes, pace }: { minutes: number; pace: number }, state: string): Promise<number> {
  const answers = new Answers();
  const provider = await ProviderLog.start();
  const listener = await Listener.start();
  const vars = { PM_WAITS: JSON.stringify(SHORT_WAITS), PM_PROVIDER_LOG_URL: provider.url, PM_WEBHOOK_LOOPBACK: 'on' };
  const runtime = await Runtime.start({ state, cron_ms: 5_000, limits: false, vars, inspector: true });
  const faults: string[] = [];
  let mailboxes = 1;
  try {
    const platform = platformOf(runtime, answers.fetch);
    const place = await prepare(runtime, answers.fetch);
    await liftCaps(platform, place);
    await neverPause(platform, place);
    // Before there is anybody whose events it could miss.
    await listener.subscribe(place);
    const name = randomBytes(3).toString('hex');
    const client = new PmailClient({ url: runtime.url, key: place.key, ...CLIENT, fetch: answers.fetch });
    const actor = {
      place: { ...place, client },
      people: await people(platform, place, name),
      chance: seeded(1),
      run: name,
    };
    mailboxes = actor.people.length;
    console.log(
      `${counted(minutes, 'minute')}, ${counted(pace, 'action')} a second, ${actor.people.length} identities`,
    );
    const samples: Sample[] = [];
    const log = await soakLoad(actor, pace, Date.now() + minutes * 60_000, {
      every_ms: SAMPLE_MS,
      work: sampler(runtime, minutes, samples),
    });
    const memory = judgeMemory(samples, minutes);
    for (const line of memory.lines) console.log(line);
    faults.push(...log.faults, ...memory.faults, ...(await account({ place, people: actor.people }, log, provider)));
    await sleep(SETTLE_MS);
    console.log(`answers: ${sayCounts(answers.calm)}`);
    faults.push(...judgeAnswers(answers, Math.floor(total(answers.calm) / LATER_ONE_IN)));
  } finally {
    await runtime.stop();
    await provider.stop();
    await listener.stop();
  }
  const left = leftovers(state, Date.now(), { mailboxes, told: listener.told });
  console.log(
    `on disk: ${left.mailboxes} mailboxes, ${counted(left.quotas, 'quota')}, ${left.events} events, ${left.webhooks} of ` +
      `them for a webhook that got ${listener.deliveries}: ${left.found.length === 0 ? 'nothing left to do' : 'NOT at rest'}`,
  );
  faults.push(...left.found);
  for (const fault of faults.slice(0, 30)) console.log(`  ${fault}`);
  console.log(faults.length === 0 ? 'clean' : `NOT CLEAN: ${counted(faults.length, 'fault')}`);
  return faults.length === 0 ? 0 : 1;
}

/** Takes a sample each time, and tells of some. */
function sampler(runtime: Runtime, minutes: number, samples: Sample[]): (log: LoadLog) => Promise<void> {
  const started = Date.now();
  let told = 0;
  return async (log) => {
    const at = (Date.now() - started) / 60_000;
    const sample = await takeSample(runtime, at, actionsOf(log));
    samples.push(sample);
    if (at < told) return;
    told = at + Math.max(0.4, minutes / 15);
    const { actions, resident, held } = sample;
    const ours = `${(held.get(OURS) ?? 0).toFixed(1)} MB held by ours`;
    console.log(`  minute ${at.toFixed(1)}: ${actions} actions, ${ours}, ${resident.toFixed(0)} MB resident`);
  };
}

const actionsOf = ({ done }: LoadLog): number => Object.values(done).reduce((sum, n) => sum + n, 0);

/** Every key answered, every message at its end, every email in the provider's log once. */
async function account(
  { place, people: all }: { place: Place; people: Participant[] },
  { sends, done }: LoadLog,
  provider: ProviderLog,
): Promise<string[]> {
  for (const send of sends.filter(({ answers, faults }) => answers.length === 0 && faults.length === 0)) {
    await post(place, send);
  }
  const answered = sends.filter(({ answers }) => answers.length > 0);
  const started = performance.now();
  const messages = await waitForRest(place, answered, REST_LIMIT_MS);
  const seconds = ((performance.now() - started) / 1_000).toFixed(0);
  const shares = Object.entries(done).map(([name, n]) => `${n} ${name}`);
  console.log(
    `${shares.join(', ')}; ${sends.length} keys, ${provider.taken.length} emails; at rest after ${seconds} s`,
  );
  const faults = await judge(place, sends, messages, provider, all);
  return faults.map(({ invariant, text }) => `${invariant}: ${text}`);
}

const options = readOptions(USAGE, read);
await runInOwnState('npm run soak', join(ROOT, '.state', 'soak'), (own) => run(options, own.service));
