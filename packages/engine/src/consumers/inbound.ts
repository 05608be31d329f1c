import { detailOf } from '@pmail/core/address/address.ts';
import type { DeliveryEvent } from '@pmail/core/delivery/events.ts';
import { sha256Hex } from '@pmail/core/hash.ts';
import type { InboundKind } from '@pmail/core/message/request.ts';
import type { InboundJob } from '@pmail/core/queue/jobs.ts';
import { checkThreadToken, type ThreadKey, type TokenCheck, tokenKid } from '@pmail/core/threading/token.ts';
import { testProviderId } from '@pmail/core/transport/simulator-scripts.ts';
import { readScope } from '../directory/facts.ts';
import type { IngestAttachment } from '../mailbox/ingest.ts';
import type { ParsedMail } from '../parsed-mail.ts';
import { ACK, type ConsumerWorld, type Disposition } from './world.ts';

export interface InboundWorld extends ConsumerWorld {
  /** Never throws, whatever the bytes are. */
  parse: (raw: Uint8Array) => Promise<ParsedMail>;
  /** Keys that may have signed a thread token, the one in use first; `kid` is the one that it names. */
  threadKeys: (kid: string) => Promise<ThreadKey[]>;
}

/** From this hop count on mail counts as written by a machine, whatever else it says. */
const AUTOMATED_HOPS = 20;

/** One arrived mail: read, parse, store in its mailbox, then the bytes of its attachments. */
export async function consumeInbound(world: InboundWorld, job: InboundJob): Promise<Disposition> {
  const scope = await readScope(world.db, job.identity_id, world.now(), world.deployment);
  const gone = scope === undefined || (scope.identity.status !== 'active' && scope.identity.status !== 'paused');
  const raw = gone ? null : await world.blobs.get(job.r2_key);
  if (gone || raw === null) {
    world.count(gone ? 'inbound_identity_gone_total' : 'inbound_raw_missing_total');
    if (gone) await world.blobs.delete([job.r2_key]);
    await reportLoopback(world, job, gone ? 'bounced' : 'failed');
    return ACK;
  }
  const parsed = await world.parse(raw);
  const attachments = await describeAttachments(world, parsed, job.received_at);
  const answer = await world.mailbox({ ...job, mailbox_do_id: scope.mailbox_do_id }).ingest({
    message_id: job.message_id,
    r2_key: job.r2_key,
    raw_size: raw.length,
    raw_sha256: await sha256Hex(new Uint8Array(raw)),
    envelope_to: job.envelope_to,
    token: await tokenOf(world, job),
    received_at: job.received_at,
    own_addresses: scope.addresses.map(({ address }) => address),
    webhook_text_bytes: scope.tenant.policy.webhook_text_bytes,
    loopback:
      job.loopback === null
        ? null
        : { message_id: job.loopback.message_id, same_mailbox: job.loopback.identity_id === job.identity_id },
    parsed: { ...parsed, kind: kindOf(parsed), attachments },
  });
  await Promise.all(
    answer.attachments.map(async ({ r2_key: key }, index) => {
      const content = parsed.attachments[index]?.content;
      if (content !== undefined) await world.blobs.put(key, content, metadata(job, attachments[index]));
    }),
  );
  world.mark('inbound.stored');
  await reportLoopback(world, job, 'delivered');
  return ACK;
}

/** The token behind the plus of the address the mail was sent to; one in a header proves nothing. */
async function tokenOf(world: InboundWorld, { envelope_to: to, identity_id }: InboundJob): Promise<TokenCheck> {
  const detail = detailOf(to);
  const kid = detail === null ? undefined : tokenKid(detail);
  if (detail === null || kid === undefined) return { kind: 'absent' };
  const keys = await world.threadKeys(kid);
  const check = await checkThreadToken(keys, identity_id, detail);
  if (check.kind === 'invalid') world.count('thread_token_invalid_total');
  // Says how much of the mail still on its way a revocation would cut off.
  if (check.kind === 'valid' && check.kid !== keys[0]?.kid) world.count('thread_token_previous_key_total');
  return check;
}

function kindOf(parsed: ParsedMail): InboundKind {
  return parsed.auto_submitted || parsed.hop >= AUTOMATED_HOPS ? 'automated' : 'normal';
}

function describeAttachments(world: InboundWorld, parsed: ParsedMail, at: number): Promise<IngestAttachment[]> {
  return Promise.all(
    parsed.attachments.map(async ({ content, ...rest }) => ({
      id: world.newId('att', at),
      ...rest,
      size: content.length,
      sha256: await sha256Hex(content),
    })),
  );
}

function metadata(job: InboundJob, attachment: IngestAttachment | undefined): Record<string, string> {
  const { tenant_id: tenant, identity_id: identity, message_id: message } = job;
  return { tenant, identity, message, sha256: attachment?.sha256 ?? '' };
}

type CopyReport = Pick<
  DeliveryEvent,
  'hard' | 'smtp_code' | 'enhanced_code' | 'smtp_response' | 'outcome' | 'suppress'
>;

/** What a receiving server would say. That we have lost a copy is no fault of its recipient, who stays reachable. */
const COPY_REPORTS: Record<'delivered' | 'bounced' | 'failed', CopyReport> = {
  delivered: {
    hard: false,
    smtp_code: '250',
    enhanced_code: '2.0.0',
    smtp_response: '250 2.0.0 OK',
    outcome: 'delivered',
    suppress: null,
  },
  bounced: {
    hard: true,
    smtp_code: '550',
    enhanced_code: '5.1.1',
    smtp_response: '550 5.1.1 No such recipient here',
    outcome: 'bounced',
    suppress: 'hard_bounce',
  },
  failed: {
    hard: false,
    smtp_code: '554',
    enhanced_code: '5.3.0',
    smtp_response: '554 5.3.0 The copy was lost',
    outcome: 'other',
    suppress: null,
  },
};

/** Tells the sending mailbox what became of its copy, as a receiving server would. */
async function reportLoopback(world: InboundWorld, job: InboundJob, kind: keyof typeof COPY_REPORTS): Promise<void> {
  if (job.loopback === null) return;
  const { tenant_id, identity_id, message_id } = job.loopback;
  const event: DeliveryEvent = {
    source: 'loopback',
    event_id: `loop:${message_id}:${job.envelope_to}:0`,
    provider_message_id: testProviderId(message_id),
    our_message_id: message_id,
    sender: job.envelope_from,
    recipient: job.envelope_to,
    subject: null,
    kind,
    ...COPY_REPORTS[kind],
    occurred_at: world.now(),
  };
  await world.outbound.send({ v: 1, kind: 'transport_event', tenant_id, identity_id, event });
}
