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

/** @throws {Error} with a message for people when the options are none */
export function readCommand(args: string[]): Command {
  const { values } = parseArgs({
    args,
    options: {
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
    },
  });
  const { way, faults } = values;
  const number = (name: 'schedules' | 'seed' | 'shrink' | 'sends' | 'draw'): number | undefined => {
    const text = values[name];
    if (text === undefined) return undefined;
    return whole(name, text);
  };
  if (way !== undefined) return { do: 'way', name: way };
  const shrunk = number('shrink');
  if (shrunk !== undefined) return { do: 'shrink', seed: shrunk };
  const [schedules, seed, sends, draw] = [number('schedules'), number('seed'), number('sends'), number('draw')];
  if (seed !== undefined && schedules === undefined) {
    return {
      do: 'replay',
      seed,
      reduction: {
        ...(faults === undefined ? {} : { faults: new Set(faults === '' ? [] : faults.split(',').map(faultOf)) }),
        ...(sends === undefined ? {} : { sends }),
        ...(draw === undefined ? {} : { draw }),
        ...(values['no-people'] === true ? { people: false } : {}),
      },
    };
  }
  return {
    do: 'run',
    schedules: schedules ?? 2_000,
    first: seed ?? 1,
    exhaustive: values['no-exhaustive'] !== true,
    resume: values.resume === true,
  };
}

function faultOf(name: string): ChanceOf {
  const found = CHANCES.find((fault) => fault === name);
  if (found === undefined) throw new Error(`no such fault: ${name}; there are ${CHANCES.join(', ')}`);
  return found;
}
