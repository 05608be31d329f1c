import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { utf8Length } from '../hash.ts';
import { buildReferences } from './references.ts';

function ids(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${i}@example.net`);
}

function written(list: string[]): number {
  return utf8Length(list.map((id) => `<${id}>`).join(' '));
}

function build(id: string, references: string[] = [], in_reply_to: string | null = null): string[] {
  return buildReferences({ id, references, in_reply_to });
}

describe('References of an answer', () => {
  it('are those of the message answered, then that message', () => {
    expect(build('c@x', ['a@x', 'b@x'], 'b@x')).toEqual(['a@x', 'b@x', 'c@x']);
  });

  it('take its In-Reply-To where it has no References', () => {
    expect(build('b@x', [], 'a@x')).toEqual(['a@x', 'b@x']);
    expect(build('c@x', ['a@x'], 'z@x')).toEqual(['a@x', 'c@x']);
  });

  it('are only the message itself when it starts the thread', () => {
    expect(build('a@x')).toEqual(['a@x']);
  });

  it('name each id once, where it stands last', () => {
    expect(build('c@x', ['a@x', 'b@x', 'a@x'])).toEqual(['b@x', 'a@x', 'c@x']);
    expect(build('a@x', ['a@x', 'b@x'])).toEqual(['b@x', 'a@x']);
    expect(build('a@x', [], 'a@x')).toEqual(['a@x']);
  });

  it('are at most 20: the first and the 19 newest', () => {
    expect(build('last@x', ids(19))).toEqual([...ids(19), 'last@x']);
    expect(build('last@x', ids(20))).toEqual(['0@example.net', ...ids(20).slice(2), 'last@x']);
    expect(build('last@x', ids(200))).toEqual(['0@example.net', ...ids(200).slice(-18), 'last@x']);
  });

  it('have at most 2,048 bytes as written: those after the first go, oldest first', () => {
    const long = Array.from({ length: 6 }, (_, i) => `${i}${'x'.repeat(400)}@example.net`);
    const list = build('last@x', long);
    expect(list).toEqual([long[0], ...long.slice(-3), 'last@x']);
    expect(written(list)).toBeLessThanOrEqual(2_048);
    expect(written([...long.slice(0, 1), ...long.slice(-4), 'last@x'])).toBeGreaterThan(2_048);
  });

  it('use the space up to the last byte', () => {
    // Four ids of 509 bytes with brackets, and three blanks: 2,047.
    const exact = Array.from({ length: 4 }, (_, i) => `${i}${'x'.repeat(508)}`);
    expect(written(exact)).toBe(4 * 511 + 3);
    expect(build(exact[3] ?? '', exact.slice(0, 3))).toEqual(exact);
    const oneMore = [...exact.slice(0, 3), `${exact[3]}x`];
    expect(written(oneMore)).toBe(2_048);
    expect(build(oneMore[3] ?? '', oneMore.slice(0, 3))).toEqual(oneMore);
    const tooMuch = [...exact.slice(0, 3), `${exact[3]}xx`];
    expect(build(tooMuch[3] ?? '', tooMuch.slice(0, 3))).toEqual([tooMuch[0], tooMuch[2], tooMuch[3]]);
  });

  it('count bytes, not characters', () => {
    const wide = Array.from({ length: 3 }, (_, i) => `${i}${'é'.repeat(400)}@example.net`);
    expect(written(build('last@x', wide))).toBeLessThanOrEqual(2_048);
    expect(build('last@x', wide)).toEqual([wide[0], wide[2], 'last@x']);
  });

  it('keep the message answered when two ids are too long together, and are empty when it alone is', () => {
    const huge = 'x'.repeat(1_500);
    expect(build('last@x', [huge])).toEqual([huge, 'last@x']);
    expect(build(huge, [`y${huge}`])).toEqual([huge]);
    expect(build('x'.repeat(2_046))).toEqual(['x'.repeat(2_046)]);
    expect(build('x'.repeat(2_047))).toEqual([]);
  });

  it('never exceed either bound, whatever ids come in', () => {
    const id = fc
      .tuple(fc.nat(60), fc.constantFrom('x', 'é', '中', '😀'), fc.integer({ min: 0, max: 3_000 }))
      .map(([n, unit, size]) => `${n}${unit.repeat(size)}`);
    fc.assert(
      fc.property(fc.array(id, { maxLength: 250 }), id, fc.option(id), (references, parent, in_reply_to) => {
        const list = build(parent, references, in_reply_to);
        expect(list.length).toBeLessThanOrEqual(20);
        expect(written(list)).toBeLessThanOrEqual(2_048);
        // Nothing stands behind the message answered, and only one that fits nowhere is not named.
        if (list.length > 0) expect(list.at(-1)).toBe(parent);
        else expect(written([parent])).toBeGreaterThan(2_048);
      }),
    );
  });

  it('always stay within the bounds, and keep first and parent while ids are of legal length', () => {
    const id = fc.tuple(fc.nat(60), fc.integer({ min: 1, max: 900 })).map(([n, size]) => `${n}@${'x'.repeat(size)}`);
    fc.assert(
      fc.property(fc.array(id, { maxLength: 60 }), id, fc.option(id), (references, parent, in_reply_to) => {
        const list = build(parent, references, in_reply_to);
        expect(list.length).toBeLessThanOrEqual(20);
        expect(written(list)).toBeLessThanOrEqual(2_048);
        expect(new Set(list).size).toBe(list.length);
        expect(list.at(-1)).toBe(parent);
        const before = references.length > 0 ? references : in_reply_to === null ? [] : [in_reply_to];
        const all = [...before, parent];
        const distinct = all.filter((entry, i) => !all.slice(i + 1).includes(entry));
        expect(list[0]).toBe(distinct[0]);
        // What is left stands in the order it had, and only the middle loses entries.
        expect(distinct.filter((entry) => list.includes(entry))).toEqual(list);
        expect(list.slice(1)).toEqual(distinct.slice(1).slice(-(list.length - 1) || distinct.length));
      }),
    );
  });
});
