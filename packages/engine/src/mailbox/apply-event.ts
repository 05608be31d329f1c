import type { AbuseOutcome, DeliveryEvent, SuppressionReason } from '@pmail/core/delivery/events.ts';
import { rollUp } from '@pmail/core/delivery/rollup.ts';
import type { DeliveryStatus, OutboundStatus } from '@pmail/core/delivery/status.ts';
import { transition } from '@pmail/core/delivery/transitions.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { emit } from './events.ts';
import { endFollowups, followupOrdinal } from './followups.ts';
import { emitFailed, emitRejected } from './leave-queue.ts';
import { findMessage, readDeliveries } from './messages.ts';
import { findByProviderId, recordAcceptance } from './provider-ids.ts';
import { payQuota } from './quota-tasks.ts';
import { reconcile } from './reconcile.ts';
import { type DeliveryRow, type MessageRow, parseJson } from './rows.ts';
import { oweAcceptance } from './settle-uncertain.ts';
import type { MailboxWorld } from './world.ts';

export type EventAnswer =
  /** No message of this mailbox: the event may be early, or not ours. */
  | { kind: 'not_found'; ambiguous: boolean }
  | {
      kind: 'applied' | 'duplicate' | 'ignored' | 'reconciled';
      message_id: MessageId;
      /** What the consumer still has to do about it; the same for a repeat, because the first may have died. */
      outcome: AbuseOutcome | null;
      suppress: SuppressionReason | null;
    };

type DeliveryRowWithIds = DeliveryRow & { provider_event_ids_json: string };

/** Applies a provider's report to the delivery it is about. One transaction; a repeat changes nothing. */
export async function applyEvent(world: MailboxWorld, event: DeliveryEvent): Promise<EventAnswer> {
  const answer = world.sql.transaction(() => apply(world, event));
  // An uncertain recipient that has become an accepted one is owed to the quota.
  if (answer.kind === 'applied' || answer.kind === 'reconciled') await payQuota(world);
  return answer;
}

function apply(world: MailboxWorld, event: DeliveryEvent): EventAnswer {
  const { sql } = world;
  const { provider_message_id: providerId, recipient } = event;
  let row = providerId === null ? undefined : findByProviderId(sql, providerId, recipient);
  let reconciled = false;
  if (row === undefined) {
    const candidate = reconcile(world, event);
    if (candidate.kind !== 'one') return { kind: 'not_found', ambiguous: candidate.kind === 'several' };
    row = candidate.row;
    reconciled = true;
  }
  const ordinal = followupOrdinal(event);
  if (ordinal !== undefined) endFollowups(world, row.rowid, event.recipient, ordinal);
  const delivery = sql.first<DeliveryRowWithIds>(
    'SELECT * FROM deliveries WHERE message_rowid = ? AND address = ?',
    row.rowid,
    event.recipient,
  );
  const effects = { message_id: row.id, outcome: event.outcome, suppress: event.suppress };
  // Nobody this message was sent to: nothing to change and nobody to suppress.
  if (delivery === undefined) return { kind: 'duplicate', message_id: row.id, outcome: null, suppress: null };
  const seen = parseJson<string[]>(delivery.provider_event_ids_json);
  if (seen.includes(event.event_id)) return { kind: 'duplicate', ...effects };
  const step = transition(delivery.status, event.kind);
  sql.run(
    'UPDATE deliveries SET provider_event_ids_json = ? WHERE message_rowid = ? AND address = ?',
    JSON.stringify([...seen, event.event_id].slice(-LIMITS.event_ids_kept_max)),
    row.rowid,
    event.recipient,
  );
  if (step === 'ignored') return { kind: 'ignored', ...effects };
  writeDelivery(world, row, event, step === 'details' ? delivery.status : step.to);
  // The provider reports about it, so it had taken it; nothing was counted while that was not known.
  if (delivery.status === 'uncertain' && event.kind !== 'rejected') {
    oweAcceptance(world, row, [delivery.position]);
    recordAcceptance(sql, row, null, null);
  }
  world.mark('event.in_transaction');
  const status = updateMessage(world, row);
  if (reconciled) emit(world, 'message.reconciled', { message_id: row.id, status });
  // New details under the same status are not news.
  if (step !== 'details') {
    emitDelivery(world, row, event);
    emitRollUp(world, row, status, event);
  }
  return { kind: reconciled ? 'reconciled' : 'applied', ...effects };
}

function writeDelivery(world: MailboxWorld, row: MessageRow, event: DeliveryEvent, status: DeliveryStatus): void {
  world.sql.run(
    `UPDATE deliveries SET status = ?1, smtp_code = COALESCE(?2, smtp_code), enhanced_code = COALESCE(?3, enhanced_code),
       smtp_response = COALESCE(?4, smtp_response), bounce_type = COALESCE(?5, bounce_type), updated_at = ?6
     WHERE message_rowid = ?7 AND address = ?8`,
    status,
    event.smtp_code,
    event.enhanced_code,
    event.smtp_response?.slice(0, LIMITS.smtp_response_chars_max) ?? null,
    event.kind === 'bounced' ? (event.hard ? 'hard' : 'soft') : null,
    world.now(),
    row.rowid,
    event.recipient,
  );
}

function updateMessage(world: MailboxWorld, row: MessageRow): OutboundStatus {
  const deliveries = readDeliveries(world.sql, row.rowid).map(({ status }) => status);
  const status = rollUp(row.status as OutboundStatus, deliveries);
  if (status !== row.status) {
    const reason = status === 'rejected' ? 'provider_validation' : status === 'failed' ? row.status_reason : null;
    world.sql.run('UPDATE messages SET status = ?, status_reason = ? WHERE rowid = ?', status, reason, row.rowid);
  }
  return status;
}

function emitDelivery(world: MailboxWorld, row: MessageRow, event: DeliveryEvent): void {
  const { kind, recipient, smtp_code, smtp_response } = event;
  const base = { message_id: row.id, recipient };
  if (kind === 'delivered') emit(world, 'message.delivered', { ...base, smtp_code });
  else if (kind === 'deferred') emit(world, 'message.deferred', { ...base, smtp_code, smtp_response });
  else if (kind === 'complained') emit(world, 'message.complained', { ...base, suppressed: event.suppress !== null });
  else if (kind === 'bounced') {
    const bounce_type = event.hard ? 'hard' : 'soft';
    emit(world, 'message.bounced', {
      ...base,
      smtp_code,
      smtp_response,
      bounce_type,
      suppressed: event.suppress !== null,
    });
  }
}

/** A rejection or failure is told once, when the whole message becomes it. */
function emitRollUp(world: MailboxWorld, row: MessageRow, status: OutboundStatus, event: DeliveryEvent): void {
  if (status === row.status) return;
  const after = findMessage(world.sql, row.id);
  if (after === undefined) throw new Error('message vanished');
  if (status === 'rejected') emitRejected(world, after, event.smtp_response);
  else if (status === 'failed') emitFailed(world, after);
}
