import type { Address } from '@pmail/core/address/address.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import type { LinkKey } from '@pmail/core/links.ts';
import type { SendBody, SendOperation } from '@pmail/core/message/request.ts';
import type { MessageResource } from '@pmail/core/message/resource.ts';
import type { DirectoryFacts } from '@pmail/core/policy/types.ts';
import type { Refusal } from '@pmail/core/result.ts';
import type { ThreadKey } from '@pmail/core/threading/token.ts';

/** One send as the HTTP layer hands it to the mailbox. The body's shape is checked; nothing else is. */
export interface SubmitRequest {
  operation: SendOperation;
  /** Message that is answered or forwarded; null for a plain send. */
  target_id: MessageId | null;
  /** Hex SHA-256 of the Idempotency-Key. */
  key_hash: string;
  fingerprint: string;
  body: SendBody;
  directory: DirectoryFacts;
  /** Signing keys in use. Without a thread key no Reply-To token is made; without a link key nothing is linked. */
  keys: { thread: ThreadKey | null; link: LinkKey | null };
  /** Scheme and host of the API, for links. */
  api_origin: string;
  can_review_quarantine: boolean;
  /** The highest number the event index knew of this mailbox before the call; null when it knows none. */
  last_sequence: number | null;
  request_id: string;
}

export type SubmitAnswer = { ok: true; message: MessageResource; deduplicated: boolean } | Refusal | DirectoryNeeded;

/**
 * The directory has not been asked about these recipients, which only the mailbox knows: those of a reply come from the
 * message it answers. Nothing was done; ask about them and repeat.
 */
export interface DirectoryNeeded {
  ok: false;
  code: 'directory_needed';
  recipients: Address[];
}
