import type { MessageResource } from '@pmail/core/message/resource.ts';
import { isPinOver } from '@pmail/core/policy/from.ts';
import { setDeadlineNoLater } from '../alarms.ts';
import { writeMeta } from '../meta.ts';
import type { QuotaWarning } from '../quota/types.ts';
import { emit } from './events.ts';
import { recordKey } from './ledger.ts';
import { partsOf } from './messages.ts';
import { labelsOf } from './objects.ts';
import type { PreparedSend } from './prepare.ts';
import { messageResource, messageSummary } from './rows.ts';
import { isFiltered, type SentMail, storeSend } from './store-send.ts';
import { releaseLock } from './threads.ts';
import type { MailboxWorld } from './world.ts';

/**
 * Writes an accepted send. Call inside the transaction that has checked the ledger and taken the lock: message,
 * deliveries, ledger, thread, contacts and the dispatch deadline stand or fall together.
 */
export function writeAcceptedSend(world: MailboxWorld, send: PreparedSend, warnings: QuotaWarning[]): MessageResource {
  const { sql } = world;
  const mail = sentMail(send);
  const row = storeSend(world, mail, { status: 'queued', reason: null, flags: [] });
  const parts = partsOf(sql, row);
  const message = messageResource(world.owner, parts, { text: false, html: false });
  recordKey(sql, {
    key_hash: send.request.key_hash,
    fingerprint: send.request.fingerprint,
    operation: send.request.operation,
    message,
    now: send.at,
  });
  const { context } = send.subject;
  if (context.thread?.fallback_pinned && isPinOver(context, context.thread)) {
    sql.run('UPDATE threads SET fallback_pinned = 0 WHERE seq = ?', send.thread.seq);
  }
  if (isFiltered(mail)) {
    // Nothing of it will leave, so nobody has to wait for it.
    releaseLock(sql, send.thread.seq, message.id);
    emit(world, 'message.suppressed', {
      message_id: message.id,
      recipients: mail.recipients.map(({ address, filtered }) => ({ address, reason: filtered })),
      message: messageSummary(parts),
    });
  } else {
    writeMeta(sql, `dispatch:${message.id}`, String(send.at));
    setDeadlineNoLater(world, 'dispatch', send.at + world.waits.dispatch_after_ms);
  }
  for (const { scope, percent, used, limit } of warnings) {
    emit(world, 'quota.warning', { metric: 'sends', scope, percent, used, limit });
  }
  return message;
}

function sentMail(send: PreparedSend): SentMail {
  const { composed, plan, request } = send;
  return {
    message_id: send.message_id,
    thread: send.thread,
    at: send.at,
    operation: request.operation,
    kind: plan.kind,
    hop: plan.hop,
    from: send.from,
    reply_to: send.reply_to,
    subject: send.subject_line,
    in_reply_to: send.in_reply_to,
    references: send.references,
    text: composed.text,
    html_sanitized: composed.html_sanitized,
    mime_bytes: composed.mime.length,
    mime_sha256: send.mime_sha256,
    recipients: plan.recipients,
    attachments: send.attachments.map(({ content, ...rest }) => ({ ...rest, size: content.length })),
    labels: labelsOf(send),
    metadata: request.body.metadata ?? {},
    own_addresses: request.directory.addresses.map(({ address }) => address),
  };
}
