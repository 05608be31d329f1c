import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { makeApiKey, parseApiKey } from './api-key.ts';

const LOOKUP = '0123456789ab';
const SECRET = 'cdefghjkmnpqrstvwxyz0123456789abcdefghjkmnpqrstvwxyz';

const entropy = fc.uint8Array({ minLength: 40, maxLength: 40 });
const mode = fc.constantFrom('live', 'test');

describe('reading an API key', () => {
  it.each(['live', 'test'] as const)('gives mode and lookup: %s', (which) => {
    expect(parseApiKey(`pmk_${which}_${LOOKUP}_${SECRET}`)).toEqual({ mode: which, lookup: LOOKUP });
  });

  it.each([
    '',
    `pmk_prod_${LOOKUP}_${SECRET}`,
    `pmk_LIVE_${LOOKUP}_${SECRET}`,
    `pmk_live_${LOOKUP.slice(1)}_${SECRET}`,
    `pmk_live_${LOOKUP}_${SECRET.slice(1)}`,
    `pmk_live_${LOOKUP}_${SECRET}0`,
    `pmk_live_${LOOKUP}${SECRET}`,
    `pmk_live_i${LOOKUP.slice(1)}_${SECRET}`,
    `pmk_live_l${LOOKUP.slice(1)}_${SECRET}`,
    `pmk_live_o${LOOKUP.slice(1)}_${SECRET}`,
    `pmk_live_u${LOOKUP.slice(1)}_${SECRET}`,
    `pmk_live_${LOOKUP.toUpperCase()}_${SECRET}`,
    ` pmk_live_${LOOKUP}_${SECRET}`,
    `pmk_live_${LOOKUP}_${SECRET}\n`,
    `Bearer pmk_live_${LOOKUP}_${SECRET}`,
  ])('refuses another form: %j', (text) => {
    expect(parseApiKey(text)).toBeUndefined();
  });
});

describe('making an API key', () => {
  it('gives a key that reads back', () => {
    fc.assert(
      fc.property(mode, entropy, (which, bytes) => {
        const { key, lookup } = makeApiKey(which, bytes);
        expect(parseApiKey(key)).toEqual({ mode: which, lookup });
        expect(lookup).toHaveLength(12);
      }),
    );
  });

  it('uses every bit: 60 for the lookup, 256 for the secret', () => {
    fc.assert(
      fc.property(entropy, fc.nat(319), (bytes, bit) => {
        const flipped = bytes.slice();
        flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (0x80 >> (bit & 7));
        const before = makeApiKey('live', bytes);
        const after = makeApiKey('live', flipped);
        // The lookup has 60 of its 64 bits.
        expect(after.key === before.key).toBe(bit < 4);
        if (bit >= 64) expect(after.lookup).toBe(before.lookup);
      }),
    );
  });

  it('keeps a lookup that is given, so that a rotated key stays the same row', () => {
    const old = makeApiKey('test', new Uint8Array(40).fill(1));
    const rotated = makeApiKey('test', new Uint8Array(40).fill(2), old.lookup);
    expect(rotated.lookup).toBe(old.lookup);
    expect(rotated.key).not.toBe(old.key);
    expect(parseApiKey(rotated.key)).toEqual({ mode: 'test', lookup: old.lookup });
  });
});
