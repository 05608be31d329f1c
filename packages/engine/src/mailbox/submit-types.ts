import type { MessageId } from '@pmail/core/ids.ts';
import type { SendBody, SendOperation } from '@pmail/core/message/request.ts';
import type { MessageResource } from '@pmail/core/message/resource.ts';
import type { DirectoryFacts } from '@pmail/core/policy/types.ts';
import type { Refusal } from '@pmail/core/result.ts';

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
  can_review_quarantine: boolean;
  request_id: string;
}

export type SubmitAnswer = { ok: true; message: MessageResource; deduplicated: boolean } | Refusal;
