import { sentKey } from '@pmail/core/storage/keys.ts';
import { attachmentMetadata, sentMetadata } from '@pmail/core/storage/sent-metadata.ts';
import type { PreparedSend } from './prepare.ts';
import type { MailboxWorld } from './world.ts';

/** One object on its way into the store. */
export interface StoredObject {
  key: string;
  bytes: Uint8Array;
  metadata: Record<string, string>;
}

/** What is written to the object store before the transaction: the sent copy first of all, then the attachments. */
export function objectsOf({ owner }: MailboxWorld, send: PreparedSend): StoredObject[] {
  const { request, plan, message_id: message } = send;
  const bcc = plan.recipients.filter(({ field }) => field === 'bcc');
  return [
    {
      key: sentKey(owner, message),
      bytes: send.composed.mime,
      // With these a ledger that a restore has lost can be made again from the store alone.
      metadata: sentMetadata(owner, {
        message_id: message,
        at: send.at,
        key_hash: request.key_hash,
        fingerprint: request.fingerprint,
        sha256: send.mime_sha256,
        operation: request.operation,
        thread: send.thread,
        kind: plan.kind,
        bcc: bcc.map(({ address, name }) => ({ address, name })),
        filtered: plan.recipients.flatMap(({ filtered: reason }, position) =>
          reason === null ? [] : [{ position, reason }],
        ),
        labels: labelsOf(send),
        metadata: request.body.metadata ?? {},
      }),
    },
    ...send.attachments.map(({ r2_key: key, content: bytes, ...rest }, position) => ({
      key,
      bytes,
      metadata: attachmentMetadata(owner, message, { ...rest, position }),
    })),
  ];
}

export function labelsOf({ request }: PreparedSend): string[] {
  return [...new Set(request.body.labels ?? [])];
}
