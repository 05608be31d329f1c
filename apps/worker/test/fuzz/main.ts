import { FUZZ_STATUS, readFuzzArgs, runFuzzers } from '@pmail/testkit/fuzz/command.ts';
import { bodies, cursors, dnsAnswers, fields, resolver } from './fuzzers.ts';

/** The Worker's part of `npm run fuzz`, in node. */

const dns = dnsAnswers((answers) => {
  globalThis.fetch = resolver(answers);
});
const ended = await runFuzzers([await cursors(), bodies, fields, dns], readFuzzArgs(process.argv.slice(2)));
process.exitCode = FUZZ_STATUS[ended];
