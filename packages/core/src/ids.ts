import { monotonicFactory } from 'ulid';

/** What each prefix stands for; the id format is `{prefix}_{ULID}` (contracts, section "Names and IDs"). */
export const ID_PREFIXES = {
  ten: 'tenant',
  idn: 'identity',
  adr: 'address',
  dom: 'domain',
  thr: 'thread',
  msg: 'message',
  att: 'attachment',
  whk: 'webhook endpoint',
  dlv: 'webhook delivery',
  evt: 'event',
  key: 'API key',
  era: 'erasure request',
  job: 'job',
  aud: 'audit entry',
  req: 'request',
  dlq: 'dead letter',
  hld: 'quota hold',
  prb: 'alignment probe',
} as const;

export type IdPrefix = keyof typeof ID_PREFIXES;

/** An id of one kind. The prefix is part of the type, so an identity id does not pass where a message id is due. */
export type Id<P extends IdPrefix> = `${P}_${string}`;
export type TenantId = Id<'ten'>;
export type IdentityId = Id<'idn'>;
export type MessageId = Id<'msg'>;
export type ThreadId = Id<'thr'>;
export type EventId = Id<'evt'>;
export type KeyId = Id<'key'>;
export type RequestId = Id<'req'>;
export type AttachmentId = Id<'att'>;
export type AddressId = Id<'adr'>;
export type DomainId = Id<'dom'>;

/** Crockford's base32, the alphabet of ULIDs. */
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

const ULID = '[0-9A-HJKMNP-TV-Z]{26}';

/** The pattern an id of this kind must match, for schemas and documentation. */
export function idPattern(prefix: IdPrefix): RegExp {
  return new RegExp(`^${prefix}_${ULID}$`);
}

const PATTERNS = new Map<IdPrefix, RegExp>();

/** Narrows a string to an id of one kind; anything malformed is `undefined`, which callers treat as "not found". */
export function parseId<P extends IdPrefix>(prefix: P, value: string): Id<P> | undefined {
  let pattern = PATTERNS.get(prefix);
  if (pattern === undefined) {
    pattern = idPattern(prefix);
    PATTERNS.set(prefix, pattern);
  }
  return pattern.test(value) ? (value as Id<P>) : undefined;
}

/** Makes ids; rising within one factory even inside the same millisecond. */
export type IdFactory = <P extends IdPrefix>(prefix: P, now: number) => Id<P>;

/**
 * @param random returns a number in [0, 1), the only source of chance
 */
export function createIdFactory(random: () => number): IdFactory {
  const ulid = monotonicFactory(random);
  return (prefix, now) => `${prefix}_${ulid(now)}`;
}

/** The lower-case ULID of an id, used in Message-IDs and provider ids. */
export function ulidOf(id: string): string {
  return id.slice(id.indexOf('_') + 1).toLowerCase();
}

/** The id of a kind whose ULID a text is, in either case; undefined when it is none. The inverse of `ulidOf`. */
export function asId<P extends IdPrefix>(prefix: P, ulid: string): Id<P> | undefined {
  return parseId(prefix, `${prefix}_${ulid.toUpperCase()}`);
}

/** Unix ms encoded in an id's ULID; the id must be well formed. */
export function idTime(id: string): number {
  let time = 0;
  const start = id.indexOf('_') + 1;
  for (const char of id.slice(start, start + 10)) time = time * 32 + ALPHABET.indexOf(char);
  return time;
}

/** The smallest id of a kind that any id made at `time` (Unix ms) or later can have; a lower bound for key ranges. */
export function idFloor<P extends IdPrefix>(prefix: P, time: number): Id<P> {
  return `${prefix}_${encodeTime(time)}${'0'.repeat(16)}`;
}

/**
 * An id that follows from what it stands for, so that making it again gives the same one.
 *
 * @param entropy 10 bytes in place of chance, such as the start of a MAC
 */
export function derivedId<P extends IdPrefix>(prefix: P, time: number, entropy: Uint8Array): Id<P> {
  let bits = 0n;
  for (const byte of entropy.subarray(0, 10)) bits = (bits << 8n) | BigInt(byte);
  let encoded = '';
  for (let i = 0; i < 16; i++) {
    encoded = ALPHABET[Number(bits & 31n)] + encoded;
    bits >>= 5n;
  }
  return `${prefix}_${encodeTime(time)}${encoded}`;
}

function encodeTime(time: number): string {
  let rest = Math.max(0, Math.floor(time));
  let encoded = '';
  for (let i = 0; i < 10; i++) {
    encoded = ALPHABET[rest % 32] + encoded;
    rest = Math.floor(rest / 32);
  }
  return encoded;
}
