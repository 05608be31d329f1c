import { nextKid, type SigningPurpose, VERIFY_MS } from '@pmail/core/keys/signing.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { seal, unseal } from '@pmail/core/seal.ts';
import type { AuditEntry } from '@pmail/engine/directory/audit.ts';
import {
  addFirstSigningKey,
  readSigningKeys,
  replaceSigningKey,
  type SigningKeyRow,
} from '@pmail/engine/directory/signing-keys.ts';
import type { Db } from '@pmail/engine/sql.ts';

export interface SigningKey {
  kid: string;
  secret: Uint8Array<ArrayBuffer>;
  created_at: number;
  verify_until: number | null;
}

export interface KeyringWorld {
  db: Db;
  master_key: Uint8Array<ArrayBuffer>;
  now: () => number;
  /** What the isolate remembers the keys by: its `env`. */
  cacheKey: object;
}

type Ring = ReadonlyMap<SigningPurpose, SigningKey[]>;

interface Cached {
  ring: Ring;
  read_at: number;
  /** When the isolate last looked for a key that the ring lacks. */
  sought_at: number | null;
}

const cache = new WeakMap<object, Cached>();

/**
 * Signing keys of a purpose, the one in use first. They are read at most every five minutes per isolate.
 *
 * @param wanted a key id named by something that is to be verified. When the isolate does not know it, it looks again, at
 *   most once a minute, so that made-up ids cost nothing. Without one the answer is for signing, and has a key.
 */
export async function signingKeys(
  world: KeyringWorld,
  purpose: SigningPurpose,
  wanted?: string,
): Promise<SigningKey[]> {
  const now = world.now();
  let cached = cache.get(world.cacheKey);
  if (cached === undefined || isOlder(cached.read_at, LIMITS.keyring_cache_ms, now)) {
    cached = await refresh(world, cached?.sought_at ?? null);
  } else if (wanted !== undefined && !has(cached, purpose, wanted)) {
    if (cached.sought_at === null || isOlder(cached.sought_at, LIMITS.keyring_reread_ms, now)) {
      // Noted before the read, so that of many requests at once one looks.
      cached.sought_at = now;
      cached = await refresh(world, now);
    }
  }
  if (wanted === undefined && cached.ring.get(purpose)?.[0]?.verify_until !== null) {
    await mint(world, purpose);
    cached = await refresh(world, cached.sought_at);
  }
  return (cached.ring.get(purpose) ?? []).filter(({ verify_until: until }) => until === null || until > now);
}

/**
 * The key to sign with as the directory has it at this moment, for what nobody can make good once it has left: a link that
 * was signed with a key just revoked leads nowhere for ever.
 */
export async function signingKeyNow(world: KeyringWorld, purpose: SigningPurpose): Promise<SigningKey | undefined> {
  cache.delete(world.cacheKey);
  const [key] = await signingKeys(world, purpose);
  return key;
}

/** Older than a time, or from a future that a clock put right has taken back. */
function isOlder(at: number, ms: number, now: number): boolean {
  return now - at > ms || at > now;
}

function has({ ring }: Cached, purpose: SigningPurpose, wanted: string): boolean {
  return ring.get(purpose)?.some(({ kid }) => kid === wanted) === true;
}

async function refresh(world: KeyringWorld, soughtAt: number | null): Promise<Cached> {
  const cached = { ring: await read(world), read_at: world.now(), sought_at: soughtAt };
  cache.set(world.cacheKey, cached);
  return cached;
}

async function read({ db, master_key }: KeyringWorld): Promise<Ring> {
  const ring = new Map<SigningPurpose, SigningKey[]>();
  for (const { purpose, kid, ciphertext, created_at, verify_until } of await readSigningKeys(db)) {
    const secret = await unseal([master_key], place(purpose, kid), ciphertext);
    if (secret === undefined) continue;
    const list = ring.get(purpose) ?? [];
    list.push({ kid, secret, created_at, verify_until });
    list.sort((a, b) => (b.verify_until ?? Number.MAX_SAFE_INTEGER) - (a.verify_until ?? Number.MAX_SAFE_INTEGER));
    ring.set(purpose, list);
  }
  return ring;
}

async function mint(world: KeyringWorld, purpose: SigningPurpose): Promise<void> {
  const kid = nextKid(undefined, new Set()) ?? '';
  await addFirstSigningKey(world.db, { ...(await makeKey(world, purpose, kid, world.now())), verify_until: null });
}

async function makeKey(
  { master_key }: KeyringWorld,
  purpose: SigningPurpose,
  kid: string,
  now: number,
): Promise<Omit<SigningKeyRow, 'verify_until'>> {
  const secret = crypto.getRandomValues(new Uint8Array(32));
  const nonce = crypto.getRandomValues(new Uint8Array(12));
  const ciphertext = await seal(master_key, place(purpose, kid), secret, nonce);
  return { purpose, kid, ciphertext, created_at: now };
}

function place(purpose: SigningPurpose, kid: string): { table: string; column: string; row: string } {
  return { table: 'signing_keys', column: 'ciphertext', row: `${purpose}:${kid}` };
}

export type Rotation =
  | { kind: 'rotated'; kid: string; created_at: number; previous: { kid: string; verify_until: number } | null }
  /** Something signed may still name each of the ids there are. */
  | { kind: 'no_kid_left' }
  /** Others rotated at the same time, again and again. */
  | { kind: 'overtaken' };

/**
 * Gives a purpose a new key. The one before goes on verifying for the time of its purpose, or with `revoke` not at all.
 * Other isolates sign with the one before for as long as they remember it, which is why it verifies on.
 *
 * @param audit the entry for a change to the key of this id
 */
export async function rotateSigningKey(
  world: KeyringWorld,
  purpose: SigningPurpose,
  revoke: boolean,
  audit: (kid: string, previous: string | null) => AuditEntry,
): Promise<Rotation> {
  for (let attempt = 1; attempt <= LIMITS.directory_write_attempts_max; attempt++) {
    const now = world.now();
    // A key that is over is still remembered for a while, so its id must not yet mean another.
    const reusableBefore = now - 2 * LIMITS.keyring_cache_ms;
    const rows = (await readSigningKeys(world.db)).filter((row) => row.purpose === purpose);
    const seen = rows.find(({ verify_until: until }) => until === null);
    const taken = rows.filter(({ verify_until: until }) => until === null || until > reusableBefore);
    const kid = nextKid(seen?.kid, new Set(taken.map((row) => row.kid)));
    if (kid === undefined) return { kind: 'no_kid_left' };
    const next = await makeKey(world, purpose, kid, now);
    const previousUntil = revoke ? now : now + VERIFY_MS[purpose];
    const done = await replaceSigningKey(world.db, {
      seen,
      next,
      previous_until: previousUntil,
      end_older: revoke,
      reusable_before: reusableBefore,
      audit: audit(kid, seen?.kid ?? null),
    });
    if (!done) continue;
    cache.delete(world.cacheKey);
    const previous = seen === undefined ? null : { kid: seen.kid, verify_until: previousUntil };
    return { kind: 'rotated', kid, created_at: now, previous };
  }
  return { kind: 'overtaken' };
}
