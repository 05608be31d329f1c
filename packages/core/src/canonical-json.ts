export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/**
 * Canonical JSON for fingerprints: object keys sorted by their UTF-8 bytes at every level, no white space, scalars as
 * `JSON.stringify` writes them, arrays in their order.
 *
 * It differs from RFC 8785 in one point: that standard sorts keys by UTF-16 code units, which places keys with
 * characters above U+FFFF before those in U+E000–U+FFFF.
 */
export function canonicalJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (value !== null && typeof value === 'object') {
    const members = Object.keys(value)
      .sort(compareUtf8)
      .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key] as Json)}`);
    return `{${members.join(',')}}`;
  }
  return JSON.stringify(value);
}

/** Order of two strings by their UTF-8 bytes, which is the order of their code points. */
export function compareUtf8(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x === y) continue;
    // A surrogate stands for a code point above every unit of the basic plane.
    return weight(x) - weight(y);
  }
  return a.length - b.length;
}

function weight(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}
