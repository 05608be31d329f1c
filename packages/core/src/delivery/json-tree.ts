import { type Address, parseAddress } from '../address/address.ts';

/** Reading what providers send as JSON: anything may be missing or of another type, and then it counts as absent. */

export type Tree = Record<string, unknown>;

export function tree(value: unknown): Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Tree) : {};
}

export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Text, or a number as text; nothing for what is empty. */
export function text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : typeof value === 'number' ? String(value) : null;
}

/** The address in `Name <a@b>`, `<a@b>` or `a@b`, in the form in which it is stored. */
export function addressIn(value: unknown): Address | null {
  const given = text(value);
  if (given === null) return null;
  // A quoted name may hold brackets of its own, so the last pair counts.
  const bracketed = /<([^<>]*)>[^<>]*$/.exec(given)?.[1];
  const parsed = parseAddress((bracketed ?? given).trim());
  return parsed.ok ? parsed.address : null;
}
