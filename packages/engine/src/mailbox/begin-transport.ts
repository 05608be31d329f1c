import type { Address, Mailbox } from '@pmail/core/address/address.ts';
import type { OutcomePlan } from '@pmail/core/delivery/outcome.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import type { OutboundKind } from '@pmail/core/message/request.ts';
import { decideTransport, type TransportDecision, type TransportFacts } from '@pmail/core/transport/choose.ts';
import type { Provider } from '@pmail/core/transport/types.ts';
import { setDeadlineNoLater } from '../alarms.ts';
import { findAttempt, startAttempt } from './attempts.ts';
import { expireClaim } from './claim-expiry.ts';
import { isWaiting, readClaim, writeClaim } from './claims.ts';
import { applyOutcome, deferUnsent, SETTLE_DECIDED } from './leave-queue.ts';
import { findMessage, readDeliveries } from './messages.ts';
import { noticeRestore } from './restore.ts';
import { type DeliveryRow, type MessageRow, parseJson } from './rows.ts';
import { refreshLock } from './threads.ts';
import type { MailboxWorld } from './world.ts';

export interface BeginRequest {
  message_id: MessageId;
  /**
   * Drawn by the consumer for this one run. Asking again with the same token, because the answer was lost, gives the
   * same claim; any other run has another token and gets nothing.
   */
  claim_token: string;
  facts: TransportFacts;
  /** The highest number the event index knew of this mailbox before the call; null when it knows none. */
  last_sequence: number | null;
}

/** What a consumer needs to make the one transport call it has claimed. */
export interface ClaimedSend {
  message_id: MessageId;
  claim_token: string;
  provider: Provider;
  r2_key: string;
  mime_sha256: string;
  from: Mailbox;
  reply_to: Address | null;
  subject: string;
  to: Address[];
  cc: Address[];
  bcc: Address[];
  /** Whether From differs from the composed one because the domain fell back. */
  fallback: boolean;
}

export type BeginAnswer =
  /** Not queued any more, or unknown here: nothing to do. */
  | { kind: 'not_queued' }
  | { kind: 'already_claimed' }
  /** An earlier claim had gone stale; the message is uncertain now. */
  | { kind: 'uncertain' }
  /** Ended without a transport call (no usable domain). */
  | { kind: 'ended' }
  /** May not leave yet; try again after the delay. */
  | { kind: 'deferred'; delay_ms: number }
  | { kind: 'claimed'; send: ClaimedSend };

/** Claims the transport call of a message. One transaction; at most one caller ever gets `claimed` per attempt. */
export function beginTransport(world: MailboxWorld, request: BeginRequest): BeginAnswer {
  // What a mailbox that was put back takes for queued may long have left.
  noticeRestore(world, request.last_sequence);
  const answer = world.sql.transaction(() => begin(world, request));
  if (answer.kind === 'claimed') world.mark('claim.committed');
  return answer;
}

function begin(world: MailboxWorld, request: BeginRequest): BeginAnswer {
  const { sql } = world;
  const now = world.now();
  const row = findMessage(sql, request.message_id);
  if (row === undefined || !isWaiting(sql, row.id)) return { kind: 'not_queued' };
  const claim = readClaim(sql, row.id);
  if (claim !== undefined) {
    const stale = now - claim.claimed_at >= world.waits.claim_ttl_ms;
    const attempt = claim.token === request.claim_token ? findAttempt(sql, claim.token) : undefined;
    if (!stale && attempt !== undefined) {
      return { kind: 'claimed', send: claimedSend(sql, row, claim.token, attempt.provider) };
    }
    if (!stale) return { kind: 'already_claimed' };
    // Also for its own holder: a call that began only now could outlast what everyone else was told.
    expireClaim(world, row, claim);
    return { kind: 'uncertain' };
  }
  // A claim that was already used up: its call came late, after its own outcome.
  if (findAttempt(sql, request.claim_token) !== undefined) return { kind: 'not_queued' };
  const queued = readDeliveries(sql, row.rowid).filter(({ status }) => status === 'queued');
  if (queued.length === 0) {
    // Reports have ended everyone it still waited for.
    applyOutcome(world, row, NOBODY_LEFT, SETTLE_DECIDED);
    return { kind: 'ended' };
  }
  const decision = decideTransport(request.facts, {
    from: row.from_address ?? '',
    kind: row.kind as OutboundKind,
    recipients: queued.map(({ address }) => address),
  });
  return act(world, row, request.claim_token, decision, queued);
}

function act(
  world: MailboxWorld,
  row: MessageRow,
  token: string,
  decision: TransportDecision,
  queued: DeliveryRow[],
): BeginAnswer {
  const { sql } = world;
  const now = world.now();
  switch (decision.kind) {
    case 'wait': {
      const delay = deferUnsent(world, row, 'the sending domain is not verified');
      return delay === null ? { kind: 'ended' } : { kind: 'deferred', delay_ms: delay };
    }
    case 'failed':
    case 'rejected':
      applyOutcome(world, row, endedPlan(decision, queued), SETTLE_DECIDED);
      return { kind: 'ended' };
    case 'send':
    case 'fallback': {
      writeClaim(sql, row.id, { token, claimed_at: now });
      startAttempt(sql, row.rowid, token, decision.provider, now);
      sql.run('UPDATE messages SET provider = ? WHERE rowid = ?', decision.provider, row.rowid);
      refreshLock(sql, row.thread_seq, row.id, now + LIMITS.thread_lock_claim_lease_ms);
      setDeadlineNoLater(world, 'claim', now + world.waits.claim_ttl_ms);
      world.mark('claim.in_transaction');
      return { kind: 'claimed', send: claimedSend(sql, row, token, decision.provider) };
    }
  }
}

const NOBODY_LEFT: OutcomePlan = {
  changes: [],
  retry: null,
  reason: null,
  detail: null,
  accepted: false,
  provider_message_id: null,
  rfc_message_id: null,
  unknown: false,
};

function endedPlan(
  decision: Extract<TransportDecision, { kind: 'failed' | 'rejected' }>,
  queued: DeliveryRow[],
): OutcomePlan {
  return {
    ...NOBODY_LEFT,
    changes: queued.map(({ address }) => ({
      address,
      status: decision.kind,
      smtp_code: null,
      enhanced_code: null,
      smtp_response: null,
    })),
    reason: decision.reason,
  };
}

function claimedSend(sql: MailboxWorld['sql'], row: MessageRow, token: string, provider: Provider): ClaimedSend {
  const queued = readDeliveries(sql, row.rowid).filter(({ status }) => status === 'queued');
  const field = (name: DeliveryRow['field']): Address[] =>
    queued.filter((delivery) => delivery.field === name).map(({ address }) => address);
  if (row.raw_r2_key === null || row.raw_sha256 === null) throw new Error('queued message without a stored copy');
  const [replyTo] = parseJson<Mailbox[]>(row.reply_to_json);
  return {
    message_id: row.id,
    claim_token: token,
    provider,
    r2_key: row.raw_r2_key,
    mime_sha256: row.raw_sha256,
    from: { address: row.from_address ?? '', name: row.from_name ?? '' },
    reply_to: replyTo?.address ?? null,
    subject: row.subject ?? '',
    to: field('to'),
    cc: field('cc'),
    bcc: field('bcc'),
    fallback: parseJson<string[]>(row.flags_json).includes('sent_via_fallback'),
  };
}
