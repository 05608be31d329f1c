import { SEND_ROUTES } from '@pmail/contracts/routes/sends.ts';
import type { RouteHandler } from '@pmail/contracts/routes.ts';
import type { Json } from '@pmail/core/canonical-json.ts';
import { sha256Hex } from '@pmail/core/hash.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { type SendBody, sendFingerprint } from '@pmail/core/message/request.ts';
import { ok, type Refusal, refuse } from '@pmail/core/result.ts';
import type { DirectoryNeeded, SubmitRequest } from '@pmail/engine/mailbox/submit-types.ts';
import { signingKeyNow, signingKeys } from '../../ports/keyring.ts';
import { canReview, mailboxCall, mailboxOf, type RequestContext } from '../context.ts';
import { within } from '../deadline.ts';
import { ringOf } from '../ring.ts';
import { withRecipients } from '../send-facts.ts';

type SendRoute = keyof typeof SEND_ROUTES;

/** Rounds of asking the directory about recipients; a second happens only when the answered message changes meanwhile. */
const ROUNDS_MAX = 3;

function sendHandler<K extends SendRoute>(route: K): RouteHandler<K, RequestContext> {
  const handle = async (context: RequestContext, input: Input): ReturnType<RouteHandler<SendRoute, RequestContext>> => {
    const request = await submitRequest(context, route, input);
    const stub = mailboxOf(context, context.identity);
    const call = mailboxCall(context, context.identity);
    if (input.query.dry_run === true) {
      const result = await withDirectory(context, request, (ready) =>
        within(LIMITS.submit_deadline_ms, 'dry_run', stub.dryRun(call, ready)),
      );
      if (!result.ok) return result;
      return ok({ status: 200 as const, body: { would_send: true as const, recipients: result.recipients } });
    }
    const result = await withDirectory(context, request, (ready) =>
      within(LIMITS.submit_deadline_ms, 'submit', stub.submit(call, ready)),
    );
    if (!result.ok) return result;
    const { message, deduplicated } = result;
    return ok({
      status: 202 as const,
      body: { ...message, deduplicated },
      ...(deduplicated ? { headers: { 'idempotent-replayed': 'true' } } : {}),
    });
  };
  return handle as unknown as RouteHandler<K, RequestContext>;
}

interface Input {
  params: { identity_id: string; message_id?: string };
  query: { dry_run?: boolean | undefined };
  body: SendBody;
}

async function submitRequest(
  context: RequestContext,
  route: SendRoute,
  { params, body }: Input,
): Promise<SubmitRequest> {
  const operation = SEND_ROUTES[route];
  const { identity_id: identityId, message_id: messageId } = params;
  const target = messageId === undefined ? identityId : `${identityId}/${messageId}`;
  const key = context.headers.get('idempotency-key') ?? '';
  const [key_hash, fingerprint, keys] = await Promise.all([
    sha256Hex(key),
    sendFingerprint(operation, target, context.rawBody as Json),
    keysOf(context, route, body),
  ]);
  return {
    operation,
    target_id: messageId === undefined ? null : (messageId as MessageId),
    key_hash,
    fingerprint,
    body,
    directory: context.facts,
    keys,
    api_origin: context.config.api_origin,
    can_review_quarantine: canReview(context),
    last_sequence: context.facts.last_sequence,
    request_id: context.requestId,
  };
}

/** The keys that sign what is put into the mail: the thread token, and links where the policy makes any. */
async function keysOf(context: RequestContext, route: SendRoute, body: SendBody): Promise<SubmitRequest['keys']> {
  const ring = ringOf(context);
  const files = route === 'messages.forward' || (body.attachments ?? []).length > 0;
  const linking = files && context.facts.tenant.policy.large_attachments === 'link';
  const link = linking ? await signingKeyNow(ring, 'link') : null;
  const [thread] = await signingKeys(ring, 'thread');
  return { thread: thread ?? null, link: link ?? null };
}

/**
 * Whom a reply goes to, only the mailbox knows: it looks at the key first, so that a repetition costs no more than that,
 * and then names whom the directory must be asked about.
 */
async function withDirectory<T extends { ok: true }>(
  context: RequestContext,
  request: SubmitRequest,
  ask: (ready: SubmitRequest) => Promise<T | Refusal | DirectoryNeeded>,
): Promise<T | Refusal> {
  let ready = request;
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const answer = await ask(ready);
    if (answer.ok || answer.code !== 'directory_needed') return answer;
    ready = { ...request, directory: await withRecipients(context, answer.recipients) };
  }
  return refuse('unavailable', { step: 'directory' });
}

export const sendHandlers = {
  'messages.send': sendHandler('messages.send'),
  'messages.reply': sendHandler('messages.reply'),
  'messages.reply_all': sendHandler('messages.reply_all'),
  'messages.forward': sendHandler('messages.forward'),
};
