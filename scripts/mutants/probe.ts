import { exhaustiveCases, wayOf } from '@pmail/sim/exhaustive.ts';
import { randomSchedule } from '@pmail/sim/random.ts';
import { type Report, runSchedule } from '@pmail/sim/schedule.ts';
import { installSyncCrypto } from '@pmail/sim/sync-crypto.ts';

/**
 * Runs the simulator of the tree it stands in and tells of every schedule that fails, a line of JSON each. Small schedules
 * are taken from all over the list, a random one after every third, so that a breakage of any kind shows soon.
 *
 * `probe.ts --schedules N`: N schedules, one in four of them random. `probe.ts --one small|random NAME`: one schedule.
 */

export interface Told {
  kind: 'small' | 'random' | 'end';
  /** The way's name or the seed. */
  where: string;
  invariants: string[];
  text: string;
  /** How many schedules have run. */
  ran: number;
}

/** Strides in which the list of small schedules is gone through. */
const STRIDES = 97;
const SMALL_PER_RANDOM = 3;

async function one(kind: string, name: string): Promise<void> {
  const schedule = kind === 'random' ? randomSchedule(Number(name)) : wayOf(name);
  if (schedule === undefined) throw new Error(`no such way: ${name}`);
  tell(kind === 'random' ? 'random' : 'small', name, await runSchedule(schedule), 1);
}

async function all(schedules: number): Promise<void> {
  let ran = 0;
  let seed = 0;
  for (let part = 0; part < STRIDES && ran < schedules; part++) {
    for await (const { name, report } of exhaustiveCases(part, STRIDES)) {
      fail('small', name, report, ++ran);
      if (ran % (SMALL_PER_RANDOM + 1) === SMALL_PER_RANDOM) {
        fail('random', String(++seed), await runSchedule(randomSchedule(seed)), ++ran);
      }
      if (ran >= schedules) break;
    }
  }
  say({ kind: 'end', where: '', invariants: [], text: '', ran });
}

function fail(kind: Told['kind'], where: string, report: Report, ran: number): void {
  if (report.violations.length > 0) tell(kind, where, report, ran);
}

function tell(kind: Told['kind'], where: string, { violations }: Report, ran: number): void {
  const invariants = [...new Set(violations.map(({ invariant }) => invariant))].sort();
  say({ kind, where, invariants, text: violations[0]?.text ?? '', ran });
}

function say(told: Told): void {
  process.stdout.write(`${JSON.stringify(told)}\n`);
}

installSyncCrypto();
const [mode, first = '', second = ''] = process.argv.slice(2);
if (mode === '--one') await one(first, second);
else await all(Number(first));
