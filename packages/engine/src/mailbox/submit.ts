import { checkLate, planSend } from '@pmail/core/policy/pipeline.ts';
import type { LateFacts } from '@pmail/core/policy/types.ts';
import { type Refusal, refuse } from '@pmail/core/result.ts';
import { rfc3339, rfc3339OrNull } from '@pmail/core/time.ts';
import type { ReserveAnswer } from '../quota/types.ts';
import { commit } from './commit.ts';
import { notAskedAbout, sendContext } from './context.ts';
import { emit } from './events.ts';
import { errorName, giveUp } from './give-up.ts';
import { lookUpKey } from './ledger.ts';
import { objectsOf, type StoredObject } from './objects.ts';
import { type PreparedSend, prepareSend } from './prepare.ts';
import { noticeRestore } from './restore.ts';
import type { SubmitAnswer, SubmitRequest } from './submit-types.ts';
import { ensureEntry, guardEntry } from './work.ts';
import type { MailboxWorld } from './world.ts';

/**
 * Takes a send from request to accepted message: ledger, policy, composition, the object store beside the quota, then
 * one transaction. Everything before the transaction can be thrown away; after it the send is never lost.
 */
export async function submit(world: MailboxWorld, request: SubmitRequest): Promise<SubmitAnswer> {
  const known = lookUpKey(world.sql, request.key_hash, request.fingerprint, world.now());
  if (known !== undefined) return known.ok ? { ok: true, message: known.message, deduplicated: true } : known;
  if (world.inFlight.has(request.key_hash)) return refuse('request_in_progress');
  // A key that looks new may have made an email since the time this mailbox was put back to.
  if (noticeRestore(world, request.last_sequence)) return refuse('unavailable', { step: 'ledger' });
  world.inFlight.add(request.key_hash);
  try {
    return await guardEntry(world, () => accept(world, request));
  } finally {
    world.inFlight.delete(request.key_hash);
  }
}

const NO_FACTS: LateFacts = { composed_bytes: 0, reservation: { kind: 'ok' }, lock_held_until: null };

async function accept(world: MailboxWorld, request: SubmitRequest): Promise<SubmitAnswer> {
  const subject = sendContext(world.sql, request, world.now());
  const unknown = notAskedAbout(subject.context);
  if (unknown.length > 0) return { ok: false, code: 'directory_needed', recipients: unknown };
  const planned = planSend(subject.context);
  if (!planned.ok) return planned;
  const plan = planned.value;
  world.mark('submit.planned');

  const prepared = await prepareSend(world, request, subject, plan);
  if (!prepared.ok) return prepared;
  const { send } = prepared;
  world.mark('submit.composed');
  const tooLarge = checkLate('size', subject.context, plan, { ...NO_FACTS, composed_bytes: send.composed.mime.length });
  if (tooLarge !== null) return tooLarge;

  world.storing.add(send.message_id);
  try {
    const objects = objectsOf(world, send);
    const secured = await secure(world, send, objects);
    if (!secured.ok) return secured.refusal;
    return await commit(world, send, objects, secured.reservation);
  } finally {
    world.storing.delete(send.message_id);
    if (world.rebuild.awaited) world.rebuild.turned_away.add(send.message_id);
  }
}

type Secured = { ok: true; reservation: ReserveAnswer | null } | { ok: false; refusal: Refusal };

/** Stores the objects and reserves the quota side by side. When either fails, neither is kept. */
async function secure(world: MailboxWorld, send: PreparedSend, objects: StoredObject[]): Promise<Secured> {
  const units = send.plan.recipients.filter(({ filtered }) => filtered === null).length;
  const [stored, reserved, registered] = await Promise.allSettled([
    Promise.all(objects.map(({ key, bytes, metadata }) => world.blobs.put(key, bytes, metadata))),
    units === 0 ? Promise.resolve(null) : reserve(world, send, units),
    ensureEntry(world),
  ]);
  world.mark('submit.stored');
  const give = async (refusal: Refusal): Promise<Secured> => {
    await giveUp(world, send, objects, units > 0);
    return { ok: false, refusal };
  };
  for (const [step, outcome] of [
    ['store', stored],
    ['quota', reserved],
    ['registry', registered],
  ] as const) {
    if (outcome.status === 'fulfilled') continue;
    world.log('error', 'submit_step_failed', { step, message_id: send.message_id, error: errorName(outcome.reason) });
    return give(refuse('unavailable', { step }));
  }
  const reservation = reserved.status === 'fulfilled' ? reserved.value : null;
  const refusal = reservation === null ? null : quotaRefusal(world, send, reservation);
  if (refusal !== null) return give(refusal);
  world.mark('submit.reserved');
  return { ok: true, reservation };
}

function reserve(world: MailboxWorld, send: PreparedSend, units: number): Promise<ReserveAnswer> {
  const { identity, tenant } = send.request.directory;
  return world.quota.reserve({
    identity_id: world.owner.identity_id,
    ref: send.message_id,
    units,
    identity_cap: identity.send_policy.daily_cap ?? tenant.policy.identity_daily_send_cap,
    tenant_cap: identity.is_system ? null : tenant.policy.tenant_daily_send_cap,
    timezone: tenant.timezone,
    gates: send.attachments.length > 0 ? ['storage_gb'] : [],
  });
}

function quotaRefusal(world: MailboxWorld, send: PreparedSend, answer: ReserveAnswer): Refusal | null {
  if (answer.kind === 'released') return refuse('unavailable', { step: 'quota' });
  if (answer.kind === 'denied' && answer.first_in_period) {
    const { feature, granted, resets_at } = answer;
    world.sql.transaction(() => {
      emit(world, 'billing.limit_reached', { feature, granted, resets_at: rfc3339OrNull(resets_at) });
    });
  }
  return checkLate('quota', send.subject.context, send.plan, { ...NO_FACTS, reservation: reservationFacts(answer) });
}

function reservationFacts(answer: Exclude<ReserveAnswer, { kind: 'released' }>): LateFacts['reservation'] {
  switch (answer.kind) {
    case 'ok':
      return { kind: 'ok' };
    case 'cap_reached':
      return { kind: 'cap_reached', scope: answer.scope, resets_at: rfc3339(answer.resets_at) };
    case 'denied': {
      const { feature, granted, used, resets_at } = answer;
      return { kind: 'denied', feature, granted, used, resets_at: rfc3339OrNull(resets_at) };
    }
  }
}
