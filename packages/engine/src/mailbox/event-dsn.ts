import type { DsnReport } from '@pmail/core/delivery/dsn.ts';
import { type DsnEnvelope, dsnEvents, isJudgedByDsn, ourMessageIn } from '@pmail/core/delivery/dsn-verdict.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import type { Sql } from '../sql.ts';
import { applyReport, type EventAnswer } from './apply-event.ts';
import { readDeliveries } from './messages.ts';
import { addAlias, knownBy, ourMessage } from './provider-ids.ts';
import { payQuota } from './quota-tasks.ts';
import type { MessageRow } from './rows.ts';
import type { MailboxWorld } from './world.ts';

export interface DsnAnswer {
  /** The message it is about, which also is the one whose thread it belongs to; null when it is about none of ours. */
  original: MessageId | null;
  /** What it did, one answer for each recipient that it speaks of; none when the message may not be judged by it. */
  answers: EventAnswer[];
}

/** Applies a report that came as mail. One transaction; a repeat changes nothing. */
export async function applyDsn(world: MailboxWorld, report: DsnReport, envelope: DsnEnvelope): Promise<DsnAnswer> {
  const answer = world.sql.transaction(() => apply(world, report, envelope));
  await payQuota(world);
  return answer;
}

function apply(world: MailboxWorld, report: DsnReport, envelope: DsnEnvelope): DsnAnswer {
  const { sql } = world;
  const original = originalOf(sql, report, envelope.sender);
  if (original === undefined) return { original: null, answers: [] };
  // About mail that left by anything but a relay, or with a sender of its own, it is evidence and nothing else.
  if (!isJudgedByDsn(original.provider) || !envelope.null_sender) return { original: original.id, answers: [] };
  // A relay that has written a Message-ID of its own: what came back shows it beside ours.
  for (const id of report.returned_ids) {
    if (id !== original.rfc_message_id) addAlias(sql, original.rowid, id);
  }
  const recipients = readDeliveries(sql, original.rowid).map(({ address }) => address);
  const events = dsnEvents(report, envelope, recipients);
  return { original: original.id, answers: events.map((event) => applyReport(world, event)) };
}

function originalOf(sql: Sql, report: DsnReport, sender: DsnEnvelope['sender']): MessageRow | undefined {
  for (const id of report.message_ids) {
    const [known] = knownBy(sql, id);
    if (known !== undefined) return known;
  }
  return ourMessage(sql, ourMessageIn(report, sender));
}
