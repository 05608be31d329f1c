import type { Address } from '@pmail/core/address/address.ts';
import { judgeBounce, judgeOther } from '@pmail/core/delivery/bounce-class.ts';
import type { DeliveryEvent } from '@pmail/core/delivery/events.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import type { InboundJob } from '@pmail/core/queue/jobs.ts';
import type { ScheduledEvent, TransportResult } from '@pmail/core/transport/types.ts';
import { deadline, setDeadline, setDeadlineNoLater } from '../alarms.ts';
import { type MessageRow, parseJson } from './rows.ts';
import type { MailboxWorld } from './world.ts';

/**
 * The memory of the test providers. A real provider keeps what it took and reports it later; for test mail that is this
 * table: each report, or the copy for a local mailbox, is sent when it is due and again until it has had its effect.
 */

type Payload = { kind: 'event'; event: DeliveryEvent } | { kind: 'inbound'; job: InboundJob };

/** Stores what a test provider will do about mail it took, in the transaction that records its acceptance. */
export function scheduleFollowups(
  world: MailboxWorld,
  row: MessageRow,
  accepted: Extract<TransportResult, { kind: 'accepted' }>,
): void {
  for (const report of accepted.scheduled) {
    const event = reportEvent(world, row, report);
    insert(world, row, report.recipient, report.n, { kind: 'event', event }, event.occurred_at);
  }
  // The transport has sent these itself; they are sent again only if their arrival is not reported.
  const again = world.now() + world.waits.followup_retry_ms;
  for (const job of accepted.copies) insert(world, row, job.envelope_to, LOCAL_COPY, { kind: 'inbound', job }, again);
}

/** Ordinal of a copy for a local mailbox, and of the report that it arrived. */
export const LOCAL_COPY = 0;

function reportEvent(world: MailboxWorld, row: MessageRow, report: ScheduledEvent): DeliveryEvent {
  const { recipient, n, kind, smtp_code, enhanced_code, smtp_response } = report;
  const judged =
    kind === 'bounced'
      ? judgeBounce(report.hard ? 'hard' : 'soft', enhanced_code, smtp_code)
      : { hard: false, outcome: null, suppress: null, ...judgeOther(kind) };
  return {
    source: 'simulator',
    event_id: `sim:${row.id}:${recipient}:${n}`,
    provider_message_id: providerIdOf(world, row.id),
    sender: row.from_address ?? '',
    recipient,
    subject: row.subject,
    kind,
    ...judged,
    smtp_code,
    enhanced_code,
    smtp_response,
    occurred_at: world.now() + report.after_ms,
  };
}

function providerIdOf(world: MailboxWorld, id: MessageId): string | null {
  return (
    world.sql.first<{ provider_message_id: string | null }>('SELECT provider_message_id FROM messages WHERE id = ?', id)
      ?.provider_message_id ?? null
  );
}

function insert(
  world: MailboxWorld,
  row: MessageRow,
  recipient: Address,
  n: number,
  payload: Payload,
  due: number,
): void {
  world.sql.run(
    `INSERT OR IGNORE INTO followups (message_rowid, recipient, n, kind, payload_json, due_at) VALUES (?, ?, ?, ?, ?, ?)`,
    row.rowid,
    recipient,
    n,
    payload.kind,
    JSON.stringify(payload),
    due,
  );
  setDeadlineNoLater(world, 'followup', due);
}

interface FollowupRow {
  message_rowid: number;
  recipient: Address;
  n: number;
  payload_json: string;
}

const BATCH = 100;

/** The followup alarm: sends what is due. Each row stays until its effect is seen, and is due again after a while. */
export async function sendFollowups(world: MailboxWorld): Promise<void> {
  const { sql } = world;
  const now = world.now();
  const due = sql.all<FollowupRow>(
    'SELECT message_rowid, recipient, n, payload_json FROM followups WHERE due_at <= ? ORDER BY due_at LIMIT ?',
    now,
    BATCH,
  );
  for (const row of due) {
    const payload = parseJson<Payload>(row.payload_json);
    world.mark('followup.before_send');
    if (payload.kind === 'inbound') await world.inbound.send(payload.job);
    else await world.outbound.send({ v: 1, kind: 'transport_event', ...world.owner, event: payload.event });
    world.mark('followup.after_send');
    sql.run(
      'UPDATE followups SET due_at = ? WHERE message_rowid = ? AND recipient = ? AND n = ?',
      world.now() + world.waits.followup_retry_ms,
      row.message_rowid,
      row.recipient,
      row.n,
    );
  }
  armFollowups(world);
}

/** Drops the reports of one recipient up to `n`, which have had their effect. Call inside a transaction. */
export function endFollowups(world: MailboxWorld, rowid: number, recipient: Address, n: number): void {
  world.sql.run('DELETE FROM followups WHERE message_rowid = ? AND recipient = ? AND n <= ?', rowid, recipient, n);
  if (deadline(world.sql, 'followup') !== null) armFollowups(world);
}

function armFollowups(world: MailboxWorld): void {
  const next = world.sql.first<{ at: number | null }>('SELECT MIN(due_at) AS at FROM followups')?.at ?? null;
  if (deadline(world.sql, 'followup') !== next) setDeadline(world, 'followup', next);
}

/** Ordinal of a test provider's report, from its event id; undefined for the reports of others. */
export function followupOrdinal(event: DeliveryEvent): number | undefined {
  if (event.source !== 'simulator' && event.source !== 'loopback') return undefined;
  const n = Number(event.event_id.slice(event.event_id.lastIndexOf(':') + 1));
  return Number.isSafeInteger(n) ? n : undefined;
}
