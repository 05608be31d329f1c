import type { MessageId } from '@pmail/core/ids.ts';
import { deleteMeta, metaWithPrefix, readMeta, writeMeta } from '../meta.ts';
import type { Sql } from '../sql.ts';
import { parseJson } from './rows.ts';

/**
 * Whether a message waits for a transport. Its `dispatch:` row says so and not its status: a message that a relay took
 * for some recipients goes on waiting for the others, even when one of the first has already complained.
 */
export function isWaiting(sql: Sql, message: MessageId): boolean {
  return readMeta(sql, `dispatch:${message}`) !== undefined;
}

/** The right to make one transport call. At most one claim stands per message, and a token is used once. */
export interface Claim {
  token: string;
  claimed_at: number;
}

export function readClaim(sql: Sql, message: MessageId): Claim | undefined {
  const value = readMeta(sql, `claim:${message}`);
  return value === undefined ? undefined : parseJson<Claim>(value);
}

export function writeClaim(sql: Sql, message: MessageId, claim: Claim): void {
  writeMeta(sql, `claim:${message}`, JSON.stringify(claim));
}

export function allClaims(sql: Sql): { message: MessageId; claim: Claim }[] {
  return metaWithPrefix(sql, 'claim:').map(({ k, v }) => ({
    message: k.slice('claim:'.length) as MessageId,
    claim: parseJson<Claim>(v),
  }));
}

export interface Backoff {
  n: number;
  first_at: number;
}

export function readBackoff(sql: Sql, message: MessageId): Backoff | undefined {
  const value = readMeta(sql, `backoff:${message}`);
  return value === undefined ? undefined : parseJson<Backoff>(value);
}

/** Everything short-lived about a queued message goes when it leaves `queued`. */
export function forgetSend(sql: Sql, message: MessageId): void {
  deleteMeta(sql, `claim:${message}`, `backoff:${message}`, `dispatch:${message}`);
}
