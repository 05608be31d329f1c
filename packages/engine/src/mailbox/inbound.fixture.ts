import { sha256Hex } from '@pmail/core/hash.ts';
import { rawKey } from '@pmail/core/storage/keys.ts';
import type { IngestRequest } from './ingest.ts';
import { JO, type MailboxRig } from './mailbox.fixture.ts';

export const DESK = 'desk@acme.example.com';

export interface MailOptions {
  /** What makes the bytes; two mails with the same are the same mail. */
  raw?: string;
  request?: Partial<Omit<IngestRequest, 'parsed'>>;
  parsed?: Partial<IngestRequest['parsed']>;
}

let mails = 0;

/** Mail from Jo to the desk, as the consumer hands it over. */
export async function mail(rig: MailboxRig, options: MailOptions = {}): Promise<IngestRequest> {
  const n = ++mails;
  const message_id = rig.newId('msg', rig.clock.now);
  return {
    message_id,
    r2_key: rawKey(rig.owner, message_id),
    raw_size: 1_234,
    raw_sha256: await sha256Hex(options.raw ?? `mail ${n}`),
    envelope_to: DESK,
    token: { kind: 'absent' },
    received_at: rig.clock.now,
    own_addresses: [DESK, 'desk.acme@agents.example'],
    webhook_text_bytes: 16_384,
    loopback: null,
    ...options.request,
    parsed: {
      from: { address: JO, name: 'Jo' },
      reply_to: [],
      to: [{ address: DESK, name: '' }],
      cc: [],
      subject: 'Question',
      sent_at: rig.clock.now - 5_000,
      rfc_message_id: `mail-${n}@example.net`,
      in_reply_to: [],
      references: [],
      text: 'When does it open?',
      html_sanitized: null,
      kind: 'normal',
      hop: 0,
      parse_degraded: false,
      attachments: [],
      ...options.parsed,
    },
  };
}

export async function arrive(rig: MailboxRig, options: MailOptions = {}): ReturnType<MailboxRig['engine']['ingest']> {
  return rig.engine.ingest(await mail(rig, options));
}
