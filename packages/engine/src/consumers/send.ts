import { domainOf } from '@pmail/core/address/address.ts';
import { derivedId, idTime } from '@pmail/core/ids.ts';
import type { SendJob } from '@pmail/core/queue/jobs.ts';
import { mintThreadToken } from '@pmail/core/threading/token.ts';
import type { TransportResult } from '@pmail/core/transport/types.ts';
import { auditStatement } from '../directory/audit.ts';
import { readScope, type SendScope } from '../directory/facts.ts';
import type { Route } from '../directory/routing.ts';
import type { BeginAnswer, BeginRequest } from '../mailbox/begin-transport.ts';
import type { ClaimedSend } from '../mailbox/claimed-send.ts';
import { handOver, type Sender } from './hand-over.ts';
import { type AfterRefusal, afterRefusal } from './next-call.ts';
import { mayUseRelay } from './relay-places.ts';
import { ACK, type ConsumerWorld, type Disposition, type MailboxRemote } from './world.ts';

/**
 * One pointer of the send queue: look again at who sends, claim, make the one transport call, report. A throw leaves
 * the job to the queue, which is safe everywhere: before the claim nothing has happened, after it nobody else gets one.
 */
export async function consumeSend(world: ConsumerWorld, job: SendJob): Promise<Disposition> {
  world.mark('consume.start');
  const read = (): Promise<SendScope | undefined> =>
    readScope(world.db, job.identity_id, world.now(), world.deployment);
  const scope = await read();
  world.mark('consume.scope_read');
  if (scope === undefined || world.relay_places === undefined || !mayUseRelay(scope)) return send(world, job, scope);
  // Before the claim, which lives for minutes only: who waits for a place must not use up the time of the call.
  const place = await world.relay_places.take();
  try {
    return await send(world, job, place.waited ? await read() : scope);
  } finally {
    place.give();
  }
}

async function send(world: ConsumerWorld, job: SendJob, scope: SendScope | undefined): Promise<Disposition> {
  if (scope === undefined || scope.tenant.id !== job.tenant_id) {
    world.count('outbound_identity_gone_total');
    return ACK;
  }
  const route: Route = { ...job, mailbox_do_id: scope.mailbox_do_id };
  const mailbox = world.mailbox(route);
  const stopped = whyStopped(scope);
  if (stopped !== null) return stop(world, job, mailbox, stopped);
  const answer = await begin(world, mailbox, job, {
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
    case 'needs_thread_token':
      throw new Error('asked for a thread token that it has');
    case 'deferred':
      return requeue(world, job, answer.delay_ms);
    case 'claimed':
      return transport(
        world,
        { job, route, mailbox, sender: { ...job, platform_domain: scope.platform_domain } },
        answer.send,
      );
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

/** Claims the call. Only a message that has to leave as the platform address needs a second question, with a token. */
async function begin(
  world: ConsumerWorld,
  mailbox: MailboxRemote,
  job: SendJob,
  request: BeginRequest,
): Promise<BeginAnswer> {
  const answer = await claim(world, mailbox, request);
  if (answer.kind !== 'needs_thread_token') return answer;
  const { thread_seq } = answer;
  const key = await world.threadKey();
  const token = key === null ? null : await mintThreadToken(key, job.identity_id, thread_seq);
  return claim(world, mailbox, { ...request, thread_token: { thread_seq, token } });
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

/** One run's claim, and whose message it is for. */
interface Claimed {
  job: SendJob;
  route: Route;
  mailbox: MailboxRemote;
  sender: Sender;
}

/**
 * Makes the claimed call and reports it. A refusal because of some recipients is followed, under the same claim, by a call
 * for the others that the mailbox claims in the moment in which it records the refusal.
 */
async function transport(world: ConsumerWorld, claimed: Claimed, first: ClaimedSend): Promise<Disposition> {
  const { job, route, mailbox, sender } = claimed;
  let send = first;
  for (;;) {
    world.mark('consume.claimed');
    const { result, call } = await handOver(world, send, sender);
    world.mark('consume.transport_done');
    const next: AfterRefusal =
      result.kind === 'suppressed'
        ? await afterRefusal(world, route, mailbox, send, result, call)
        : { kind: 'record', result };
    switch (next.kind) {
      case 'again':
        send = next.send;
        break;
      case 'ended':
        return ACK;
      case 'deferred':
        return requeue(world, job, next.delay_ms);
      case 'record': {
        const delay = await report(world, mailbox, send, next.result);
        world.mark('consume.recorded');
        await askForCheck(world, send, next.result);
        return delay === null ? ACK : requeue(world, job, delay);
      }
    }
  }
}

/** A relay's transport asks by itself, as it knows more closely what was wrong. */
async function askForCheck(world: ConsumerWorld, { provider, from }: ClaimedSend, result: TransportResult) {
  if (result.kind !== 'rejected' || result.reason !== 'sender_domain_unavailable' || provider === 'smtp') return;
  try {
    await world.requestDomainCheck(domainOf(from.address), 'sender_domain_unavailable');
  } catch (error) {
    world.log('warn', 'domain_check_not_asked', { error: name(error) });
  }
  world.mark('consume.check_asked');
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

/** A new pointer, so that the queue's own count of deliveries begins again; the old one is done. */
async function requeue(world: ConsumerWorld, job: SendJob, delayMs: number): Promise<Disposition> {
  await world.outbound.send(job, delayMs);
  world.mark('consume.requeued');
  return ACK;
}

function name(error: unknown): string {
  return error instanceof Error ? error.name : 'unknown';
}
