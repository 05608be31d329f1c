import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { readOptions, whole } from '@pmail/testkit/options.ts';
import { ProviderLog } from '@pmail/testkit/provider-log.ts';
import { ROOT } from '@pmail/testkit/runtime/build.ts';
import { Runtime } from '@pmail/testkit/runtime/runtime.ts';
import { Answers } from '../load/answers.ts';
import { type OwnState, runInOwnState } from '../load/own-state.ts';
import { platformOf, prepare, SHORT_WAITS } from '../load/place.ts';
import { counted } from '../load/words.ts';
import { liftCaps } from './place.ts';
import { playRound, seeded } from './round.ts';
import { jsonOf, lineOf, type Round, verdict } from './say.ts';

/**
 * `npm run kill`: the built Worker under load, SIGKILL at a random moment (sometimes again while it recovers), then
 * everything is repeated with its key, and the clients' history is held against the provider's own log.
 */

const USAGE = `npm run kill -- [--rounds N] [--seed S] [--stop] [--json]
    kills the local runtime under load in N rounds (10), at moments drawn from seed S (another one each time)
    --stop   ends it at the first round that is not clean
    --json   prints a line of JSON for each round`;

/** Shorter than for people who watch. */
const WAITS = {
  ...SHORT_WAITS,
  claim_ttl_ms: 2_500,
  dispatch_after_ms: 1_000,
  outbox_backoff_ms_min: 250,
  outbox_backoff_ms_max: 1_000,
  quota_task_retry_ms: 500,
  followup_retry_ms: 1_000,
};
const CRON_MS = 1_000;

interface Options {
  rounds: number;
  seed: number;
  stop: boolean;
  json: boolean;
}

function read(args: string[]): Options {
  const { values } = parseArgs({
    args,
    options: {
      rounds: { type: 'string', default: '10' },
      seed: { type: 'string', default: String(randomBytes(3).readUIntBE(0, 3)) },
      stop: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
    },
  });
  const { stop, json } = values;
  return { rounds: whole('rounds', values.rounds, 1), seed: whole('seed', values.seed), stop, json };
}

async function run(options: Options, own: OwnState): Promise<number> {
  const { rounds, seed } = options;
  console.log(`${counted(rounds, 'round')}, seed ${seed}`);
  const provider = await ProviderLog.start();
  const results: Round[] = [];
  let runtime: Runtime | undefined;
  let failure: string | null = null;
  try {
    runtime = await Runtime.start({
      state: own.service,
      cron_ms: CRON_MS,
      limits: false,
      vars: { PM_WAITS: JSON.stringify(WAITS), PM_PROVIDER_LOG_URL: provider.url },
    });
    await playRounds(runtime, provider, options, own.folder, results);
  } catch (error) {
    failure = String(error);
  }
  await runtime?.stop();
  await provider.stop();
  const { lines, clean } = verdict(results, { taken: provider.taken.length, seed, failure });
  for (const line of lines) console.log(line);
  return clean ? 0 : 1;
}

async function playRounds(
  runtime: Runtime,
  provider: ProviderLog,
  { rounds, seed, stop, json }: Options,
  folder: string,
  results: Round[],
): Promise<void> {
  const answers = new Answers();
  const platform = platformOf(runtime, answers.fetch);
  const place = await prepare(runtime, answers.fetch);
  await liftCaps(platform, place);
  for (let round = 1; round <= rounds; round++) {
    const stage = { runtime, platform, place, provider, answers };
    const { history, ...result } = await playRound(stage, round, seeded(seed + round * 7_919));
    results.push(result);
    console.log(json ? jsonOf(result) : lineOf(result));
    if (!json) for (const { invariant, text } of result.faults) console.log(`  ${invariant}: ${text}`);
    if (history !== null) {
      const file = join(folder, `round-${round}.json`);
      await writeFile(file, JSON.stringify(history, null, 2));
      if (!json) console.log(`  the history of its keys: ${file}`);
    }
    if (result.broken || (stop && result.faults.length > 0)) return;
  }
}

const options = readOptions(USAGE, read);
await runInOwnState('npm run kill', join(ROOT, '.state', 'kill'), (own) => run(options, own));
