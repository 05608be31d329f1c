import { sha256Hex, utf8 } from '@pmail/core/hash.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import type { MessageResource } from '@pmail/core/message/resource.ts';
import { parseMail } from '@pmail/mime/parse.ts';
import { readMail } from '@pmail/mime/read-mail.ts';
import { mail } from './inbound.fixture.ts';
import type { IngestAnswer } from './ingest.ts';
import type { MailboxRig, SendOptions, Submitted } from './mailbox.fixture.ts';

/** Answers as their recipients get them: the stored copy, read back with the real parser. */

type ParsedCopy = Awaited<ReturnType<typeof parseMail>>;

export function bytesOf(rig: MailboxRig, id: MessageId): string {
  const row = rig.sql.first<{ raw_r2_key: string }>('SELECT raw_r2_key FROM messages WHERE id = ?', id);
  const object = rig.blobs.objects.get(row?.raw_r2_key ?? '');
  if (object === undefined) throw new Error(`no stored copy of ${id}`);
  return new TextDecoder().decode(object.bytes);
}

export function copyOf(rig: MailboxRig, id: MessageId): Promise<ParsedCopy> {
  return parseMail(utf8(bytesOf(rig, id)));
}

/** Value of a header of the stored copy, unfolded, or undefined. */
export function headerOf(rig: MailboxRig, id: MessageId, name: string): string | undefined {
  const [block = ''] = bytesOf(rig, id).split('\r\n\r\n', 1);
  const lines = block.replaceAll('\r\n ', ' ').split('\r\n');
  const found = lines.find((line) => line.toLowerCase().startsWith(`${name.toLowerCase()}:`));
  return found?.slice(name.length + 1).trim();
}

/** Who gets a message and how: `to jo@example.net`, in the order of the deliveries. */
export function sentTo(message: MessageResource): string[] {
  return (message.deliveries ?? []).map(({ field, address }) => `${field} ${address}`);
}

/** Mail that arrives as bytes, read as the consumer reads it. */
export async function arriveRaw(rig: MailboxRig, lines: string[], envelopeTo?: string): Promise<IngestAnswer> {
  const raw = lines.join('\r\n');
  const { attachments, auto_submitted: _, ...parsed } = await readMail(utf8(raw));
  const request = await mail(rig, {
    raw,
    request: envelopeTo === undefined ? {} : { envelope_to: envelopeTo },
    parsed: {
      ...parsed,
      attachments: await Promise.all(
        attachments.map(async ({ content, ...rest }) => ({
          id: rig.newId('att', rig.clock.now),
          ...rest,
          size: content.length,
          sha256: await sha256Hex(content),
        })),
      ),
    },
  });
  const answer = await rig.engine.ingest(request);
  for (const [i, { r2_key }] of answer.attachments.entries()) {
    await rig.blobs.put(r2_key, attachments[i]?.content ?? new Uint8Array(), {});
  }
  return answer;
}

export function reply(target: MessageId, options: SendOptions = {}): SendOptions {
  return { operation: 'reply', target_id: target, ...options, body: { text: 'Thank you.', ...options.body } };
}

export function replyAll(target: MessageId, options: SendOptions = {}): SendOptions {
  return { ...reply(target, options), operation: 'reply_all' };
}

export function forward(target: MessageId, options: SendOptions = {}): SendOptions {
  return {
    operation: 'forward',
    target_id: target,
    ...options,
    body: { to: ['lee@example.net'], subject: undefined, text: 'For you.', ...options.body },
  };
}

/** What refused a send, as code and the paths of its errors. */
export function refusalOf(answer: Submitted): { code: string; paths: string[] } {
  if (answer.ok) throw new Error('accepted');
  const { errors = [] } = (answer.details ?? {}) as { errors?: { path: string }[] };
  return { code: answer.code, paths: errors.map(({ path }) => path) };
}
