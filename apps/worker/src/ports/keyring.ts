import { seal, unseal } from '@pmail/core/seal.ts';
import { addFirstSigningKey, readSigningKeys, type SigningPurpose } from '@pmail/engine/directory/signing-keys.ts';
import type { Db } from '@pmail/engine/sql.ts';

export interface SigningKey {
  kid: string;
  secret: Uint8Array<ArrayBuffer>;
  verify_until: number | null;
}

const CACHE_MS = 5 * 60_000;
const REREAD_MS = 60_000;
const KIDS = '0123456789abcdefghjkmnpqrstvwxyz';

interface Cached {
  keys: Map<SigningPurpose, SigningKey[]>;
  read_at: number;
}

const cache = new WeakMap<object, Cached>();

/**
 * Signing keys of a purpose, the one in use first. Read at most every five minutes per isolate; `wanted` is a key id
 * seen in something signed, for which an unknown one makes it look again, at most once a minute.
 */
export async function signingKeys(
  world: { db: Db; master_key: Uint8Array<ArrayBuffer>; now: () => number; cacheKey: object },
  purpose: SigningPurpose,
  wanted?: string,
): Promise<SigningKey[]> {
  const now = world.now();
  let cached = cache.get(world.cacheKey);
  const known = cached?.keys.get(purpose);
  const missing = wanted !== undefined && known?.every(({ kid }) => kid !== wanted) === true;
  const age = cached === undefined ? Number.POSITIVE_INFINITY : now - cached.read_at;
  if (cached === undefined || known === undefined || age > CACHE_MS || (missing && age > REREAD_MS)) {
    cached = { keys: await read(world), read_at: now };
    if (!cached.keys.has(purpose)) {
      await mint(world, purpose);
      cached = { keys: await read(world), read_at: now };
    }
    cache.set(world.cacheKey, cached);
  }
  return (cached.keys.get(purpose) ?? []).filter(({ verify_until: until }) => until === null || until > now);
}

async function read(world: {
  db: Db;
  master_key: Uint8Array<ArrayBuffer>;
}): Promise<Map<SigningPurpose, SigningKey[]>> {
  const keys = new Map<SigningPurpose, SigningKey[]>();
  for (const row of await readSigningKeys(world.db)) {
    const secret = await unseal([world.master_key], place(row.purpose, row.kid), row.ciphertext);
    if (secret === undefined) continue;
    const list = keys.get(row.purpose) ?? [];
    list.push({ kid: row.kid, secret, verify_until: row.verify_until });
    list.sort((a, b) => (b.verify_until ?? Number.MAX_SAFE_INTEGER) - (a.verify_until ?? Number.MAX_SAFE_INTEGER));
    keys.set(row.purpose, list);
  }
  return keys;
}

async function mint(
  world: { db: Db; master_key: Uint8Array<ArrayBuffer>; now: () => number },
  purpose: SigningPurpose,
): Promise<void> {
  const [kid = '0'] = KIDS;
  const secret = crypto.getRandomValues(new Uint8Array(32));
  const nonce = crypto.getRandomValues(new Uint8Array(12));
  const ciphertext = await seal(world.master_key, place(purpose, kid), secret, nonce);
  await addFirstSigningKey(world.db, { purpose, kid, ciphertext, created_at: world.now(), verify_until: null });
}

function place(purpose: SigningPurpose, kid: string): { table: string; column: string; row: string } {
  return { table: 'signing_keys', column: 'ciphertext', row: `${purpose}:${kid}` };
}
