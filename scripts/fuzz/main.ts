import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { FUZZ_STATUS, readFuzzArgs, runFuzzers } from '@pmail/testkit/fuzz/command.ts';
import { readOptions } from '@pmail/testkit/options.ts';
import { FUZZERS } from './parsers.ts';

/** `npm run fuzz -- [--inputs N] [--seed S] [--only PARSER]`: so many inputs for each parser that meets foreign bytes. */

const USAGE = `npm run fuzz -- [--inputs N] [--seed S] [--only PARSER]
    N inputs (20000) for each parser whose name has PARSER in it (all); a seed gives the same ones again`;

const args = readOptions(USAGE, readFuzzArgs);
console.log(`${args.inputs} inputs for each parser, seed ${args.seed}`);
const here = FUZZ_STATUS[await runFuzzers(FUZZERS, args)];
// Parsers of the Worker are its own, and nobody imports an app.
const worker = join(import.meta.dirname, '../../apps/worker/test/fuzz/main.ts');
const given = ['--inputs', String(args.inputs), '--seed', String(args.seed), '--only', args.only];
const { status: there } = spawnSync(process.execPath, [worker, ...given], { stdio: 'inherit' });
const ran = [here, there].filter((status) => status !== FUZZ_STATUS.none);
const clean = ran.every((status) => status === FUZZ_STATUS.clean);
if (ran.length === 0) {
  console.error(`There is no parser with '${args.only}' in its name`);
  process.exitCode = 2;
} else {
  console.log(clean ? 'clean' : 'NOT CLEAN');
  process.exitCode = clean ? 0 : 1;
}
