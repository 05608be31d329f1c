import type { Mailbox } from '@pmail/core/address/address.ts';
import { cleanFilename } from '@pmail/core/compose/filename.ts';
import type { ComposeAttachment, ComposedMail, ComposeInput } from '@pmail/core/compose/types.ts';
import { fromBase64, sha256Hex } from '@pmail/core/hash.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import type { SendPlan } from '@pmail/core/policy/pipeline.ts';
import { sentAttachmentKey, sentKey } from '@pmail/core/storage/keys.ts';
import type { SendSubject } from './context.ts';
import type { SubmitRequest } from './submit-types.ts';
import type { MailboxWorld } from './world.ts';

/** A send that passed the policy, with everything that will be stored. */
export interface PreparedSend {
  request: SubmitRequest;
  subject: SendSubject;
  plan: SendPlan;
  message_id: MessageId;
  /** Unix ms; the Date header and the time of acceptance. */
  at: number;
  from: Mailbox;
  subject_line: string;
  in_reply_to: string | null;
  references: string[];
  composed: ComposedMail;
  mime_sha256: string;
  attachments: PreparedAttachment[];
}

export interface PreparedAttachment extends ComposeAttachment {
  sha256: string;
  r2_key: string;
}

/** Decodes, composes and hashes. Pure but for the ids it draws. */
export async function prepareSend(
  world: MailboxWorld,
  request: SubmitRequest,
  subject: SendSubject,
  plan: SendPlan,
): Promise<PreparedSend> {
  const at = subject.context.now;
  const messageId = world.newId('msg', at);
  const { identity, tenant } = request.directory;
  const from = { address: plan.from.address, name: identity.display_name };
  const attachments = await decodeAttachments(world, request, messageId, at);
  const subjectLine = request.body.subject ?? '';
  const mailboxes = (field: 'to' | 'cc'): Mailbox[] =>
    plan.recipients.filter((to) => to.field === field).map(({ address, name }) => ({ address, name }));
  const input: ComposeInput = {
    message_id: messageId,
    date: at,
    from,
    reply_to: null,
    to: mailboxes('to'),
    cc: mailboxes('cc'),
    subject: subjectLine,
    text: request.body.text ?? null,
    html: request.body.html ?? null,
    signature: { text: identity.signature_text, html: identity.signature_html },
    disclosure: tenant.policy.ai_disclosure,
    unsubscribe:
      plan.kind === 'marketing' && request.body.unsubscribe !== undefined
        ? { url: request.body.unsubscribe.url, mailto: request.body.unsubscribe.mailto ?? null }
        : null,
    list_unsubscribe: null,
    forwarded: null,
    in_reply_to: null,
    references: [],
    auto_submitted: plan.kind === 'auto_reply',
    hop: plan.hop,
    headers: plan.headers,
    attachments,
  };
  const composed = await world.composer.compose(input);
  return {
    request,
    subject,
    plan,
    message_id: messageId,
    at,
    from,
    subject_line: subjectLine,
    in_reply_to: input.in_reply_to,
    references: input.references,
    composed,
    mime_sha256: await sha256Hex(composed.mime),
    attachments,
  };
}

function decodeAttachments(
  world: MailboxWorld,
  request: SubmitRequest,
  messageId: MessageId,
  at: number,
): Promise<PreparedAttachment[]> {
  return Promise.all(
    (request.body.attachments ?? []).map(async (input, index) => {
      const content = fromBase64(input.content_base64);
      // The schema has checked it; a fault here is ours.
      if (content === undefined) throw new Error(`attachment ${index} is not base64`);
      const id = world.newId('att', at);
      return {
        id,
        filename: cleanFilename(input.filename, input.content_type),
        content_type: input.content_type.toLowerCase(),
        disposition: input.disposition ?? 'attachment',
        content_id: input.content_id?.replace(/^<(.*)>$/s, '$1') ?? null,
        content,
        sha256: await sha256Hex(content),
        r2_key: sentAttachmentKey(world.owner, messageId, id),
      };
    }),
  );
}

/** What is written to the object store before the transaction: the sent copy first of all, then the attachments. */
export function objectsOf(world: MailboxWorld, send: PreparedSend): StoredObject[] {
  const { tenant_id: tenant, identity_id: identity } = world.owner;
  const base = { tenant, identity, message: send.message_id };
  return [
    {
      key: sentKey(world.owner, send.message_id),
      bytes: send.composed.mime,
      // With these a ledger lost in a restore can be rebuilt from the store alone.
      metadata: {
        ...base,
        idem_key_sha256: send.request.key_hash,
        fingerprint: send.request.fingerprint,
        operation: send.request.operation,
      },
    },
    ...send.attachments.map(({ r2_key: key, content: bytes, sha256 }) => ({
      key,
      bytes,
      metadata: { ...base, sha256 },
    })),
  ];
}

export interface StoredObject {
  key: string;
  bytes: Uint8Array;
  metadata: Record<string, string>;
}
