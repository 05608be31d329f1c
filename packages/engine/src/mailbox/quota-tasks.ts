import type { MessageId } from '@pmail/core/ids.ts';
import { setDeadline, setDeadlineNoLater } from '../alarms.ts';
import type { QuotaTask } from '../quota/types.ts';
import type { Sql } from '../sql.ts';
import { parseJson } from './rows.ts';
import type { MailboxWorld } from './world.ts';

/**
 * What the mailbox owes its tenant's quota. The debt is written in the transaction of the change that causes it, and
 * paid afterwards in order; a call that fails or whose answer is lost is repeated until it is answered, and the quota
 * applies each task once.
 */

export function oweQuota(world: MailboxWorld, task: QuotaTask): void {
  world.sql.run('INSERT INTO quota_tasks (request_json, created_at) VALUES (?, ?)', JSON.stringify(task), world.now());
  setDeadlineNoLater(world, 'quota', world.now() + world.waits.quota_task_retry_ms);
}

/** Whether the quota has still to hear of this send. */
export function owesQuota(sql: Sql, id: MessageId): boolean {
  return sql.first("SELECT 1 FROM quota_tasks WHERE json_extract(request_json, '$.ref') = ? LIMIT 1", id) !== undefined;
}

/** Pays what is owed. Never throws: what is left stays owed, with the alarm set. */
export async function payQuota(world: MailboxWorld): Promise<void> {
  const { sql } = world;
  for (;;) {
    const row = sql.first<{ id: number; request_json: string }>(
      'SELECT id, request_json FROM quota_tasks ORDER BY id LIMIT 1',
    );
    if (row === undefined) {
      setDeadline(world, 'quota', null);
      return;
    }
    try {
      world.mark('quota_task.before_call');
      await world.quota.apply(parseJson<QuotaTask>(row.request_json));
      world.mark('quota_task.after_call');
    } catch (error) {
      world.log('warn', 'quota_task_failed', { error: error instanceof Error ? error.name : 'unknown' });
      setDeadline(world, 'quota', world.now() + world.waits.quota_task_retry_ms);
      return;
    }
    sql.run('DELETE FROM quota_tasks WHERE id = ?', row.id);
  }
}
