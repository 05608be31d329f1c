import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  createIdFactory,
  derivedId,
  ID_PREFIXES,
  type IdPrefix,
  idFloor,
  idPattern,
  idTime,
  parseId,
  ulidOf,
} from './ids.ts';

const PREFIXES = Object.keys(ID_PREFIXES) as IdPrefix[];
const ULID = '01JD9Q3V7M8X2C4N6B5K1R0E9T';
const NOW = Date.UTC(2026, 10, 30);

/** Chance that always comes out the same. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

const time = fc.integer({ min: 0, max: 2 ** 48 - 1 });
const entropy = fc.uint8Array({ minLength: 10, maxLength: 10 });

describe('prefixes', () => {
  it('are those of the design', () => {
    expect(PREFIXES.toSorted().join(' ')).toBe(
      'adr att aud dlq dlv dom era evt hld idn job key msg prb req ten thr whk',
    );
  });
});

describe('making ids', () => {
  it.each(PREFIXES)('gives the form of the kind: %s', (prefix) => {
    const id = createIdFactory(seeded(1))(prefix, NOW);
    expect(id).toMatch(idPattern(prefix));
    expect(parseId(prefix, id)).toBe(id);
    expect(idTime(id)).toBe(NOW);
  });

  it('rises within one millisecond', () => {
    const make = createIdFactory(seeded(7));
    const ids = Array.from({ length: 2_000 }, () => make('msg', NOW));
    expect(ids).toEqual(ids.toSorted());
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('rises even when the clock goes back, and across kinds', () => {
    fc.assert(
      fc.property(fc.nat(1_000), fc.array(fc.integer({ min: -5_000, max: 5_000 }), { minLength: 2 }), (seed, steps) => {
        const make = createIdFactory(seeded(seed));
        const made = steps.map((step, i) => ulidOf(make(i % 2 === 0 ? 'msg' : 'evt', NOW + step)));
        expect(made).toEqual(made.toSorted());
        expect(new Set(made).size).toBe(made.length);
      }),
    );
  });

  it('is the same again from the same chance', () => {
    expect(createIdFactory(seeded(3))('msg', NOW)).toBe(createIdFactory(seeded(3))('msg', NOW));
    expect(createIdFactory(seeded(3))('msg', NOW)).not.toBe(createIdFactory(seeded(4))('msg', NOW));
  });
});

describe('reading ids', () => {
  it('takes an id of the right kind', () => {
    expect(parseId('msg', `msg_${ULID}`)).toBe(`msg_${ULID}`);
  });

  it.each([
    '',
    ULID,
    `evt_${ULID}`,
    `MSG_${ULID}`,
    `msg_${ULID.toLowerCase()}`,
    `msg_${ULID}0`,
    `msg_${ULID.slice(1)}`,
    `msg_${ULID}\n`,
    ` msg_${ULID}`,
    `msg_I${ULID.slice(1)}`,
    `msg_L${ULID.slice(1)}`,
    `msg_O${ULID.slice(1)}`,
    `msg_U${ULID.slice(1)}`,
    `msg-${ULID}`,
    `msg_${ULID}'--`,
  ])('takes nothing else: %j', (text) => {
    expect(parseId('msg', text)).toBeUndefined();
  });

  it('gives the ulid in lower case', () => {
    expect(ulidOf(`msg_${ULID}`)).toBe(ULID.toLowerCase());
  });
});

describe('the floor of a time', () => {
  it('is at or below every id of that time and later, and above every earlier one', () => {
    fc.assert(
      fc.property(time, time, entropy, (floor, at, bytes) => {
        const id = derivedId('evt', at, bytes);
        expect(id >= idFloor('evt', floor)).toBe(at >= floor);
      }),
    );
  });

  it('is well formed', () => {
    expect(parseId('evt', idFloor('evt', NOW))).toBe(idFloor('evt', NOW));
    expect(idTime(idFloor('evt', NOW))).toBe(NOW);
  });
});

describe('a derived id', () => {
  it('is the same for the same time and bytes, else another', () => {
    fc.assert(
      fc.property(time, entropy, entropy, (at, a, b) => {
        const same = a.every((byte, i) => byte === b[i]);
        expect(derivedId('evt', at, a) === derivedId('evt', at, b)).toBe(same);
        expect(derivedId('evt', at, a)).toMatch(idPattern('evt'));
        expect(idTime(derivedId('evt', at, a))).toBe(at);
      }),
    );
  });

  it('uses the first ten bytes in their order', () => {
    const bytes = Uint8Array.from({ length: 10 }, (_, i) => i * 25);
    expect(derivedId('evt', 0, bytes)).toBe(derivedId('evt', 0, new Uint8Array([...bytes, 99, 98])));
    expect(derivedId('evt', 0, new Uint8Array(10).fill(255))).toBe(`evt_${'0'.repeat(10)}${'Z'.repeat(16)}`);
    expect(derivedId('evt', 1, new Uint8Array([0, 0, 0, 0, 0, 0, 0, 0, 0, 33]))).toBe(
      `evt_${'0'.repeat(9)}1${'0'.repeat(14)}11`,
    );
  });
});
