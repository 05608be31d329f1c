import type { Address, Mailbox } from '@pmail/core/address/address.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import type { Provider } from '@pmail/core/transport/types.ts';
import type { Sql } from '../sql.ts';
import { readDeliveries } from './messages.ts';
import { type DeliveryRow, type MessageRow, parseJson } from './rows.ts';

/** What a consumer needs to make the one transport call it has claimed. */
export interface ClaimedSend {
  message_id: MessageId;
  claim_token: string;
  provider: Provider;
  r2_key: string;
  mime_sha256: string;
  from: Mailbox;
  reply_to: Address | null;
  subject: string;
  to: Address[];
  cc: Address[];
  bcc: Address[];
  /** Whether From and Reply-To differ from the composed ones because the domain fell back. */
  fallback: boolean;
}

/** The call to make for a message now: to everybody who is still queued, and nobody else. */
export function claimedSend(sql: Sql, row: MessageRow, token: string, provider: Provider): ClaimedSend {
  const queued = readDeliveries(sql, row.rowid).filter(({ status }) => status === 'queued');
  const field = (name: DeliveryRow['field']): Address[] =>
    queued.filter((delivery) => delivery.field === name).map(({ address }) => address);
  if (row.raw_r2_key === null || row.raw_sha256 === null) throw new Error('queued message without a stored copy');
  const [replyTo] = parseJson<Mailbox[]>(row.reply_to_json);
  return {
    message_id: row.id,
    claim_token: token,
    provider,
    r2_key: row.raw_r2_key,
    mime_sha256: row.raw_sha256,
    from: { address: row.from_address ?? '', name: row.from_name ?? '' },
    reply_to: replyTo?.address ?? null,
    subject: row.subject ?? '',
    to: field('to'),
    cc: field('cc'),
    bcc: field('bcc'),
    fallback: parseJson<string[]>(row.flags_json).includes('sent_via_fallback'),
  };
}
