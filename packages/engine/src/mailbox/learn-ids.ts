import type { Address } from '@pmail/core/address/address.ts';
import { learnableId } from '@pmail/core/cloudflare/message-id.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { attemptsOf } from './attempts.ts';
import { findMessage } from './messages.ts';
import type { MessageRow } from './rows.ts';
import type { MailboxWorld } from './world.ts';

/** What the header of a journal copy shows. It comes by mail, so anybody may have written it. */
export interface JournalCopy {
  message_id: MessageId;
  /** The Message-ID field as it stands there. */
  header_id: string;
  from: Address;
  subject: string;
  /** The domain that the provider makes its ids with, where the operator knows it. */
  id_domain: string | null;
}

/**
 * Learns the Message-ID under which recipients know a message from its journal copy, or leaves everything as it is: only
 * a message that Cloudflare has just been given, whose id is not known yet and whose sender and subject are those of the
 * copy, learns one, and only once.
 *
 * @returns whether it was learned
 */
export function learnMessageId(world: MailboxWorld, copy: JournalCopy): boolean {
  const id = learnableId(copy.header_id, copy.id_domain);
  if (id === null) return false;
  return world.sql.transaction(() => {
    const row = findMessage(world.sql, copy.message_id);
    if (row === undefined || row.provider !== 'cloudflare' || row.rfc_message_id !== null || !mayHaveLeft(row)) {
      return false;
    }
    if (row.from_address !== copy.from || oneLine(row.subject ?? '') !== oneLine(copy.subject)) return false;
    const last = attemptsOf(world.sql, row.rowid).at(-1);
    const submittedAt = last?.ended_at ?? last?.claimed_at;
    if (submittedAt === undefined || world.now() - submittedAt >= LIMITS.learn_id_ms_max) return false;
    world.sql.run('UPDATE messages SET rfc_message_id = ? WHERE rowid = ?', id, row.rowid);
    return true;
  });
}

/** Whether a transport has taken it, or may have: nothing else has an id that anybody has seen. */
function mayHaveLeft(row: MessageRow): boolean {
  if (row.direction !== 'outbound' || row.status === 'queued') return false;
  return row.accepted === 1 || row.status === 'uncertain';
}

/** A subject is folded and unfolded on its way, which may change its blanks. */
function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}
