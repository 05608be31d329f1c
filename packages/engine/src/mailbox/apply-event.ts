import { isJudgedByDsn } from '@pmail/core/delivery/dsn-verdict.ts';
import type { AbuseOutcome, DeliveryEvent, SuppressionReason } from '@pmail/core/delivery/events.ts';
import { rollUp } from '@pmail/core/delivery/rollup.ts';
import type { DeliveryStatus, OutboundStatus } from '@pmail/core/delivery/status.ts';
import { type Transition, transition } from '@pmail/core/delivery/transitions.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { cutUnits } from '@pmail/core/message/text.ts';
import { emit } from './events.ts';
import { endFollowups, followupOrdinal } from './followups.ts';
import { emitFailed, emitRejected } from './leave-queue.ts';
import { findMessage, readDeliveries } from './messages.ts';
import { recordAcceptance, recordIds } from './provider-ids.ts';
import { payQuota } from './quota-tasks.ts';
import { findMeant } from './reconcile.ts';
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

/** Applies a provider's report to the delivery it is about. One transaction; a repeat changes nothing. */
export async function applyEvent(world: MailboxWorld, event: DeliveryEvent): Promise<EventAnswer> {
  const answer = world.sql.transaction(() => applyReport(world, event));
  // A recipient that has become an accepted one is owed to the quota.
  if (answer.kind === 'applied' || answer.kind === 'reconciled') await payQuota(world);
  return answer;
}

/** The same inside the caller's transaction, which owes the payment of the quota afterwards. */
export function applyReport(world: MailboxWorld, event: DeliveryEvent): EventAnswer {
  const { sql } = world;
  const meant = findMeant(world, event);
  if (meant.kind !== 'one') return { kind: 'not_found', ambiguous: meant.kind === 'several' };
  const { row, delivery } = meant;
  const ordinal = followupOrdinal(event);
  if (ordinal !== undefined) endFollowups(world, row.rowid, event.recipient, ordinal);
  const nothing = { message_id: row.id, outcome: null, suppress: null };
  // Whatever left by a provider with reports of its own is believed through those alone.
  if (event.source === 'dsn' && !isJudgedByDsn(row.provider)) return { kind: 'ignored', ...nothing };
  // Nobody this message was sent to: nothing to change and nobody to suppress.
  if (delivery === undefined) return { kind: 'duplicate', ...nothing };
  const effects = { message_id: row.id, outcome: event.outcome, suppress: event.suppress };
  const seen = parseJson<string[]>(delivery.provider_event_ids_json);
  if (seen.includes(event.event_id)) return { kind: 'duplicate', ...effects };
  // Taken back before anybody could have sent it: its recipients stay as they are, and the status says the rest.
  if (row.status === 'canceled') return { kind: 'ignored', ...effects };
  sql.run(
    'UPDATE deliveries SET provider_event_ids_json = ? WHERE message_rowid = ? AND address = ?',
    JSON.stringify([...seen, event.event_id].slice(-LIMITS.event_ids_kept_max)),
    row.rowid,
    event.recipient,
  );
  recordIds(sql, row, event.provider_message_id, event.rfc_message_id ?? null);
  const step = stepOf(delivery, event);
  if (step === 'ignored') return { kind: 'ignored', ...effects };
  if (step === 'details') writeDelivery(world, row, event, delivery.status, delivery);
  else writeDelivery(world, row, event, step.to, NO_DETAILS);
  // The provider reports about it, so it had taken it; until now nobody knew and nothing was counted.
  if (UNCOUNTED.includes(delivery.status) && event.kind !== 'rejected') {
    oweAcceptance(world, row, [delivery.position]);
    recordAcceptance(sql, row, null, null);
  }
  world.mark('event.in_transaction');
  const reconciled = row.status === 'uncertain' && delivery.status === 'uncertain' && addFlag(world, row);
  const status = updateMessage(world, row);
  if (reconciled) emit(world, 'message.reconciled', { message_id: row.id, status });
  // New details under the same status are not news.
  if (step !== 'details') {
    emitDelivery(world, row, event);
    emitRollUp(world, row, status, event);
  }
  return { kind: reconciled ? 'reconciled' : 'applied', ...effects };
}

/** Statuses of recipients that no settlement has counted yet. */
const UNCOUNTED: readonly DeliveryStatus[] = ['queued', 'uncertain'];

/**
 * What the report does, by the table. Details under the same status are taken only from a report that was made after the
 * one they stand there from: so a report whose id is no longer kept changes nothing when it comes again, and reports in the
 * wrong order leave the latest.
 */
function stepOf(delivery: DeliveryRow, event: DeliveryEvent): Transition {
  const step = transition(delivery.status, event.kind);
  const older = delivery.reported_at !== null && event.occurred_at <= delivery.reported_at;
  return step === 'details' && older ? 'ignored' : step;
}

const NO_DETAILS = { smtp_code: null, enhanced_code: null, smtp_response: null, bounce_type: null };

/**
 * What a report says stands as a whole: a new status never beside the codes of the one before. Under the same status
 * what it does not say stays.
 */
function writeDelivery(
  world: MailboxWorld,
  row: MessageRow,
  event: DeliveryEvent,
  status: DeliveryStatus,
  kept: Pick<DeliveryRow, keyof typeof NO_DETAILS>,
): void {
  const response = event.smtp_response;
  world.sql.run(
    `UPDATE deliveries SET status = ?1, smtp_code = ?2, enhanced_code = ?3, smtp_response = ?4, bounce_type = ?5,
       updated_at = ?6, reported_at = ?7
     WHERE message_rowid = ?8 AND address = ?9`,
    status,
    event.smtp_code ?? kept.smtp_code,
    event.enhanced_code ?? kept.enhanced_code,
    response === null ? kept.smtp_response : cutUnits(response, LIMITS.smtp_response_chars_max),
    event.kind === 'bounced' ? (event.hard ? 'hard' : 'soft') : kept.bounce_type,
    world.now(),
    event.occurred_at,
    row.rowid,
    event.recipient,
  );
}

/** Marks the message as one whose doubt a report has ended; false when one had done so before. */
function addFlag(world: MailboxWorld, row: MessageRow): boolean {
  const flags = parseJson<string[]>(row.flags_json);
  if (flags.includes('reconciled')) return false;
  const json = JSON.stringify([...flags, 'reconciled']);
  world.sql.run('UPDATE messages SET flags_json = ? WHERE rowid = ?', json, row.rowid);
  return true;
}

function updateMessage(world: MailboxWorld, row: MessageRow): OutboundStatus {
  const deliveries = readDeliveries(world.sql, row.rowid).map(({ status }) => status);
  const status = rollUp(row.status as OutboundStatus, deliveries);
  if (status !== row.status) {
    // What had made it uncertain is no reason for its end; why a provider gave up stands beside each recipient.
    const reason = status === 'rejected' ? 'provider_validation' : null;
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
