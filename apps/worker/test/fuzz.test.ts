import { afterEach, describe, expect, test, vi } from 'vitest';
import { bodies, cursors, dnsAnswers, fields, resolver } from './fuzz/fuzzers.ts';

/** The fuzzers of the Worker's own parsers, in the runtime in which they are used. `npm run fuzz` runs more of them. */

afterEach(() => {
  vi.restoreAllMocks();
});

const OPTIONS = { inputs: 300, seed: 20_261_130, work: null };

const dns = dnsAnswers((answers) => {
  vi.spyOn(globalThis, 'fetch').mockImplementation(resolver(answers));
});

describe('bytes of strangers', () => {
  test.each([
    ['cursors', cursors],
    ['request bodies', async () => bodies],
    ['fields of requests', async () => fields],
    ['DNS answers', async () => dns],
  ] as const)('break no rule of %s', async (_name, make) => {
    const report = await (await make()).run(OPTIONS);
    expect(report.failure).toBeNull();
    expect(report.taken).toBeGreaterThan(0);
  });
});
