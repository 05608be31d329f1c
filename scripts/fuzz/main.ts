import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { readFuzzArgs, runFuzzers } from '@pmail/testkit/fuzz/command.ts';
import { readOptions } from '@pmail/testkit/options.ts';
import { FUZZERS } from './parsers.ts';

/** `npm run fuzz -- [--inputs N] [--seed S] [--only PARSER]`: so many inputs for each parser that meets foreign bytes. */

const USAGE = `npm run fuzz -- [--inputs N] [--seed S] [--only PARSER]
    N inputs (20000) for each parser whose name has PARSER in it (all); a seed gives the same ones again`;

const args = readOptions(USAGE, readFuzzArgs);
console.log(`${args.inputs} inputs for each parser, seed ${args.seed}`);
let broken = await runFuzzers(FUZZERS, args);
// Parsers of the Worker are its own, and nobody imports an app.
const worker = join(import.meta.dirname, '../../apps/worker/test/fuzz/main.ts');
const given = ['--inputs', String(args.inputs), '--seed', String(args.seed), '--only', args.only];
const { status } = spawnSync(process.execPath, [worker, ...given], { stdio: 'inherit' });
if (status !== 0) broken++;
console.log(broken === 0 ? 'clean' : 'NOT CLEAN');
process.exitCode = broken === 0 ? 0 : 1;
