import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson, compareUtf8, type Json } from './canonical-json.ts';
import { utf8 } from './hash.ts';

function parse(text: string): Json {
  return JSON.parse(text) as Json;
}

/** Order by UTF-8 bytes, told with the bytes themselves. */
function byBytes(a: string, b: string): number {
  const x = utf8(a);
  const y = utf8(b);
  for (let i = 0; i < Math.min(x.length, y.length); i++) {
    if (x[i] !== y[i]) return (x[i] ?? 0) - (y[i] ?? 0);
  }
  return x.length - y.length;
}

const json = fc.jsonValue({ stringUnit: 'grapheme' }) as fc.Arbitrary<Json>;

/** The same value with the members of every object in another order. */
function shuffled(value: Json): Json {
  if (Array.isArray(value)) return value.map(shuffled);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value).map(([key, member]) => [key, shuffled(member)] as const);
  const out: { [key: string]: Json } = {};
  for (const [key, member] of entries.toReversed()) {
    Object.defineProperty(out, key, { value: member, enumerable: true, writable: true, configurable: true });
  }
  return out;
}

describe('canonical JSON', () => {
  it('writes numbers, strings and literals as RFC 8785 does', () => {
    const input = String.raw`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }`;
    expect(canonicalJson(parse(input))).toBe(
      String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
    );
  });

  it.each([
    ['0', '0'],
    ['-0', '0'],
    ['1.0', '1'],
    ['1e21', '1e+21'],
    ['1e20', '100000000000000000000'],
    ['5e-324', '5e-324'],
    ['1.7976931348623157e308', '1.7976931348623157e+308'],
    ['9007199254740992', '9007199254740992'],
    ['0.1', '0.1'],
  ])('writes the number %s as %s', (input, output) => {
    expect(canonicalJson(parse(input))).toBe(output);
  });

  /** RFC 8785, appendix B: the bits of a double, and how it is written. */
  it.each([
    ['0000000000000000', '0'],
    ['8000000000000000', '0'],
    ['0000000000000001', '5e-324'],
    ['8000000000000001', '-5e-324'],
    ['7fefffffffffffff', '1.7976931348623157e+308'],
    ['ffefffffffffffff', '-1.7976931348623157e+308'],
    ['4340000000000000', '9007199254740992'],
    ['c340000000000000', '-9007199254740992'],
    ['4430000000000000', '295147905179352830000'],
    ['44b52d02c7e14af5', '9.999999999999997e+22'],
    ['44b52d02c7e14af6', '1e+23'],
    ['44b52d02c7e14af7', '1.0000000000000001e+23'],
    ['444b1ae4d6e2ef4e', '999999999999999700000'],
    ['444b1ae4d6e2ef4f', '999999999999999900000'],
    ['444b1ae4d6e2ef50', '1e+21'],
    ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
    ['3eb0c6f7a0b5ed8d', '0.000001'],
    ['41b3de4355555553', '333333333.3333332'],
    ['41b3de4355555554', '333333333.33333325'],
    ['41b3de4355555555', '333333333.3333333'],
    ['41b3de4355555556', '333333333.3333334'],
    ['41b3de4355555557', '333333333.33333343'],
    ['becbf647612f3696', '-0.0000033333333333333333'],
    ['43143ff3c1cb0959', '1424953923781206.2'],
  ])('writes the double %s as RFC 8785 does: %s', (bits, written) => {
    const view = new DataView(new ArrayBuffer(8));
    view.setBigUint64(0, BigInt(`0x${bits}`));
    expect(canonicalJson(view.getFloat64(0))).toBe(written);
    expect(canonicalJson(parse(written))).toBe(written);
  });

  it('orders the members of the example of RFC 8785 as it does, where all keys are of the basic plane', () => {
    const input = String.raw`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`;
    expect(canonicalJson(parse(input))).toBe(
      String.raw`{"\r":"Carriage Return","1":"One",` +
        '"\u0080":"Control","ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign","\ufb33":"Hebrew Letter Dalet With Dagesh"}',
    );
  });

  it('sorts keys at every level, also those that look like numbers', () => {
    expect(canonicalJson(parse('{"b":{"2":1,"10":2,"a":[{"y":1,"x":2}]},"a":0,"":1}'))).toBe(
      '{"":1,"a":0,"b":{"10":2,"2":1,"a":[{"x":2,"y":1}]}}',
    );
  });

  it('differs from RFC 8785 in one point: keys sort by UTF-8 bytes, not by UTF-16 units', () => {
    const keys = ['€', '\r', '\ufb33', '1', '😀', '\u0080', 'ö'];
    const input = Object.fromEntries(keys.map((key) => [key, 0]));
    const ours = ['\r', '1', '\u0080', 'ö', '€', '\ufb33', '😀'];
    const rfc8785 = ['\r', '1', '\u0080', 'ö', '€', '😀', '\ufb33'];
    expect(canonicalJson(input)).toBe(`{${ours.map((key) => `${JSON.stringify(key)}:0`).join(',')}}`);
    expect(keys.toSorted()).toEqual(rfc8785);
  });

  it('keeps a member named __proto__', () => {
    expect(canonicalJson(parse('{"a":1,"__proto__":{"b":2}}'))).toBe('{"__proto__":{"b":2},"a":1}');
  });

  it('writes half a character as an escape', () => {
    expect(canonicalJson('\ud83d')).toBe(String.raw`"\ud83d"`);
  });

  it('says the same as JSON: parsing gives the value back', () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(parse(canonicalJson(value))).toEqual(parse(JSON.stringify(value)));
      }),
    );
  });

  it('is the same for any order of keys and any white space', () => {
    fc.assert(
      fc.property(json, fc.constantFrom(0, 2, '\t'), (value, space) => {
        const once = canonicalJson(value);
        expect(canonicalJson(shuffled(value))).toBe(once);
        expect(canonicalJson(parse(JSON.stringify(shuffled(value), null, space)))).toBe(once);
        expect(canonicalJson(parse(once))).toBe(once);
      }),
    );
  });

  it('is different for different values', () => {
    fc.assert(
      fc.property(json, json, (a, b) => {
        const same = JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
        expect(canonicalJson(a) === canonicalJson(b)).toBe(same);
      }),
    );
  });
});

