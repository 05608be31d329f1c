import type { RouteId, RouteSpec } from '@pmail/contracts/routes.ts';
import { canonicalJson, type Json } from '@pmail/core/canonical-json.ts';
import { sha256Hex, toHex } from '@pmail/core/hash.ts';
import { type IdentityId, type MessageId, parseId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { ok, type Result, refuse } from '@pmail/core/result.ts';
import {
  beginRequest,
  completeRequest,
  forgetRequest,
  type RecordKey,
  type StoredAnswer,
} from '@pmail/engine/directory/idempotency.ts';
import { hmac } from '../ports/secrets.ts';
import { mailboxCall, mailboxOf, type RequestContext } from './context.ts';
import { object } from './object-call.ts';

/** What a handler answers, whatever the route. */
export interface Answered {
  status: number;
  body: unknown;
  headers?: Record<string, string>;
}

/** A message in a stored answer stands there as a reference, because mail is not copied into the directory. */
interface Reference {
  $ref: { kind: 'message'; identity_id: IdentityId; id: MessageId };
}

const REPLAYED = { 'idempotent-replayed': 'true' };

/**
 * Runs a write under its Idempotency-Key, when it carries one. Sends have a ledger of their own in the mailbox; this is
 * for every other POST.
 */
export async function underKey(
  context: RequestContext,
  id: RouteId,
  spec: RouteSpec,
  run: () => Promise<Result<Answered>>,
): Promise<Result<Answered>> {
  const value = spec.idempotency === 'optional' ? context.headers.get('idempotency-key') : null;
  if (value === null) return run();
  const { db, key, now } = context;
  const record: RecordKey = { scope: key.tenant_id ?? 'platform', key_id: key.id, idem_key: await sha256Hex(value) };
  const mark = {
    method: spec.method,
    path: context.path,
    // Keyed, because a body may hold an address that is stored nowhere else in a form that could be guessed.
    fingerprint: toHex(await hmac(context.config.hash_key, canonicalJson(fingerprinted(context, spec)))),
  };
  const begin = await beginRequest(db, record, mark, now, LIMITS.idempotency_retention_ms);
  switch (begin.kind) {
    case 'in_progress':
      return refuse('request_in_progress');
    case 'conflict':
      return refuse('idempotency_conflict');
    case 'completed':
      return replay(context, begin.answer);
    case 'begun': {
      context.turn = { record, began: begin.began, made: begin.made };
      // A throw leaves the record as it is: whether anything was changed is not known, and after a minute a repeat runs.
      const result = await run();
      if (result.ok) await completeRequest(db, record, begin.began, stored(context, id, result.value));
      else await forgetRequest(db, record, begin.began);
      return result;
    }
  }
}

/** What makes two requests the same: method, path, body, and the query where there is one. */
function fingerprinted({ rawBody, path, search }: RequestContext, { method }: RouteSpec): Json {
  const request = { body: rawBody as Json, method, path };
  // A query has each name once, so its order says nothing.
  const query = Object.fromEntries(search);
  return search.size === 0 ? request : { ...request, query };
}

/** The answer as it may be kept: without secrets, and with mail only by reference. */
function stored(context: RequestContext, id: RouteId, { status, body }: Answered): StoredAnswer {
  if (id.startsWith('messages.')) {
    const reference: Reference = {
      $ref: { kind: 'message', identity_id: context.identity.id, id: (body as { id: MessageId }).id },
    };
    return { status, body: JSON.stringify(reference) };
  }
  if (typeof body === 'object' && body !== null && 'secret' in body) {
    const { secret: _secret, ...rest } = body;
    return { status, body: JSON.stringify({ ...rest, secret_replayed: false }) };
  }
  return { status, body: JSON.stringify(body) };
}

async function replay(context: RequestContext, { status, body: text }: StoredAnswer): Promise<Result<Answered>> {
  const body = JSON.parse(text) as unknown;
  const reference = (body as Partial<Reference> | null)?.$ref;
  if (reference === undefined) return ok({ status, body, headers: REPLAYED });
  const messageId = parseId('msg', reference.id);
  const message =
    messageId === undefined
      ? undefined
      : await object(
          mailboxOf(context, context.identity).getMessage(
            mailboxCall(context, context.identity),
            messageId,
            { text: false, html: false },
            true,
          ),
        );
  return message === undefined ? refuse('message_not_found') : ok({ status, body: message, headers: REPLAYED });
}
