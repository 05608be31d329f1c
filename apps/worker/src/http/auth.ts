import type { Permission } from '@pmail/contracts/permissions.ts';
import { equalBytes } from '@pmail/core/compare.ts';
import { toHex, utf8 } from '@pmail/core/hash.ts';
import { type ParsedKey, parseApiKey } from '@pmail/core/keys/api-key.ts';
import { ok, type Result, refuse } from '@pmail/core/result.ts';
import type { AuthRow } from '@pmail/engine/directory/keys.ts';
import { hmac } from '../ports/secrets.ts';
import type { AuthKey } from './context.ts';

export interface Credentials extends ParsedKey {
  text: string;
}

/** The key a request presents, if it has the form of one. */
export function readCredentials(headers: Headers): Credentials | undefined {
  const match = /^Bearer +(\S+)$/i.exec(headers.get('authorization') ?? '');
  const text = match?.[1];
  const parsed = text === undefined ? undefined : parseApiKey(text);
  return text === undefined || parsed === undefined ? undefined : { ...parsed, text };
}

/** Stored form of a key. */
export async function hashKey(pepper: Uint8Array<ArrayBuffer>, text: string): Promise<string> {
  return toHex(await hmac(pepper, text));
}

const NO_HASH = '0'.repeat(64);

/**
 * Checks a key against its row. The MAC is computed whether or not a row was found, and every failure before a match
 * answers the same, so nothing tells a wrong secret from an unknown key.
 */
export async function authenticate(
  pepper: Uint8Array<ArrayBuffer>,
  credentials: Credentials | undefined,
  row: AuthRow | undefined,
  now: number,
): Promise<Result<AuthKey>> {
  if (credentials === undefined) return refuse('unauthenticated');
  const presented = utf8(await hashKey(pepper, credentials.text));
  const current = equalBytes(presented, utf8(row?.hash ?? NO_HASH));
  const previous = equalBytes(presented, utf8(row?.prev_hash ?? NO_HASH)) && (row?.prev_expires_at ?? 0) > now;
  if (row === undefined || !(current || previous) || row.mode !== credentials.mode) return refuse('unauthenticated');
  if (row.revoked_at !== null || row.tenant_status === 'erasing' || row.tenant_status === 'erased') {
    return refuse('key_revoked');
  }
  if (row.expires_at !== null && row.expires_at <= now) return refuse('key_expired');
  return ok({
    id: row.id,
    name: row.name,
    level: row.level,
    mode: row.mode,
    tenant_id: row.tenant_id,
    identity_id: row.identity_id,
    permissions: JSON.parse(row.permissions_json) as Permission[],
    expires_at: row.expires_at,
  });
}
