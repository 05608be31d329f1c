import { describe, expect, it } from 'vitest';
import { FUZZERS } from './parsers.ts';

const OPTIONS = { inputs: 400, seed: 20_261_130, work: null };

/** Refusals that only come from deep in a parser: noise that is refused by its first byte shows little. */
const DEEP: Record<string, readonly string[]> = {
  addresses: ['has a domain that is not a valid DNS name', 'has more than 64 octets before the @'],
  headers: ['header_not_allowed', 'invalid_request'],
  MIME: ['no sender'],
  'thread tokens': ['absent', 'invalid'],
  'signed links': ['no link', 'not ours', 'its time is over'],
  'webhook URLs': ['must be a public name', 'must not be a host of this service', 'must be a name, not an address'],
  'SNS notifications': [
    'not within its time',
    'another topic',
    'certificate from elsewhere',
    'raw delivery / no signature',
  ],
  'SES events': ['unparsable', 'unknown_type'],
  'relay exchanges': ['before the dot: rejected', 'reply: fault', 'reply: more'],
  'IP addresses': ['no address', 'blocked'],
};

describe('bytes of strangers', () => {
  it.each(FUZZERS.map((each) => [each.name, each] as const))(
    'break no rule of %s',
    async (name, each) => {
      const { failure, inputs, taken, refused } = await each.run(OPTIONS);
      expect(failure).toBeNull();
      expect(inputs).toBe(OPTIONS.inputs);
      // A fuzzer whose inputs are all refused shows little, and so does one whose inputs are all taken.
      expect(taken).toBeGreaterThan(0);
      expect(taken).toBeLessThan(inputs);
      expect(Object.keys(refused)).toEqual(expect.arrayContaining([...(DEEP[name] ?? [])]));
      // Long inputs are work for a machine that does other things too.
    },
    120_000,
  );

  it('have a fuzzer for each parser of which something is expected here', () => {
    expect(FUZZERS.map(({ name }) => name)).toEqual(expect.arrayContaining(Object.keys(DEEP)));
  });
});
