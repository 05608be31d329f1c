import { createHmac, randomBytes } from 'node:crypto';
import { PERMISSION_NAMES } from '@pmail/contracts/permissions.ts';
import { createIdFactory } from '@pmail/core/ids.ts';
import { makeApiKey } from '@pmail/core/keys/api-key.ts';
import { auditStatement } from '@pmail/engine/directory/audit.ts';
import { bootstrapIds, bootstrapStatements, platformDomainReadyStatements } from '@pmail/engine/directory/bootstrap.ts';
import { insertKeyStatement, revokeAllKeysStatement } from '@pmail/engine/directory/keys.ts';
import type { Statement } from '@pmail/engine/sql.ts';

export interface FirstRows {
  statements: Statement[];
  /** The platform key in clear, to be shown once. */
  key: string;
}

export interface FirstRowsInput {
  platform_domain: string;
  /** Such as `Pylota Mail <no-reply@agents.example>`; the address is on the platform domain. */
  system_from: { name: string; local_part: string };
  owner_email: string;
  pepper: Buffer;
  expires_at: number | null;
  domain_state: 'pending' | 'healthy';
  now: number;
}

function random(): number {
  return randomBytes(4).readUInt32BE() / 2 ** 32;
}

export function hashKey(pepper: Buffer, key: string): string {
  return createHmac('sha256', pepper).update(key).digest('hex');
}

/** The rows of a fresh deployment, with a platform key that has every permission. */
export function firstRows(input: FirstRowsInput): FirstRows {
  const { now } = input;
  const { key, lookup } = makeApiKey('live', randomBytes(40));
  const statements = bootstrapStatements({
    ids: bootstrapIds(createIdFactory(random), now),
    platform_domain: input.platform_domain,
    system: { ...input.system_from, owner_email: input.owner_email },
    domain_state: input.domain_state,
    key: { lookup, hash: hashKey(input.pepper, key), permissions: PERMISSION_NAMES, expires_at: input.expires_at },
    now,
  });
  return { statements, key };
}

/**
 * One more platform key, for a deployment whose pepper was changed. Nobody can prove to hold one of the others any more, so
 * they are shown as ended and take no place among those that a tenant may have.
 */
export function anotherPlatformKey(pepper: Buffer, expiresAt: number | null, now: number): FirstRows {
  const { key, lookup } = makeApiKey('live', randomBytes(40));
  const newId = createIdFactory(random);
  const id = newId('key', now);
  const insert = insertKeyStatement({
    id,
    lookup,
    hash: hashKey(pepper, key),
    prev_hash: null,
    prev_expires_at: null,
    name: 'Platform key after a new pepper',
    level: 'platform',
    tenant_id: null,
    identity_id: null,
    mode: 'live',
    permissions_json: JSON.stringify(PERMISSION_NAMES),
    created_by_key_id: null,
    expires_at: expiresAt,
    revoked_at: null,
    last_used_at: null,
    created_at: now,
  });
  const audit = auditStatement({
    id: newId('aud', now),
    tenant_id: null,
    actor_key_id: null,
    action: 'platform.rotate_pepper',
    target_type: 'key',
    target_id: id,
    details: null,
    request_id: null,
    at: now,
  });
  return { statements: [revokeAllKeysStatement(now), insert, audit], key };
}

/** The platform domain can send, as its operator says. */
export function domainReady(platformDomain: string, now: number): Statement[] {
  return platformDomainReadyStatements(platformDomain, createIdFactory(random)('aud', now), now);
}
