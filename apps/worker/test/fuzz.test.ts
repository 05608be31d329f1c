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
    ['cursors', cursors, ['invalid_request', 'cursor_expired', 'of another list']],
    ['request bodies', async () => bodies, ['invalid_request', 'JSON, and no body of any route']],
    ['fields of requests', async () => fields, []],
    ['DNS answers', async () => dns, ['no packet', 'no addresses', 'the answer is none to the question, or was cut']],
  ] as const)('break no rule of %s, and come deep into it', async (_name, make, deep) => {
    const { failure, inputs, taken, refused } = await (await make()).run(OPTIONS);
    expect(failure).toBeNull();
    expect(taken).toBeGreaterThan(0);
    expect(taken).toBeLessThan(inputs);
    expect(Object.keys(refused)).toEqual(expect.arrayContaining([...deep]));
  });
});
