import { journalAddress } from '@pmail/core/cloudflare/message-id.ts';
import { rewriteOriginator } from '@pmail/core/compose/originator.ts';
import { sha256Hex } from '@pmail/core/hash.ts';
import type { IdentityId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import type { MailTransport, OutgoingMessage, Provider, TransportResult } from '@pmail/core/transport/types.ts';
import type { ClaimedSend } from '../mailbox/claimed-send.ts';
import type { ConsumerWorld, MailContent } from './world.ts';

/** Whose message it is, and where copies of it that are meant for us come in. */
export interface Sender {
  identity_id: IdentityId;
  platform_domain: string;
}

export interface HandOver {
  result: TransportResult;
  /** What was handed over, and to whom; null when it did not come to that. */
  call: { transport: MailTransport; message: OutgoingMessage } | null;
}

/** Reads the stored message and hands it over. Whatever goes wrong before the call is certain not to have sent. */
export async function handOver(world: ConsumerWorld, send: ClaimedSend, sender: Sender): Promise<HandOver> {
  const transport = world.transports[send.provider];
  if (transport === undefined) return notSent('transport_not_configured', `no ${send.provider} transport here`);
  const prepared = await prepare(world, send, sender);
  if ('result' in prepared) return prepared;
  world.mark('consume.message_read');
  const call = { transport, message: prepared };
  try {
    return { result: await transport.send(prepared, deadlineOf(send.provider)), call };
  } catch (error) {
    // A transport that throws has lost track of its own call.
    world.log('error', 'transport_threw', { message_id: send.message_id, provider: send.provider, error: name(error) });
    return { result: { kind: 'unknown', reason: 'transport_connection_lost', detail: name(error) }, call };
  }
}

/** An exchange with a relay is many questions, each with a time of its own. */
function deadlineOf(provider: Provider): number {
  return provider === 'smtp' ? LIMITS.smtp_exchange_ms_max : LIMITS.transport_deadline_ms;
}

async function prepare(world: ConsumerWorld, send: ClaimedSend, sender: Sender): Promise<OutgoingMessage | HandOver> {
  try {
    const stored = await world.blobs.get(send.r2_key);
    if (stored === null) return notSent('stored_message_missing', 'the stored message is not there');
    if ((await sha256Hex(new Uint8Array(stored))) !== send.mime_sha256) {
      return notSent('stored_message_different', 'the stored message is not the one that was accepted');
    }
    return await outgoing(world, send, stored, sender);
  } catch (error) {
    return notSent('stored_message_unreadable', name(error));
  }
}

export function notSent(code: string, detail: string): HandOver {
  return { result: { kind: 'retry_later', class: 'paused', code, detail, refused: [] }, call: null };
}

const NO_CONTENT: MailContent = { text: null, html: null, headers: [], attachments: [] };

async function outgoing(
  world: ConsumerWorld,
  send: ClaimedSend,
  stored: Uint8Array,
  sender: Sender,
): Promise<OutgoingMessage> {
  const { message_id, provider, from, reply_to, to, cc, bcc, subject } = send;
  const mime = send.fallback ? rewriteOriginator(stored, from.address, reply_to) : stored;
  // Cloudflare alone takes a message in fields, and alone keeps the Message-ID that it makes to itself.
  const structured = provider === 'cloudflare';
  const journaled = structured && world.message_ids.strategy === 'journal';
  return {
    message_id,
    from,
    reply_to,
    to,
    cc,
    bcc,
    subject,
    ...(structured ? await world.content(mime) : NO_CONTENT),
    mime,
    journal_bcc: journaled ? journalAddress(message_id, sender.identity_id, sender.platform_domain) : null,
  };
}

function name(error: unknown): string {
  return error instanceof Error ? error.name : 'unknown';
}
