import { utf8Length } from '@pmail/core/hash.ts';
import { sentKey } from '@pmail/core/storage/keys.ts';
import type { PreparedSend } from './prepare.ts';
import type { MailboxWorld } from './world.ts';

/** One object on its way into the store. */
export interface StoredObject {
  key: string;
  bytes: Uint8Array;
  metadata: Record<string, string>;
}

/** Room for blind recipients in an object's metadata, of the 8 KiB that the store takes. */
const BCC_BYTES_MAX = 4_096;

/** What is written to the object store before the transaction: the sent copy first of all, then the attachments. */
export function objectsOf(world: MailboxWorld, send: PreparedSend): StoredObject[] {
  const { tenant_id: tenant, identity_id: identity } = world.owner;
  const base = { tenant, identity, message: send.message_id };
  return [
    {
      key: sentKey(world.owner, send.message_id),
      bytes: send.composed.mime,
      metadata: {
        ...base,
        // With these a ledger that a restore has lost can be made again from the store alone.
        idem_key_sha256: send.request.key_hash,
        fingerprint: send.request.fingerprint,
        operation: send.request.operation,
        thread: send.thread.id,
        ...blindRecipients(send),
      },
    },
    ...send.attachments.map(({ r2_key: key, content: bytes, sha256 }) => ({
      key,
      bytes,
      metadata: { ...base, sha256 },
    })),
  ];
}

/** The copy has no Bcc header, so who else got the message stands beside it, as far as it fits. */
function blindRecipients(send: PreparedSend): { bcc?: string } {
  const list = send.plan.recipients.filter(({ field }) => field === 'bcc').map(({ address }) => address);
  while (list.length > 0 && utf8Length(list.join(',')) > BCC_BYTES_MAX) list.pop();
  return list.length === 0 ? {} : { bcc: list.join(',') };
}
