import { randomBytes } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { readOptions, whole } from '@pmail/testkit/options.ts';
import { ProviderLog } from '@pmail/testkit/provider-log.ts';
import { ROOT } from '@pmail/testkit/runtime/build.ts';
import { Runtime } from '@pmail/testkit/runtime/runtime.ts';
import { prepare, SHORT_WAITS } from '../load/place.ts';
import { addUp, sayChecks } from './checks.ts';
import { liftCaps } from './place.ts';
import { playRound, type RoundResult, seeded } from './round.ts';

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

type Round = Omit<RoundResult, 'history'>;

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

async function main(): Promise<number> {
  const { rounds, seed, stop, json } = readOptions(USAGE, read);
  console.log(`${rounds} rounds, seed ${seed}`);
  const state = join(ROOT, '.state', 'kill');
  await rm(state, { recursive: true, force: true });
  const provider = await ProviderLog.start();
  const runtime = await Runtime.start({
    state,
    cron_ms: CRON_MS,
    limits: false,
    vars: { PM_WAITS: JSON.stringify(WAITS), PM_PROVIDER_LOG_URL: provider.url },
  });
  const results: Round[] = [];
  try {
    const place = await prepare(runtime);
    await liftCaps(runtime, place);
    for (let round = 1; round <= rounds; round++) {
      const { history, ...result } = await playRound(runtime, place, provider, round, seeded(seed + round * 7_919));
      results.push(result);
      console.log(json ? JSON.stringify(result) : lineOf(result));
      if (!json) for (const { invariant, text } of result.faults) console.log(`  ${invariant}: ${text}`);
      if (history !== null) {
        const file = join(state, `round-${round}.json`);
        await writeFile(file, JSON.stringify(history, null, 2));
        if (!json) console.log(`  the history of its keys: ${file}`);
      }
      if (stop && result.faults.length > 0) break;
    }
  } finally {
    await runtime.stop();
    await provider.stop();
  }
  return verdict(results, provider, seed);
}

function lineOf(result: Round): string {
  const { round, kills, ok, fail, indeterminate, held, settled_sent, settled_not_sent, canceled, seconds } = result;
  const known = `${ok} ok, ${fail} refused, ${indeterminate} indeterminate, ${held} held`;
  const after = `${settled_sent + settled_not_sent} uncertain, ${canceled} canceled`;
  const clean = result.faults.length === 0 ? 'clean' : 'NOT CLEAN';
  return `round ${round}: ${kills} kills; ${known}; ${after}; ${seconds} s: ${clean}`;
}

function verdict(results: Round[], provider: ProviderLog, seed: number): number {
  const faults = results.flatMap((result) => result.faults);
  const total = addUp(results);
  const seconds = results.reduce((sum, round) => sum + round.seconds, 0);
  console.log(
    `${results.length} rounds, ${total.kills} kills, ${total.indeterminate} keys indeterminate at a kill, ` +
      `${provider.taken.length} emails taken by the provider, ` +
      `${total.settled_sent + total.settled_not_sent} settled by a person; ` +
      `${seconds.toFixed(0)} s, ${(seconds / Math.max(1, results.length)).toFixed(1)} s a round`,
  );
  const { lines, missing } = sayChecks(total, results.length, faults.length);
  for (const line of lines) console.log(`  ${line}`);
  if (faults.length > 0) console.log(`NOT CLEAN: ${faults.length} faults; seed ${seed}`);
  else if (missing.length > 0) console.log(`NOT SHOWN: never once ${missing.join(', ')}; seed ${seed}`);
  else console.log('clean');
  return faults.length === 0 && missing.length === 0 ? 0 : 1;
}

process.exitCode = await main();
