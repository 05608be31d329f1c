import type { RouteId } from '@pmail/contracts/routes.ts';
import { equalBytes } from '@pmail/core/compare.ts';
import { fromBase64Url, hmacSha256, sha256Hex, toBase64Url, utf8 } from '@pmail/core/hash.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { invalidRequest, ok, type Result, refuse } from '@pmail/core/result.ts';
import { type SigningKey, signingKeys } from '../ports/keyring.ts';
import type { RequestContext } from './context.ts';
import { ringOf } from './ring.ts';

/**
 * Cursors of lists: where the next page begins, signed, and bound to the list, its filters and the key, so that one
 * cannot be made up or carried to another list.
 */

export interface Position {
  at: number;
  id: string;
}

interface Payload {
  v: 1;
  r: RouteId;
  f: string;
  k: [number, string];
  t: number;
}

const LABEL = 'pm-list-cursor-v1\0';
const TAG_BYTES = 16;

/** Name of a list with its filters: path and query without the cursor itself and the page size, and the key. */
function filterHash(context: RequestContext, params: object, query: object): Promise<string> {
  const { cursor: _cursor, limit: _limit, messages_limit: _messages, ...filters } = query as Record<string, unknown>;
  const sorted = Object.entries({ ...params, ...filters })
    .filter(([, value]) => value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return sha256Hex(JSON.stringify([sorted, context.key.id])).then((hex) => hex.slice(0, 32));
}

function keys(context: RequestContext, kid?: string): ReturnType<typeof signingKeys> {
  return signingKeys(ringOf(context), 'cursor', kid);
}

export async function writeCursor(
  context: RequestContext,
  route: RouteId,
  input: { params: object; query: object },
  position: Position | null,
): Promise<string | null> {
  if (position === null) return null;
  const [key] = await keys(context);
  if (key === undefined) throw new Error('no cursor key');
  const payload: Payload = {
    v: 1,
    r: route,
    f: await filterHash(context, input.params, input.query),
    k: [position.at, position.id],
    t: context.now,
  };
  const bytes = utf8(JSON.stringify(payload));
  const tag = (await mac(key.secret, bytes)).subarray(0, TAG_BYTES);
  return `c_${key.kid}${toBase64Url(concat(bytes, tag))}`;
}

export async function readCursor(
  context: RequestContext,
  route: RouteId,
  input: { params: object; query: { cursor?: string | undefined } },
): Promise<Result<Position | null>> {
  const { cursor } = input.query;
  if (cursor === undefined) return ok(null);
  const invalid = invalidRequest({ path: 'cursor', message: 'is not a cursor of this list with these filters' });
  const bytes = cursor.startsWith('c_') ? fromBase64Url(cursor.slice(3)) : undefined;
  if (bytes === undefined || bytes.length <= TAG_BYTES) return invalid;
  const kid = cursor.charAt(2);
  const key = (await keys(context, kid)).find((entry) => entry.kid === kid);
  const payloadBytes = bytes.slice(0, -TAG_BYTES);
  const signedAt = timeOf(payloadBytes);
  if (signedAt !== undefined && isOfSpentKey(signedAt, key, context.now)) return refuse('cursor_expired');
  if (key === undefined) return invalid;
  const tag = (await mac(key.secret, payloadBytes)).subarray(0, TAG_BYTES);
  if (!equalBytes(tag, bytes.subarray(-TAG_BYTES))) return invalid;
  const payload = JSON.parse(new TextDecoder().decode(payloadBytes)) as Payload;
  if (payload.r !== route || payload.f !== (await filterHash(context, input.params, input.query))) return invalid;
  if (context.now - payload.t > LIMITS.cursor_age_ms_max) return refuse('cursor_expired');
  const [at, id] = payload.k;
  return ok({ at, id });
}

/**
 * Whether a cursor says of itself that it is as old as the key must be that signed it: that key is gone, or its id means
 * another by now. Nothing proves it, but all that comes of it is that the list begins again.
 */
function isOfSpentKey(signedAt: number, key: SigningKey | undefined, now: number): boolean {
  if (key !== undefined) return signedAt < key.created_at && now - signedAt > LIMITS.cursor_age_ms_max;
  // An isolate signs for some minutes with a key that others have replaced.
  return now - signedAt > LIMITS.cursor_age_ms_max - LIMITS.keyring_cache_ms;
}

function timeOf(payload: Uint8Array): number | undefined {
  try {
    const { t } = JSON.parse(new TextDecoder().decode(payload)) as Partial<Payload>;
    return typeof t === 'number' ? t : undefined;
  } catch {
    return undefined;
  }
}

function mac(secret: Uint8Array<ArrayBuffer>, payload: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  return hmacSha256(secret, concat(utf8(LABEL), payload));
}

function concat(a: Uint8Array, b: Uint8Array): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(a.length + b.length);
  out.set(a);
  out.set(b, a.length);
  return out;
}
