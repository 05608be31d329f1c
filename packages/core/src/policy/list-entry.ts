import { parseAddress, parseDomain } from '../address/address.ts';

export const LIST_DIRECTIONS = ['receive', 'send'] as const;
export type ListDirection = (typeof LIST_DIRECTIONS)[number];

export const LIST_KINDS = ['allow', 'block'] as const;
export type ListKind = (typeof LIST_KINDS)[number];

/**
 * An entry of an allow or block list in its one spelling: an address, or `@domain` for every address of exactly that
 * domain. Undefined for anything else.
 */
export function parseListEntry(text: string): string | undefined {
  const trimmed = text.replace(/^ +| +$/g, '');
  if (trimmed.startsWith('@')) {
    const domain = parseDomain(trimmed.slice(1));
    return domain === undefined ? undefined : `@${domain}`;
  }
  const parsed = parseAddress(trimmed);
  return parsed.ok ? parsed.address : undefined;
}
