import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { PmailClient } from '@pmail/client/client.ts';
import { ProviderLog } from '@pmail/testkit/provider-log.ts';
import { ROOT } from '@pmail/testkit/runtime/build.ts';
import { Runtime } from '@pmail/testkit/runtime/runtime.ts';
import { freshPlace, liftCaps } from '../kill/place.ts';
import { seeded } from '../kill/round.ts';
import { type Participant, type Place, prepare, SHORT_WAITS } from '../load/place.ts';
import { post, waitForRest } from '../load/sends.ts';
import { judge } from '../load/verdict.ts';
import { type LoadLog, soakLoad } from './load.ts';
import { isFlat, lineThrough, type Sample, workerdMb } from './memory.ts';
import { leftovers } from './storage.ts';

/**
 * `npm run soak -- [--minutes N] [--pace N]`: mixed load on the local runtime for so long; its memory is flat after the
 * warm-up, no alarm is lost, nothing is left in any queue, and every key has its one message.
 */

const GROUPS = 6;
const WARM_UP_SHARE = 0.2;
const SAMPLE_MS = 5_000;
const REST_LIMIT_MS = 180_000;
/** Mailboxes forget their work entry when a cron finds nothing to do, and what they retry waits a few seconds. */
const SETTLE_MS = 20_000;

function readOptions(): { minutes: number; pace: number } {
  const { values } = parseArgs({
    options: { minutes: { type: 'string', default: '30' }, pace: { type: 'string', default: '10' } },
  });
  const [minutes, pace] = [Number(values.minutes), Number(values.pace)];
  if (!(minutes > 0) || !(pace > 0)) throw new Error('usage: npm run soak -- [--minutes N] [--pace ACTIONS-A-SECOND]');
  return { minutes, pace };
}

async function people(runtime: Runtime, place: Place, run: string): Promise<Participant[]> {
  const groups: Participant[] = [];
  for (let n = 0; n < GROUPS; n++) {
    const { sender, desk, garage } = await freshPlace(runtime, place, `${run}${n}`);
    groups.push(sender, desk, garage);
  }
  return groups;
}

/** Bounces are part of the load, and pausing for them is the subject of other tests. */
async function neverPause(runtime: Runtime, { tenant }: Place): Promise<void> {
  const platform = new PmailClient({ url: runtime.url, key: runtime.secrets.platform_key, retries: 5 });
  await platform.call('tenants.policy.update', {
    params: { tenant_id: tenant },
    body: { policy: { abuse: { complaint_rate_pause: 1, bounce_rate_pause: 1 } } },
  });
}

async function main(): Promise<number> {
  const { minutes, pace } = readOptions();
  const state = join(ROOT, '.state', 'soak');
  await rm(state, { recursive: true, force: true });
  const provider = await ProviderLog.start();
  const vars = { PM_WAITS: JSON.stringify(SHORT_WAITS), PM_PROVIDER_LOG_URL: provider.url };
  const runtime = await Runtime.start({ state, cron_ms: 5_000, limits: false, vars });
  const faults: string[] = [];
  try {
    const place = await prepare(runtime);
    await liftCaps(runtime, place);
    await neverPause(runtime, place);
    const run = randomBytes(3).toString('hex');
    const actor = { place, people: await people(runtime, place, run), chance: seeded(1), run };
    console.log(`${minutes} minutes, ${pace} actions a second, ${actor.people.length} identities`);
    const { log, samples } = await watched(runtime, minutes, () =>
      soakLoad(actor, pace, Date.now() + minutes * 60_000),
    );
    faults.push(...log.faults, ...judgeMemory(samples, minutes), ...(await account(actor, log, provider)));
    await new Promise((resolve) => {
      setTimeout(resolve, SETTLE_MS);
    });
  } finally {
    await runtime.stop();
    await provider.stop();
  }
  const left = leftovers(state, Date.now());
  console.log(`${left.mailboxes} mailboxes on disk: ${left.found.length === 0 ? 'nothing left to do' : 'NOT at rest'}`);
  faults.push(...left.found);
  for (const fault of faults.slice(0, 30)) console.log(`  ${fault}`);
  console.log(faults.length === 0 ? 'clean' : `NOT CLEAN: ${faults.length} faults`);
  return faults.length === 0 ? 0 : 1;
}

async function watched(
  runtime: Runtime,
  minutes: number,
  run: () => Promise<LoadLog>,
): Promise<{ log: LoadLog; samples: Sample[] }> {
  const samples: Sample[] = [];
  const started = Date.now();
  let told = 0;
  const timer = setInterval(() => {
    workerdMb(runtime.pid).then(
      (mb) => {
        const at = (Date.now() - started) / 60_000;
        samples.push({ at, mb });
        if (at < told) return;
        told += Math.max(1, minutes / 15);
        console.log(`  minute ${at.toFixed(0)}: ${mb.toFixed(0)} MB`);
      },
      (error: unknown) => console.error(error),
    );
  }, SAMPLE_MS);
  try {
    return { log: await run(), samples };
  } finally {
    clearInterval(timer);
  }
}

function judgeMemory(samples: Sample[], minutes: number): string[] {
  const line = lineThrough(samples.filter(({ at }) => at >= minutes * WARM_UP_SHARE));
  const flat = isFlat(line);
  const rise = `${line.slope >= 0 ? '+' : ''}${line.slope.toFixed(2)} MB a minute`;
  console.log(
    `memory after the warm-up: ${line.mean.toFixed(0)} MB, ${rise}, ${line.growth.toFixed(0)} MB in ` +
      `${line.minutes.toFixed(1)} minutes: ${flat ? 'flat' : 'NOT FLAT'}`,
  );
  return flat ? [] : [`memory rises by ${rise}`];
}

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

process.exitCode = await main();