describe('one change anywhere in a value', () => {
  /** The value with the node at a path (a step is an index into keys or elements) put through `change`. */
  function changedAt(value: Json, path: number[], change: (node: Json) => Json): Json {
    const [step, ...rest] = path;
    if (step === undefined || value === null || typeof value !== 'object') return change(value);
    const keys = Object.keys(value);
    const key = keys[step % Math.max(1, keys.length)];
    if (key === undefined) return change(value);
    const inner = changedAt((value as { [key: string]: Json })[key] as Json, rest, change);
    if (Array.isArray(value)) return value.with(Number(key), inner);
    return withMember(value, key, inner);
  }

  function withMember(value: { [key: string]: Json }, key: string, member: Json): Json {
    const out: { [key: string]: Json } = {};
    for (const [name, old] of [...Object.entries(value), [key, member] as const]) {
      const set = name === key ? member : old;
      Object.defineProperty(out, name, { value: set, enumerable: true, writable: true, configurable: true });
    }
    return out;
  }

  /** Small changes, each of which makes another value of any node. */
  const CHANGES: ((node: Json) => Json)[] = [
    (node) => (typeof node === 'string' ? `${node} ` : 'x'),
    (node) => (typeof node === 'string' ? `\u0000${node}` : null),
    (node) => (typeof node === 'number' ? node + 1 || 1 : 0.1),
    (node) => (node === null ? 'null' : null),
    (node) => node !== true,
    (node) => [node],
    (node) => ({ '': node }),
    (node) => (Array.isArray(node) ? [...node, null] : []),
    (node) => (Array.isArray(node) && node.length > 0 ? node.slice(1) : [node, node]),
    (node) => (node !== null && typeof node === 'object' && !Array.isArray(node) ? withMember(node, '__new__', 1) : {}),
    (node) => JSON.stringify(node),
  ];

  it('changes what is written, and only changes nothing when it changed nothing', () => {
    fc.assert(
      fc.property(json, fc.array(fc.nat(5), { maxLength: 5 }), fc.constantFrom(...CHANGES), (value, path, change) => {
        let differs = false;
        const other = changedAt(value, path, (node) => {
          const changed = change(node);
          differs = JSON.stringify(sorted(changed)) !== JSON.stringify(sorted(node));
          return changed;
        });
        expect(canonicalJson(other) !== canonicalJson(value)).toBe(differs);
      }),
      { numRuns: 2_000 },
    );
  });
});

/** A value with objects as sorted lists of members, to compare two values without the code under test. */
function sorted(value: Json): unknown {
  if (Array.isArray(value)) return ['list', ...value.map(sorted)];
  if (value === null || typeof value !== 'object') return value;
  return [
    'object',
    ...Object.keys(value)
      .toSorted()
      .map((key) => [key, sorted(value[key] as Json)]),
  ];
}

describe('the order of keys', () => {
  it('is that of their UTF-8 bytes', () => {
    const text = fc.string({
      unit: fc.oneof(
        fc.constantFrom('a', 'é', '\ue000', '\uffff', '😀', '\u{10000}', '\u{10fffe}', '\u{10ffff}'),
        fc.string(),
      ),
    });
    const wellFormed = text.map((value) => value.toWellFormed());
    fc.assert(
      fc.property(wellFormed, wellFormed, (a, b) => {
        expect(Math.sign(compareUtf8(a, b))).toBe(Math.sign(byBytes(a, b)));
      }),
    );
  });

  it('places characters above the basic plane behind all of it', () => {
    for (const high of ['\u{10000}', '\u{103ff}', '\u{10fc00}', '\u{10ffff}']) {
      expect(compareUtf8('\uffff', high)).toBeLessThan(0);
      expect(compareUtf8('\ue000', high)).toBeLessThan(0);
    }
    expect(compareUtf8('\u{10fffe}', '\u{10ffff}')).toBeLessThan(0);
  });

  it('is a total order, also with broken text', () => {
    const text = fc.string({ unit: fc.constantFrom('a', '\ud800', '\udc00', '\ue000') });
    fc.assert(
      fc.property(text, text, text, (a, b, c) => {
        expect(compareUtf8(a, b) === 0).toBe(a === b);
        expect(Math.sign(compareUtf8(a, b))).toBe(-Math.sign(compareUtf8(b, a)) + 0);
        if (compareUtf8(a, b) <= 0 && compareUtf8(b, c) <= 0) expect(compareUtf8(a, c)).toBeLessThanOrEqual(0);
      }),
    );
  });
});
