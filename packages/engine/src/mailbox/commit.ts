import { LIMITS } from '@pmail/core/limits.ts';
import { checkLate, planSend } from '@pmail/core/policy/pipeline.ts';
import { type Refusal, refuse } from '@pmail/core/result.ts';
import type { ReserveAnswer } from '../quota/types.ts';
import { writeAcceptedSend } from './accept.ts';
import { sendContext } from './context.ts';
import { errorName, giveUp } from './give-up.ts';
import { lookUpKey } from './ledger.ts';
import { objectsOf, type StoredObject } from './objects.ts';
import { composeAgain, type PreparedSend, type ThreadPlace } from './prepare.ts';
import { isRestored } from './restore.ts';
import type { SubmitAnswer } from './submit-types.ts';
import { threadHeaders } from './thread-headers.ts';
import { lockedUntil, takeLock } from './threads.ts';
import type { MailboxWorld } from './world.ts';

type CommitResult =
  | { kind: 'committed'; answer: SubmitAnswer }
  | { kind: 'known'; answer: SubmitAnswer }
  | { kind: 'refused'; answer: Refusal }
  | { kind: 'busy'; until: number }
  /** The thread went on since the message was composed. It has the next turn in its thread, to be composed again. */
  | { kind: 'outdated'; place: ThreadPlace };

/**
 * The transaction, tried again in short steps while another message holds the thread. What the thread decides about a
 * message is looked at anew each time: the one before it may have got its id meanwhile, or used an automatic reply up.
 */
export async function commit(
  world: MailboxWorld,
  prepared: PreparedSend,
  objects: StoredObject[],
  reservation: ReserveAnswer | null,
): Promise<SubmitAnswer> {
  let send = prepared;
  let storedAt = world.now();
  const end = storedAt + LIMITS.thread_lock_wait_ms_max;
  const give = async (answer: SubmitAnswer): Promise<SubmitAnswer> => {
    await giveUp(world, send, objects, reservation !== null);
    return answer;
  };
  try {
    for (;;) {
      const current = send;
      const result = world.sql.transaction(() => commitOnce(world, current, reservation, end));
      switch (result.kind) {
        case 'committed':
          world.mark('submit.committed');
          world.background('enqueue', enqueue(world, send));
          return result.answer;
        case 'known':
        case 'refused':
          return await give(result.answer);
        case 'busy':
          if (world.now() + LIMITS.thread_lock_step_ms > end) return await give(busy(world, send, result.until));
          await world.sleep(LIMITS.thread_lock_step_ms);
          break;
        case 'outdated': {
          const pause = storedAt + LIMITS.object_rewrite_ms_min - world.now();
          if (pause > 0) await world.sleep(pause);
          const renewed = await renew(world, send, result.place);
          if (!renewed.ok) return await give(renewed);
          send = renewed.send;
          storedAt = world.now();
        }
      }
    }
  } finally {
    if (world.turns.get(prepared.thread.seq) === prepared.message_id) world.turns.delete(prepared.thread.seq);
  }
}

function commitOnce(
  world: MailboxWorld,
  send: PreparedSend,
  reservation: ReserveAnswer | null,
  end: number,
): CommitResult {
  const { request } = send;
  // The instance that began another request with this key may be gone; its commit is not.
  const known = lookUpKey(world.sql, request.key_hash, request.fingerprint, world.now());
  if (known !== undefined) {
    return { kind: 'known', answer: known.ok ? { ok: true, message: known.message, deduplicated: true } : known };
  }
  // The mailbox may have learned since that it was put back, and that its ledger is not whole.
  if (isRestored(world.sql)) return { kind: 'refused', answer: refuse('unavailable', { step: 'ledger' }) };
  if (!send.thread.is_new) {
    const waits = takeTurn(world, send, end);
    if (waits !== null) return waits;
  }
  const warnings = reservation?.kind === 'ok' ? reservation.warnings : [];
  const message = writeAcceptedSend(world, send, warnings);
  world.mark('submit.in_transaction');
  return { kind: 'committed', answer: { ok: true, message, deduplicated: false } };
}

/** Takes the thread's lock for a message that is as the thread wants it now, or says what stands against it. */
function takeTurn(
  world: MailboxWorld,
  send: PreparedSend,
  end: number,
): Exclude<CommitResult, { kind: 'committed' | 'known' }> | null {
  const { sql } = world;
  const now = world.now();
  const { seq } = send.thread;
  const next = world.turns.get(seq);
  if (next !== undefined && next !== send.message_id) return { kind: 'busy', until: now + LIMITS.thread_lock_lease_ms };
  const held = lockedUntil(sql, seq, send.message_id, now);
  if (held !== null) return { kind: 'busy', until: held };

  const subject = sendContext(sql, send.request, now);
  const planned = planSend(subject.context);
  if (!planned.ok) return { kind: 'refused', answer: planned };
  const { in_reply_to, references } = threadHeaders(sql, send.request, subject);
  const place = { in_reply_to, references, hop: planned.value.hop };
  // A thread that changes faster than a message can be composed does not keep it out for ever.
  if (now <= end && !isSamePlace(send, place)) {
    world.turns.set(seq, send.message_id);
    return { kind: 'outdated', place };
  }
  takeLock(sql, seq, send.message_id, now + LIMITS.thread_lock_lease_ms);
  return null;
}

function isSamePlace(a: ThreadPlace, b: ThreadPlace): boolean {
  return (
    a.in_reply_to === b.in_reply_to && a.hop === b.hop && JSON.stringify(a.references) === JSON.stringify(b.references)
  );
}

/** Composes the message again at its new place in the thread, and stores it over its former copy. */
async function renew(
  world: MailboxWorld,
  send: PreparedSend,
  place: ThreadPlace,
): Promise<{ ok: true; send: PreparedSend } | Refusal> {
  const renewed = await composeAgain(world, send, place, world.now());
  const tooLarge = checkLate('size', send.subject.context, send.plan, {
    composed_bytes: renewed.composed.mime.length,
    reservation: { kind: 'ok' },
    lock_held_until: null,
  });
  if (tooLarge !== null) return tooLarge;
  const [copy] = objectsOf(world, renewed);
  if (copy === undefined) throw new Error('a send without a stored copy');
  try {
    await world.blobs.put(copy.key, copy.bytes, copy.metadata);
  } catch (error) {
    world.log('error', 'submit_step_failed', {
      step: 'store',
      message_id: send.message_id,
      error: errorName(error),
    });
    return refuse('unavailable', { step: 'store' });
  }
  world.mark('submit.stored');
  return { ok: true, send: renewed };
}

function busy(world: MailboxWorld, { subject, plan }: PreparedSend, until: number): Refusal {
  const refusal = checkLate('lock', { ...subject.context, now: world.now() }, plan, {
    composed_bytes: 0,
    reservation: { kind: 'ok' },
    lock_held_until: until,
  });
  return refusal ?? refuse('thread_busy', { retry_after: 1 });
}

/** A lost pointer loses nothing: the dispatch alarm queues the message again. */
async function enqueue(world: MailboxWorld, send: PreparedSend): Promise<void> {
  if (send.plan.recipients.every(({ filtered }) => filtered !== null)) return;
  await world.outbound.send({
    v: 1,
    kind: 'send',
    ...world.owner,
    message_id: send.message_id,
    request_id: send.request.request_id,
  });
  world.mark('submit.enqueued');
}
