import type { EventType } from '@pmail/core/events/types.ts';
import type { EventId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { setDeadline } from '../alarms.ts';
import { deleteMeta, readMeta, writeMeta } from '../meta.ts';
import type { Dispatched } from '../ports.ts';
import { keepToldNumbers, renumberWaiting, turnBack } from './restore.ts';
import type { MailboxWorld } from './world.ts';

interface OutboxRow {
  seq: number;
  event_id: EventId;
  type: EventType;
  occurred_at: number;
}

/**
 * The outbox alarm: hands events on in their order, in batches, and marks them only afterwards, so each is handed on at
 * least once. While the other side fails, the wait doubles from 30 s up to 5 minutes.
 */
export async function dispatchOutbox(world: MailboxWorld): Promise<void> {
  const { sql, waits } = world;
  for (;;) {
    const rows = sql.all<OutboxRow>(
      'SELECT seq, event_id, type, occurred_at FROM outbox WHERE dispatched_at IS NULL ORDER BY seq LIMIT ?',
      LIMITS.outbox_batch_max,
    );
    const last = rows.at(-1);
    if (last === undefined) break;
    world.mark('outbox.before_dispatch');
    let answer: Dispatched;
    try {
      answer = await world.events.dispatch(
        rows.map(({ seq, event_id, type, occurred_at }) => ({
          id: event_id,
          type,
          ...world.owner,
          sequence: seq,
          occurred_at,
        })),
      );
    } catch (error) {
      const wait = Math.min(
        Number(readMeta(sql, 'outbox_backoff') ?? waits.outbox_backoff_ms_min),
        waits.outbox_backoff_ms_max,
      );
      sql.transaction(() => {
        writeMeta(sql, 'outbox_backoff', String(wait * 2));
        setDeadline(world, 'outbox', world.now() + wait);
      });
      world.log('warn', 'outbox_dispatch_failed', { error: error instanceof Error ? error.name : 'unknown', wait });
      return;
    }
    world.mark('outbox.after_dispatch');
    noteDispatched(world, answer, last.seq);
  }
  sql.transaction(() => {
    deleteMeta(sql, 'outbox_backoff');
    // An event may have come while the last call was under way.
    const more = sql.first('SELECT 1 FROM outbox WHERE dispatched_at IS NULL LIMIT 1') !== undefined;
    setDeadline(world, 'outbox', more ? world.now() : null);
  });
}

/**
 * What the index said about a batch, in one transaction: a number that is moved and not noted as handed on, or noted and not
 * moved, would never be put right again.
 *
 * @param upTo the last number of the batch, which was everything that waited until then
 */
function noteDispatched(world: MailboxWorld, { taken, known }: Dispatched, upTo: number): void {
  const { sql } = world;
  sql.transaction(() => {
    if (taken === null) {
      sql.run('UPDATE outbox SET dispatched_at = ? WHERE dispatched_at IS NULL AND seq <= ?', world.now(), upTo);
    } else {
      // Other events have these numbers: the storage was put back, and time has been lived twice. What the index has of
      // the batch was told in the time that is forgotten.
      sql.run(
        'UPDATE outbox SET dispatched_at = ? WHERE event_id IN (SELECT value FROM json_each(?))',
        world.now(),
        JSON.stringify(known.map(({ id }) => id)),
      );
      turnBack(world, taken);
      renumberWaiting(sql, upTo);
    }
    keepToldNumbers(sql, known);
  });
}

/** Bytes of an event as serialised when it happened, or undefined when it is gone or not this mailbox's. */
export function readEvent(world: MailboxWorld, id: EventId): string | undefined {
  return world.sql.first<{ payload_json: string }>('SELECT payload_json FROM outbox WHERE event_id = ?', id)
    ?.payload_json;
}
