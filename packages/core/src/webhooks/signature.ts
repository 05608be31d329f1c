import { concatBytes, fromBase64, hmacSha256, toBase64, utf8 } from '../hash.ts';

/**
 * Signatures of Standard Webhooks 1.0: HMAC-SHA256 over `{id}.{timestamp}.{body}` with the secret's bytes. The body is
 * signed as the very bytes that are sent.
 */

const SECRET_PREFIX = 'whsec_';
const SECRET_BYTES = 32;

/** @param random 32 random bytes */
export function webhookSecret(random: Uint8Array): string {
  if (random.length !== SECRET_BYTES) throw new Error('a webhook secret has 32 bytes');
  return `${SECRET_PREFIX}${toBase64(random)}`;
}

export interface SignatureHeaders {
  'webhook-id': string;
  'webhook-timestamp': string;
  'webhook-signature': string;
}

/**
 * @param secrets as given to the receiver; during a rotation two, the new one first
 * @param now Unix ms of the attempt
 */
export async function signWebhook(
  secrets: readonly string[],
  id: string,
  now: number,
  body: Uint8Array<ArrayBuffer>,
): Promise<SignatureHeaders> {
  const timestamp = String(Math.floor(now / 1_000));
  const signed = concatBytes(utf8(`${id}.${timestamp}.`), body);
  const values = await Promise.all(
    secrets.map(async (secret) => {
      const key = secret.startsWith(SECRET_PREFIX) ? fromBase64(secret.slice(SECRET_PREFIX.length)) : undefined;
      if (key === undefined) throw new Error('not a webhook secret');
      return `v1,${toBase64(await hmacSha256(key, signed))}`;
    }),
  );
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': values.join(' ') };
}
