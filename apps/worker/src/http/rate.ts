import { toHex } from '@pmail/core/hash.ts';
import { ok, type Result, refuse } from '@pmail/core/result.ts';
import type { Config, Env } from '../env.ts';
import { hmac } from '../ports/secrets.ts';

/** Requests per 60 seconds, as wrangler.toml sets them; shown to callers as the tightest that applied. */
const LIMIT_OF = { key: 600, tenant: 1_800, send: 120 } as const;

type Bucket = keyof typeof LIMIT_OF;

/** A bucket and whose it is. */
export interface Counted {
  bucket: Bucket;
  key: string;
}

const BINDING = { key: 'RL_API', tenant: 'RL_TENANT', send: 'RL_SEND' } as const;

/** The lowest limit among the buckets a request counts in. */
export function tightest(buckets: readonly Pick<Counted, 'bucket'>[]): number {
  return Math.min(...buckets.map(({ bucket }) => LIMIT_OF[bucket]));
}

/** Counts the request in every bucket; the first one that is full refuses it. */
export async function countRequest(env: Env, keys: Counted[], now: number): Promise<Result<null>> {
  const outcomes = await Promise.all(keys.map(({ bucket, key }) => env[BINDING[bucket]].limit({ key })));
  const full = keys.find((_key, index) => outcomes[index]?.success === false);
  return full === undefined ? ok(null) : refuse('rate_limited', { retry_after: secondsLeft(now), bucket: full.bucket });
}

/** Seconds until the minute is over. */
export function secondsLeft(now: number): number {
  return 60 - (Math.floor(now / 1_000) % 60);
}

/** Counts a failed authentication against the caller's network address, which is kept only as a keyed hash. */
export async function countFailure(env: Env, config: Config, headers: Headers, now: number): Promise<Result<null>> {
  const ip = headers.get('cf-connecting-ip') ?? '';
  const name = toHex((await hmac(config.hash_key, ip)).subarray(0, 8));
  return countRequest(env, [{ bucket: 'key', key: `anon:${name}` }], now);
}
