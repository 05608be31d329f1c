import type { Mailbox } from '@pmail/core/address/address.ts';
import { localPartOf } from '@pmail/core/address/address.ts';
import { withoutMarks } from '@pmail/core/address/names.ts';
import { cleanFilename } from '@pmail/core/compose/filename.ts';
import type { ComposeAttachment, ComposedMail, ComposeInput } from '@pmail/core/compose/types.ts';
import { fromBase64, sha256Hex } from '@pmail/core/hash.ts';
import type { MessageId, ThreadId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import type { SendPlan } from '@pmail/core/policy/pipeline.ts';
import type { AddressFacts } from '@pmail/core/policy/types.ts';
import { invalidRequest, type Refusal, refuse } from '@pmail/core/result.ts';
import { sentAttachmentKey } from '@pmail/core/storage/keys.ts';
import { mintThreadToken } from '@pmail/core/threading/token.ts';
import type { SendSubject } from './context.ts';
import { forwardedFiles, forwardedMessage } from './forwarded.ts';
import { composeToFit, type Linking } from './large-attachments.ts';
import type { SubmitRequest } from './submit-types.ts';
import { threadHeaders } from './thread-headers.ts';
import { takeThreadSeq } from './threads.ts';
import type { MailboxWorld } from './world.ts';

/** Where a message stands among the others of its thread, as its headers say. */
export interface ThreadPlace {
  in_reply_to: string | null;
  references: string[];
  hop: number;
}

/** A send that passed the policy, with everything that will be stored. */
export interface PreparedSend extends ThreadPlace {
  request: SubmitRequest;
  subject: SendSubject;
  plan: SendPlan;
  message_id: MessageId;
  /** The thread it joins, or the one it begins. */
  thread: { seq: number; id: ThreadId; is_new: boolean };
  /** Unix ms; the Date header and the time of acceptance. */
  at: number;
  from: Mailbox;
  /** Reply-To with the thread token, where the From domain keeps sub-addresses. */
  reply_to: Mailbox | null;
  subject_line: string;
  /** What it was composed from. */
  input: ComposeInput;
  linking: Linking | null;
  composed: ComposedMail;
  mime_sha256: string;
  attachments: PreparedAttachment[];
}

export interface PreparedAttachment extends ComposeAttachment {
  sha256: string;
  r2_key: string;
}

export type Prepared = { ok: true; send: PreparedSend } | Refusal;

/** Decodes, composes and hashes. Reads the object store for what a forward carries, and writes nothing. */
export async function prepareSend(
  world: MailboxWorld,
  request: SubmitRequest,
  subject: SendSubject,
  plan: SendPlan,
): Promise<Prepared> {
  const at = subject.context.now;
  const messageId = world.newId('msg', at);
  const { identity, tenant } = request.directory;
  const forwarded = await forwardOf(world, request, subject);
  if (!forwarded.ok) return refuse('unavailable', { step: forwarded.reason });
  const files = [...decodeAttachments(world, request, at), ...forwarded.files];
  if (files.length > LIMITS.attachments_count_max) {
    const message = `brings the original's attachments along, ${files.length} together with those given; ${LIMITS.attachments_count_max} are allowed`;
    return invalidRequest({ path: 'include_attachments', message });
  }
  const thread = threadOf(world, subject, at);
  const from = { address: plan.from.address, name: withoutMarks(identity.display_name).trim() };
  const headers = threadHeaders(world.sql, request, subject);
  const mailboxes = (field: 'to' | 'cc'): Mailbox[] =>
    plan.recipients.filter((to) => to.field === field).map(({ address, name }) => ({ address, name }));
  const replyTo = await replyToOf(world, request, plan.from, thread.seq, from.name);
  const input: ComposeInput = {
    message_id: messageId,
    date: at,
    from,
    reply_to: replyTo,
    to: mailboxes('to'),
    cc: mailboxes('cc'),
    subject: headers.subject,
    text: request.body.text ?? null,
    html: request.body.html ?? null,
    signature: { text: identity.signature_text, html: identity.signature_html },
    disclosure: tenant.policy.ai_disclosure,
    unsubscribe:
      plan.kind === 'marketing' && request.body.unsubscribe !== undefined
        ? { url: request.body.unsubscribe.url, mailto: request.body.unsubscribe.mailto ?? null }
        : null,
    list_unsubscribe: null,
    forwarded: forwarded.message,
    in_reply_to: headers.in_reply_to,
    references: headers.references,
    auto_submitted: plan.kind === 'auto_reply',
    hop: plan.hop,
    headers: plan.headers,
    attachments: files,
  };
  const { link } = request.keys;
  const linking =
    tenant.policy.large_attachments === 'link' && link !== null
      ? { key: link, origin: request.api_origin, ttl_hours: tenant.policy.link_ttl_hours }
      : null;
  const { composed } = await composeToFit(world, input, linking);
  const send: PreparedSend = {
    request,
    subject,
    plan,
    message_id: messageId,
    thread,
    at,
    from,
    reply_to: replyTo,
    subject_line: headers.subject,
    in_reply_to: headers.in_reply_to,
    references: headers.references,
    hop: plan.hop,
    input,
    linking,
    composed,
    mime_sha256: await sha256Hex(composed.mime),
    attachments: await Promise.all(
      files.map(async (file) => ({
        ...file,
        sha256: await sha256Hex(file.content),
        r2_key: sentAttachmentKey(world.owner, messageId, file.id),
      })),
    ),
  };
  return { ok: true, send };
}

/** The same message at another place in its thread, and at another time; its id, files and recipients stay. */
export async function composeAgain(
  world: MailboxWorld,
  send: PreparedSend,
  place: ThreadPlace,
  at: number,
): Promise<PreparedSend> {
  const input = { ...send.input, ...place, date: at };
  const { composed } = await composeToFit(world, input, send.linking);
  const plan = { ...send.plan, hop: place.hop };
  return { ...send, ...place, plan, at, input, composed, mime_sha256: await sha256Hex(composed.mime) };
}

function threadOf(world: MailboxWorld, { thread }: SendSubject, at: number): PreparedSend['thread'] {
  if (thread !== undefined) return { seq: thread.seq, id: thread.id, is_new: false };
  // The number is needed before the thread exists: the Reply-To of its first message carries it.
  return { seq: takeThreadSeq(world), id: world.newId('thr', at), is_new: true };
}

async function replyToOf(
  world: MailboxWorld,
  { keys }: SubmitRequest,
  { address, domain }: AddressFacts,
  seq: number,
  name: string,
): Promise<Mailbox | null> {
  if (domain.reply_token !== 'subaddress' || keys.thread === null) return null;
  const token = await mintThreadToken(keys.thread, world.owner.identity_id, seq);
  return { address: `${localPartOf(address)}+${token}@${domain.name}`, name };
}

type Forward =
  | { ok: true; message: ComposeInput['forwarded']; files: ComposeAttachment[] }
  | { ok: false; reason: string };

async function forwardOf(world: MailboxWorld, request: SubmitRequest, { target }: SendSubject): Promise<Forward> {
  if (request.operation !== 'forward' || target === undefined) return { ok: true, message: null, files: [] };
  if (request.body.include_attachments === false) {
    return { ok: true, message: forwardedMessage(target, []), files: [] };
  }
  const files = await forwardedFiles(world, target);
  if (!files.ok) return files;
  return { ok: true, message: forwardedMessage(target, files.missing), files: files.attachments };
}

function decodeAttachments(world: MailboxWorld, request: SubmitRequest, at: number): ComposeAttachment[] {
  return (request.body.attachments ?? []).map((input, index) => {
    const content = fromBase64(input.content_base64);
    // The schema has checked it; a fault here is ours.
    if (content === undefined) throw new Error(`attachment ${index} is not base64`);
    return {
      id: world.newId('att', at),
      filename: cleanFilename(input.filename, input.content_type),
      content_type: input.content_type.toLowerCase(),
      disposition: input.disposition ?? 'attachment',
      content_id: input.content_id?.replace(/^<(.*)>$/s, '$1') ?? null,
      content,
    };
  });
}
