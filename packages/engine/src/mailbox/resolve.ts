import type { MessageId } from '@pmail/core/ids.ts';
import type { MessageResource } from '@pmail/core/message/resource.ts';
import { type Refusal, refuse } from '@pmail/core/result.ts';
import { findMessage, partsOf, readDeliveries } from './messages.ts';
import { payQuota } from './quota-tasks.ts';
import { messageResource } from './rows.ts';
import { settleByPerson } from './settle-uncertain.ts';
import type { MailboxWorld } from './world.ts';

export type ResolveAnswer = { ok: true; message: MessageResource } | Refusal;

/**
 * A person says what became of an uncertain send. Also for a message that has moved on while one of its recipients is
 * still uncertain: that recipient has no other way out.
 */
export async function resolve(
  world: MailboxWorld,
  messageId: MessageId,
  outcome: 'sent' | 'not_sent',
): Promise<ResolveAnswer> {
  const answer = world.sql.transaction((): ResolveAnswer => {
    const row = findMessage(world.sql, messageId);
    if (row === undefined || row.direction !== 'outbound') return refuse('message_not_found');
    const open =
      row.status !== 'canceled' && readDeliveries(world.sql, row.rowid).some(({ status }) => status === 'uncertain');
    if (!open) return refuse('not_uncertain', { status: row.status });
    const after = settleByPerson(world, row, outcome);
    world.mark('resolve.in_transaction');
    return { ok: true, message: messageResource(world.owner, partsOf(world.sql, after), { text: false, html: false }) };
  });
  if (answer.ok) {
    world.mark('resolve.committed');
    await payQuota(world);
  }
  return answer;
}
