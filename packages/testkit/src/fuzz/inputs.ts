import fc from 'fast-check';

/** Inputs as strangers send them: valid ones, valid ones that were spoiled, and noise. */

type Spoil = (text: string) => string;

/** @param words what means something to the parser, to be put where it does not belong */
export function foreignText(examples: readonly string[], words: readonly string[]): fc.Arbitrary<string> {
  const example = fc.constantFrom(...examples);
  const piece = fc.oneof(
    fc.constantFrom(...words, '', ' ', '\r\n', '\n', '\0', '\ud800', '\u202e', 'é', '%00', '\ufeff'),
    fc.string({ unit: 'binary', maxLength: 12 }),
    fc.string({ unit: 'grapheme-ascii', maxLength: 40 }),
  );
  const ratio = fc.double({ min: 0, max: 1, noNaN: true });
  const spoil: fc.Arbitrary<Spoil> = fc.oneof(
    fc.tuple(ratio, piece).map(
      ([at, text]): Spoil =>
        (old) =>
          insert(old, at, text),
    ),
    fc.tuple(ratio, ratio).map(
      ([a, b]): Spoil =>
        (old) =>
          cut(old, a, b),
    ),
    fc.tuple(ratio, ratio, fc.integer({ min: 2, max: 40 })).map(
      ([a, b, n]): Spoil =>
        (old) =>
          repeat(old, a, b, n),
    ),
    fc.tuple(ratio, ratio, example).map(
      ([a, b, other]): Spoil =>
        (old) =>
          splice(old, a, other, b),
    ),
    fc.tuple(ratio, fc.nat(0xffff)).map(
      ([at, unit]): Spoil =>
        (old) =>
          replace(old, at, String.fromCharCode(unit)),
    ),
    // With a character of its own it stays of one alphabet, and comes past what only looks at that.
    fc.tuple(ratio, ratio).map(
      ([at, from]): Spoil =>
        (old) =>
          replace(old, at, old.charAt(place(old, from))),
    ),
  );
  const spoiled = fc
    .tuple(example, fc.array(spoil, { maxLength: 5 }))
    .map(([text, spoils]) => spoils.reduce((old, change) => change(old), text));
  const noise = fc.array(piece, { maxLength: 30 }).map((parts) => parts.join(''));
  // Long runs of one thing are what makes a parser slow.
  const run = fc
    .tuple(piece, fc.integer({ min: 100, max: 20_000 }), example)
    .map(([text, n, rest]) => (text.slice(0, 8) || 'x').repeat(n).slice(0, RUN_MAX) + rest);
  return fc.oneof({ arbitrary: spoiled, weight: 12 }, { arbitrary: noise, weight: 4 }, { arbitrary: run, weight: 1 });
}

const RUN_MAX = 60_000;

/** The same as bytes, of which some are no UTF-8. */
export function foreignBytes(examples: readonly string[], words: readonly string[]): fc.Arbitrary<Uint8Array> {
  const text = foreignText(examples, words);
  return fc.oneof(
    { arbitrary: text.map((value) => new Uint8Array(Buffer.from(value, 'utf8'))), weight: 5 },
    { arbitrary: text.map((value) => new Uint8Array(Buffer.from(value, 'latin1'))), weight: 3 },
    { arbitrary: fc.uint8Array({ maxLength: 400 }), weight: 1 },
  );
}

/** JSON of somebody else's making: an example in which values were replaced, moved or taken away. */
export function foreignJson(examples: readonly unknown[], words: readonly string[]): fc.Arbitrary<unknown> {
  const odd = fc.oneof(
    fc.constantFrom<unknown>(null, true, 0, -1, 1e308, '', [], {}, [[]], { __proto__: null }, '\ud800', ...words),
    fc.string({ unit: 'binary', maxLength: 20 }),
    fc.jsonValue({ maxDepth: 2 }),
  );
  const change = fc.record({ at: fc.nat(200), how: fc.constantFrom('replace', 'drop', 'wrap', 'copy'), value: odd });
  return fc.oneof(
    {
      arbitrary: fc
        .tuple(fc.constantFrom(...examples), fc.array(change, { maxLength: 4 }))
        .map(([example, changes]) => changes.reduce<unknown>((tree, edit) => edited(tree, edit), clone(example))),
      weight: 8,
    },
    { arbitrary: odd, weight: 1 },
  );
}

function edited(tree: unknown, edit: { at: number; how: string; value: unknown }): unknown {
  const places: { holder: Record<string, unknown>; key: string }[] = [];
  const visit = (node: unknown): void => {
    if (node === null || typeof node !== 'object') return;
    for (const key of Object.keys(node)) {
      places.push({ holder: node as Record<string, unknown>, key });
      visit((node as Record<string, unknown>)[key]);
    }
  };
  const copy = clone(tree);
  visit(copy);
  const place = places[edit.at % Math.max(1, places.length)];
  if (place === undefined) return edit.value;
  const { holder, key } = place;
  if (edit.how === 'drop') delete holder[key];
  else if (edit.how === 'wrap') holder[key] = [holder[key], edit.value];
  else if (edit.how === 'copy') holder[`${key}2`] = clone(holder[key]);
  else holder[key] = clone(edit.value);
  return copy;
}

function clone(value: unknown): unknown {
  return value === undefined ? undefined : structuredClone(value);
}

function place(text: string, ratio: number): number {
  return Math.floor(ratio * text.length);
}

function insert(text: string, ratio: number, piece: string): string {
  const at = place(text, ratio);
  return text.slice(0, at) + piece + text.slice(at);
}

function cut(text: string, a: number, b: number): string {
  const [from = 0, to = 0] = [place(text, a), place(text, b)].sort((x, y) => x - y);
  return text.slice(0, from) + text.slice(to);
}

function repeat(text: string, a: number, b: number, n: number): string {
  const [from = 0, to = 0] = [place(text, a), place(text, b)].sort((x, y) => x - y);
  return text.slice(0, to) + text.slice(from, Math.min(to, from + 200)).repeat(n) + text.slice(to);
}

function splice(text: string, a: number, other: string, b: number): string {
  return text.slice(0, place(text, a)) + other.slice(place(other, b));
}

function replace(text: string, ratio: number, char: string): string {
  const at = place(text, ratio);
  return text.slice(0, at) + char + text.slice(at + 1);
}
