import { utf8 } from '@pmail/core/hash.ts';
import { seal, unseal } from '@pmail/core/seal.ts';
import { webhookSecret } from '@pmail/core/webhooks/signature.ts';
import type { EndpointId, EndpointRow } from '@pmail/engine/webhooks/endpoints.ts';

/** Secrets of webhook endpoints, sealed at rest. */

type Column = 'secret_enc' | 'prev_secret_enc';

function sealSecret(
  masterKey: Uint8Array<ArrayBuffer>,
  id: EndpointId,
  column: Column,
  secret: string,
): Promise<string> {
  const nonce = crypto.getRandomValues(new Uint8Array(12));
  return seal(masterKey, { table: 'webhook_endpoints', column, row: id }, utf8(secret), nonce);
}

async function open(
  masterKey: Uint8Array<ArrayBuffer>,
  id: EndpointId,
  column: Column,
  sealed: string,
): Promise<string | undefined> {
  const bytes = await unseal([masterKey], { table: 'webhook_endpoints', column, row: id }, sealed);
  return bytes === undefined ? undefined : new TextDecoder().decode(bytes);
}

export async function newSecret(
  masterKey: Uint8Array<ArrayBuffer>,
  id: EndpointId,
): Promise<{ secret: string; secret_enc: string }> {
  const secret = webhookSecret(crypto.getRandomValues(new Uint8Array(32)));
  return { secret, secret_enc: await sealSecret(masterKey, id, 'secret_enc', secret) };
}

/** The secret in use as the one before: sealed again, because a sealed value opens only in its own column. */
export async function asPrevious(masterKey: Uint8Array<ArrayBuffer>, row: EndpointRow): Promise<string | null> {
  const secret = await open(masterKey, row.id, 'secret_enc', row.secret_enc);
  return secret === undefined ? null : sealSecret(masterKey, row.id, 'prev_secret_enc', secret);
}

/** Secrets to sign with now, the one in use first; none when that cannot be opened. */
export async function signingSecrets(
  masterKey: Uint8Array<ArrayBuffer>,
  row: EndpointRow,
  now: number,
): Promise<string[]> {
  const current = await open(masterKey, row.id, 'secret_enc', row.secret_enc);
  if (current === undefined) return [];
  if (row.prev_secret_enc === null || (row.prev_secret_expires_at ?? 0) <= now) return [current];
  const previous = await open(masterKey, row.id, 'prev_secret_enc', row.prev_secret_enc);
  return previous === undefined ? [current] : [current, previous];
}
