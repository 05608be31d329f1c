/**
 * Addresses that a request made on somebody else's word must not reach: private, local, documentation and other special
 * ranges (IANA special-purpose registries), and IPv6 forms that carry an IPv4 address inside.
 */

/** Address as its bytes: four or sixteen. */
export type IpBytes = readonly number[];

const V4_BLOCKED: readonly [string, number][] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
];

const V6_BLOCKED: readonly [string, number][] = [
  // The unspecified and the loopback address, and IPv4-compatible ones, which nobody has used for decades.
  ['::', 96],
  // NAT64 of a local network (RFC 8215), where each network chooses at which bytes the IPv4 address stands.
  ['64:ff9b:1::', 48],
  ['100::', 64],
  ['2001::', 23],
  ['2001:db8::', 32],
  ['3fff::', 20],
  ['5f00::', 16],
  ['fc00::', 7],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
];

/** Prefixes behind which an IPv4 address stands, and where it begins. */
const V6_EMBEDDING: readonly [string, number, number][] = [
  ['::ffff:0:0', 96, 12],
  ['64:ff9b::', 96, 12],
  ['2002::', 16, 2],
];

/** Dotted IPv4 as resolvers write it: four decimal numbers without leading zeros. */
export function parseIpv4(text: string): IpBytes | undefined {
  const parts = text.split('.');
  if (parts.length !== 4) return undefined;
  const bytes = parts.map((part) => (/^(?:0|[1-9]\d{0,2})$/.test(part) ? Number(part) : 256));
  return bytes.every((byte) => byte <= 255) ? bytes : undefined;
}

/** IPv6 in any of the forms of RFC 4291 section 2.2, without zone and brackets. */
export function parseIpv6(text: string): IpBytes | undefined {
  const halves = text.split('::');
  if (halves.length > 2) return undefined;
  const [head = '', tail] = halves;
  const first = groups(head, tail === undefined);
  const last = tail === undefined ? [] : groups(tail, true);
  if (first === undefined || last === undefined) return undefined;
  const missing = 16 - first.length - last.length;
  if (tail === undefined ? missing !== 0 : missing < 2) return undefined;
  return [...first, ...Array.from({ length: missing }, () => 0), ...last];
}

function groups(text: string, mayEndInIpv4: boolean): number[] | undefined {
  if (text === '') return [];
  const parts = text.split(':');
  const bytes: number[] = [];
  for (const [index, part] of parts.entries()) {
    if (part.includes('.')) {
      const embedded = mayEndInIpv4 && index === parts.length - 1 ? parseIpv4(part) : undefined;
      if (embedded === undefined) return undefined;
      bytes.push(...embedded);
      continue;
    }
    if (!/^[0-9a-f]{1,4}$/i.test(part)) return undefined;
    const value = Number.parseInt(part, 16);
    bytes.push(value >> 8, value & 0xff);
  }
  return bytes;
}

function within(address: IpBytes, prefix: IpBytes, bits: number): boolean {
  for (let bit = 0; bit < bits; bit += 8) {
    const index = bit / 8;
    const mask = bits - bit >= 8 ? 0xff : (0xff << (8 - (bits - bit))) & 0xff;
    if (((address[index] ?? 0) & mask) !== ((prefix[index] ?? 0) & mask)) return false;
  }
  return true;
}

function table(ranges: readonly [string, number][], parse: (text: string) => IpBytes | undefined): [IpBytes, number][] {
  return ranges.map(([text, bits]) => [parse(text) ?? [], bits]);
}

const V4 = table(V4_BLOCKED, parseIpv4);
const V6 = table(V6_BLOCKED, parseIpv6);
const EMBEDDING = V6_EMBEDDING.map(([text, bits, at]) => ({ prefix: parseIpv6(text) ?? [], bits, at }));

function isBlockedV4(address: IpBytes): boolean {
  return V4.some(([prefix, bits]) => within(address, prefix, bits));
}

/** Whether an address must not be reached. What is no address at all must not either. */
export function isBlockedAddress(text: string): boolean {
  const address = parseIpv4(text) ?? parseIpv6(text);
  if (address === undefined) return true;
  if (address.length === 4) return isBlockedV4(address);
  for (const { prefix, bits, at } of EMBEDDING) {
    if (!within(address, prefix, bits)) continue;
    return isBlockedV4(address.slice(at, at + 4));
  }
  return V6.some(([prefix, bits]) => within(address, prefix, bits));
}
