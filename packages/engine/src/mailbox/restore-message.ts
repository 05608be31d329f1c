import type { Mailbox } from '@pmail/core/address/address.ts';
import { UNCERTAIN_FIX } from '@pmail/core/delivery/uncertain.ts';
import { sha256Hex } from '@pmail/core/hash.ts';
import { type AttachmentId, parseId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import type { RecipientField } from '@pmail/core/policy/types.ts';
import { sentAttachmentPrefix, sentKey, sentPrefix } from '@pmail/core/storage/keys.ts';
import { parseAttachmentMetadata, type SentEvidence } from '@pmail/core/storage/sent-metadata.ts';
import type { ParsedMail } from '../parsed-mail.ts';
import { emit } from './events.ts';
import { acceptedAnswer, recordKey } from './ledger.ts';
import { findMessage, partsOf } from './messages.ts';
import { addAlias } from './provider-ids.ts';
import { isFiltered, type SentMail, storeSend } from './store-send.ts';
import { findThread, takeThreadSeq } from './threads.ts';
import type { MailboxWorld } from './world.ts';

/**
 * Puts back an accepted send that a restore has taken away, from its stored copy and what stands beside it. Everybody
 * it was to go to is `uncertain`: it may have left, and is not sent again.
 *
 * @param alsoWrite runs in the same transaction
 * @returns false when the copy is gone
 */
export async function restoreLost(
  world: MailboxWorld,
  evidence: SentEvidence,
  alsoWrite: () => void,
): Promise<boolean> {
  const { sql, owner } = world;
  const raw = await readCopy(world, evidence);
  if (raw === null) return false;
  const parsed = await world.parse(raw);
  const attachments = await attachmentsOf(world, evidence);
  const sha256 = evidence.sha256 ?? (await sha256Hex(raw));
  sql.transaction(() => {
    alsoWrite();
    if (findMessage(sql, evidence.message_id) !== undefined) return;
    const mail: SentMail = {
      ...describe(evidence, parsed),
      thread: threadOf(world, evidence),
      mime_bytes: raw.length,
      mime_sha256: sha256,
      attachments,
    };
    const row = storeSend(world, mail, { status: 'uncertain', reason: 'mailbox_restored', flags: ['restored'] });
    // Answers to it name the id it was composed with, unless its provider gave it another.
    if (parsed.rfc_message_id !== null) addAlias(sql, row.rowid, parsed.rfc_message_id);
    recordKey(sql, {
      key_hash: evidence.key_hash,
      fingerprint: evidence.fingerprint,
      operation: evidence.operation,
      message: acceptedAnswer(owner, partsOf(sql, row), evidence.labels),
      now: mail.at,
    });
    if (!isFiltered(mail)) {
      emit(world, 'message.uncertain', { message_id: row.id, reason: 'mailbox_restored', fix: UNCERTAIN_FIX });
    }
  });
  return true;
}

/**
 * The copy, read again when the store answers with nothing or with other bytes than were put there: what is taken for lost
 * here stays lost. Bytes that stay different are shown as they are.
 */
async function readCopy(
  { blobs, owner }: MailboxWorld,
  { message_id: id, sha256 }: SentEvidence,
): Promise<Uint8Array<ArrayBuffer> | null> {
  const key = sentKey(owner, id);
  const read = async (): Promise<Uint8Array<ArrayBuffer> | null> => {
    const raw = await blobs.get(key);
    return raw === null ? null : new Uint8Array(raw);
  };
  const first = await read();
  if (first !== null && (sha256 === null || (await sha256Hex(first)) === sha256)) return first;
  const raw = (await read()) ?? first;
  if (raw !== null) return raw;
  const { objects } = await blobs.inspect(key, sentPrefix(owner), 1);
  if (objects.length > 0) throw new Error('a sent copy is listed and cannot be read');
  return null;
}

function describe(
  evidence: SentEvidence,
  parsed: ParsedMail,
): Omit<SentMail, 'thread' | 'mime_bytes' | 'mime_sha256' | 'attachments'> {
  const from = parsed.from ?? { address: '', name: '' };
  const reasons = new Map(evidence.filtered.map(({ position, reason }) => [position, reason]));
  const people: [RecipientField, Mailbox[]][] = [
    ['to', parsed.to],
    ['cc', parsed.cc],
    ['bcc', evidence.bcc],
  ];
  return {
    message_id: evidence.message_id,
    at: evidence.at,
    operation: evidence.operation,
    kind: evidence.kind,
    hop: parsed.hop,
    from,
    reply_to: parsed.reply_to[0] ?? null,
    subject: parsed.subject,
    in_reply_to: parsed.in_reply_to[0] ?? null,
    references: parsed.references,
    text: parsed.text,
    html_sanitized: parsed.html_sanitized,
    recipients: people
      .flatMap(([field, list]) => list.map(({ address, name }) => ({ address, name, field })))
      .map((recipient, position) => ({ ...recipient, filtered: reasons.get(position) ?? null })),
    labels: evidence.labels,
    metadata: evidence.metadata,
    own_addresses: [from.address],
  };
}

/** Its own thread when that is here, else a new one under the id and, where it is free, the number it had. */
function threadOf(world: MailboxWorld, { thread }: SentEvidence): SentMail['thread'] {
  const { sql } = world;
  const known = findThread(sql, thread.id);
  if (known !== undefined) return { id: known.id, seq: known.seq, is_new: false };
  const taken = sql.first('SELECT 1 FROM threads WHERE seq = ?', thread.seq) !== undefined;
  return { id: thread.id, seq: taken ? takeThreadSeq(world) : thread.seq, is_new: true };
}

async function attachmentsOf(
  world: MailboxWorld,
  { message_id: message }: SentEvidence,
): Promise<SentMail['attachments']> {
  const prefix = sentAttachmentPrefix(world.owner, message);
  const { objects } = await world.blobs.inspect(prefix, prefix, LIMITS.attachments_count_max * 2);
  return objects
    .flatMap(({ key, bytes, metadata }) => {
      const id: AttachmentId | undefined = parseId('att', key.slice(prefix.length));
      const evidence = parseAttachmentMetadata(metadata);
      return id === undefined || evidence === undefined ? [] : [{ ...evidence, id, size: bytes, r2_key: key }];
    })
    .sort((a, b) => a.position - b.position);
}
