import { sha256Hex } from '@pmail/core/hash.ts';
import { derivedId, idTime } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import type { SendJob } from '@pmail/core/queue/jobs.ts';
import type { OutgoingMessage, TransportResult } from '@pmail/core/transport/types.ts';
import { auditStatement } from '../directory/audit.ts';
import { readScope, type SendScope } from '../directory/facts.ts';
import type { BeginAnswer, BeginRequest, ClaimedSend } from '../mailbox/begin-transport.ts';
import { ACK, type ConsumerWorld, type Disposition, type MailboxRemote } from './world.ts';

/**
 * One pointer of the send queue: look again at who sends, claim, make the one transport call, report. A throw leaves
 * the job to the queue, which is safe everywhere: before the claim nothing has happened, after it nobody else gets one.
 */
export async function consumeSend(world: ConsumerWorld, job: SendJob): Promise<Disposition> {
  world.mark('consume.start');
  const scope = await readScope(world.db, job.identity_id, world.now(), world.deployment);
  world.mark('consume.scope_read');
  if (scope === undefined || scope.tenant.id !== job.tenant_id) {
    world.count('outbound_identity_gone_total');
    return ACK;
  }
  const mailbox = world.mailbox({ ...job, mailbox_do_id: scope.mailbox_do_id });
  const stopped = whyStopped(scope);
  if (stopped !== null) return stop(world, job, mailbox, stopped);
  const answer = await claim(world, mailbox, {
    message_id: job.message_id,
    claim_token: world.newToken(),
    facts: {
      tenant_mode: scope.tenant.mode,
      addresses: scope.addresses,
      domain_fallback: scope.tenant.policy.domain_fallback,
      ses_sending_paused: false,
    },
    last_sequence: scope.last_sequence,
  });
  switch (answer.kind) {
    case 'not_queued':
    case 'already_claimed':
    case 'uncertain':
    case 'ended':
      return ACK;
    case 'deferred':
      return requeue(world, job, answer.delay_ms);
    case 'claimed':
      return transport(world, job, mailbox, answer.send);
  }
}

function whyStopped({ identity, tenant }: SendScope): string | null {
  if (tenant.status !== 'active') return 'tenant_suspended';
  if (identity.status === 'paused') return 'identity_paused';
  return identity.status === 'active' ? null : 'identity_deleted';
}

/** The identity or tenant may not send any more: what was not handed over yet is canceled. */
async function stop(world: ConsumerWorld, job: SendJob, mailbox: MailboxRemote, reason: string): Promise<Disposition> {
  const answer = await mailbox.stopSend(job.message_id, reason);
  if (answer.kind === 'deferred') return requeue(world, job, answer.delay_ms);
  if (answer.kind === 'canceled') {
    await world.db.batch([
      auditStatement({
        id: derivedId('aud', idTime(job.message_id), await world.hmac(`message.cancel:${job.message_id}`)),
        tenant_id: job.tenant_id,
        actor_key_id: null,
        action: 'message.cancel',
        target_type: 'message',
        target_id: job.message_id,
        details: { reason, actor: 'system' },
        request_id: job.request_id,
        at: world.now(),
      }),
    ]);
  }
  return ACK;
}

/**
 * The claim's answer can be lost on the way. This run has not dialed, so it may ask once more with its own token; after
 * that the claim is left to go stale, because nobody can tell any more.
 */
async function claim(world: ConsumerWorld, mailbox: MailboxRemote, request: BeginRequest): Promise<BeginAnswer> {
  try {
    return await mailbox.beginTransport(request);
  } catch (error) {
    world.log('warn', 'claim_answer_lost', { message_id: request.message_id, error: name(error) });
    return mailbox.beginTransport(request);
  }
}

async function transport(
  world: ConsumerWorld,
  job: SendJob,
  mailbox: MailboxRemote,
  send: ClaimedSend,
): Promise<Disposition> {
  world.mark('consume.claimed');
  const result = await attempt(world, send);
  world.mark('consume.transport_done');
  const answer = await report(world, mailbox, send, result);
  world.mark('consume.recorded');
  return answer === null ? ACK : requeue(world, job, answer);
}

/** The result is all that is known about the call, so losing it is worth a second try; recording it twice is harmless. */
async function report(
  world: ConsumerWorld,
  mailbox: MailboxRemote,
  send: ClaimedSend,
  result: TransportResult,
): Promise<number | null> {
  const request = { message_id: send.message_id, claim_token: send.claim_token, result };
  try {
    return (await mailbox.recordOutcome(request)).delay_ms;
  } catch (error) {
    world.log('warn', 'outcome_answer_lost', { message_id: send.message_id, error: name(error) });
    return (await mailbox.recordOutcome(request)).delay_ms;
  }
}

/** Reads the stored message and hands it over. Whatever goes wrong before the call is certain not to have sent. */
async function attempt(world: ConsumerWorld, send: ClaimedSend): Promise<TransportResult> {
  const transportFor = world.transports[send.provider];
  if (transportFor === undefined) return notSent('transport_not_configured', `no ${send.provider} transport here`);
  let mime: Uint8Array | null;
  try {
    mime = await world.blobs.get(send.r2_key);
  } catch (error) {
    return notSent('stored_message_unreadable', name(error));
  }
  if (mime === null) return notSent('stored_message_missing', 'the stored message is not there');
  if ((await sha256Hex(new Uint8Array(mime))) !== send.mime_sha256) {
    return notSent('stored_message_different', 'the stored message is not the one that was accepted');
  }
  world.mark('consume.message_read');
  try {
    return await transportFor.send(outgoing(send, mime), LIMITS.transport_deadline_ms);
  } catch (error) {
    // A transport that throws has lost track of its own call.
    world.log('error', 'transport_threw', { message_id: send.message_id, provider: send.provider, error: name(error) });
    return { kind: 'unknown', reason: 'transport_connection_lost', detail: name(error) };
  }
}

function notSent(code: string, detail: string): TransportResult {
  return { kind: 'retry_later', class: 'paused', code, detail, refused: [] };
}

function outgoing(send: ClaimedSend, mime: Uint8Array): OutgoingMessage {
  return {
    message_id: send.message_id,
    from: send.from,
    reply_to: send.reply_to,
    to: send.to,
    cc: send.cc,
    bcc: send.bcc,
    subject: send.subject,
    text: null,
    html: null,
    headers: [],
    attachments: [],
    mime,
    journal_bcc: null,
  };
}

/** A new pointer, so that the queue's own count of deliveries begins again; the old one is done. */
async function requeue(world: ConsumerWorld, job: SendJob, delayMs: number): Promise<Disposition> {
  await world.outbound.send(job, delayMs);
  world.mark('consume.requeued');
  return ACK;
}

function name(error: unknown): string {
  return error instanceof Error ? error.name : 'unknown';
}
