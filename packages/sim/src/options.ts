import { parseArgs } from 'node:util';
import { whole } from '@pmail/testkit/options.ts';
import { CHANCES, type ChanceOf } from './faults.ts';
import type { Reduction } from './random.ts';

/** The command line of the simulator. */

export const USAGE = `npm run sim -- [--schedules N] [--seed S] [--no-exhaustive]
    small schedules in every way, then N random ones (2000) from seed S (1) on, on all cores
npm run sim -- --schedules N --resume
    goes on where a run of the same code was stopped; its state is written after every slice
npm run sim -- --seed S [--faults a,b] [--sends N] [--no-people] [--draw D]
    replays one random schedule, whole or reduced, and prints its history
npm run sim -- --way NAME
    replays one small schedule
npm run sim -- --shrink S
    looks for the smallest reduction of a failing schedule that fails still`;

export type Command =
  | { do: 'run'; schedules: number; first: number; exhaustive: boolean; resume: boolean }
  | { do: 'replay'; seed: number; reduction: Reduction }
  | { do: 'way'; name: string }
  | { do: 'shrink'; seed: number };

const OPTIONS = {
  schedules: { type: 'string' },
  seed: { type: 'string' },
  way: { type: 'string' },
  shrink: { type: 'string' },
  faults: { type: 'string' },
  sends: { type: 'string' },
  draw: { type: 'string' },
  'no-people': { type: 'boolean' },
  'no-exhaustive': { type: 'boolean' },
  resume: { type: 'boolean' },
} as const;

type Option = keyof typeof OPTIONS;

/** What each kind of command takes, and how it is called where something else is refused. */
const TAKES: Record<Command['do'], { options: readonly Option[]; what: string }> = {
  way: { options: ['way'], what: '--way, which replays one small schedule' },
  shrink: { options: ['shrink'], what: '--shrink, which makes one schedule smaller' },
  replay: {
    options: ['seed', 'faults', 'sends', 'draw', 'no-people'],
    what: '--seed without --schedules, which replays one schedule',
  },
  run: {
    options: ['schedules', 'seed', 'no-exhaustive', 'resume'],
    what: 'a run of many schedules; one alone is replayed by --seed without --schedules',
  },
};

/** @throws {Error} with a message for people when the options are none, or mean nothing together */
export function readCommand(args: string[]): Command {
  const { values } = parseArgs({ args, options: OPTIONS });
  const { way, faults } = values;
  const number = (name: 'schedules' | 'seed' | 'shrink' | 'sends' | 'draw'): number | undefined => {
    const text = values[name];
    if (text === undefined) return undefined;
    return whole(name, text);
  };
  const [schedules, seed, sends, draw] = [number('schedules'), number('seed'), number('sends'), number('draw')];
  const shrunk = number('shrink');
  const given = (Object.keys(OPTIONS) as Option[]).filter((name) => values[name] !== undefined);
  if (way !== undefined) return only(given, { do: 'way', name: way });
  if (shrunk !== undefined) return only(given, { do: 'shrink', seed: shrunk });
  if (seed !== undefined && schedules === undefined) {
    return only(given, {
      do: 'replay',
      seed,
      reduction: {
        ...(faults === undefined ? {} : { faults: new Set(faults === '' ? [] : faults.split(',').map(faultOf)) }),
        ...(sends === undefined ? {} : { sends }),
        ...(draw === undefined ? {} : { draw }),
        ...(values['no-people'] === true ? { people: false } : {}),
      },
    });
  }
  const exhaustive = values['no-exhaustive'] !== true;
  if (schedules === 0 && !exhaustive) throw new Error('--schedules 0 with --no-exhaustive leaves nothing to run');
  return only(given, {
    do: 'run',
    schedules: schedules ?? 2_000,
    first: seed ?? 1,
    exhaustive,
    resume: values.resume === true,
  });
}

/** An option that is dropped without a word has somebody believe what never was: it is refused. */
function only(given: readonly Option[], command: Command): Command {
  const { options, what } = TAKES[command.do];
  const stray = given.find((name) => !options.includes(name));
  if (stray !== undefined) throw new Error(`--${stray} does not go with ${what}`);
  return command;
}

function faultOf(name: string): ChanceOf {
  const found = CHANCES.find((fault) => fault === name);
  if (found === undefined) throw new Error(`no such fault: ${name}; there are ${CHANCES.join(', ')}`);
  return found;
}
