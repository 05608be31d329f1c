import { isSuppression } from '@pmail/core/policy/filters.ts';
import { checkLate, planSend } from '@pmail/core/policy/pipeline.ts';
import type { FilterReason, RecipientField } from '@pmail/core/policy/types.ts';
import { type Refusal, refuse } from '@pmail/core/result.ts';
import { notAskedAbout, sendContext } from './context.ts';
import { prepareSend } from './prepare.ts';
import type { DirectoryNeeded, SubmitRequest } from './submit-types.ts';
import type { MailboxWorld } from './world.ts';

export interface DryRunRecipient {
  address: string;
  field: RecipientField;
  status: 'queued' | 'suppressed';
  reason: FilterReason | null;
}

export type DryRunAnswer = { ok: true; recipients: DryRunRecipient[] } | Refusal | DirectoryNeeded;

/**
 * What a send would do: every step up to the size runs, in memory. Nothing is stored, reserved or locked, and no key is
 * looked up.
 */
export async function dryRun(world: MailboxWorld, request: SubmitRequest): Promise<DryRunAnswer> {
  const subject = sendContext(world.sql, request, world.now());
  const unknown = notAskedAbout(subject.context);
  if (unknown.length > 0) return { ok: false, code: 'directory_needed', recipients: unknown };
  const planned = planSend(subject.context);
  if (!planned.ok) return planned;
  const plan = planned.value;
  const prepared = await prepareSend(world, request, subject, plan);
  if (!prepared.ok) return prepared;
  const tooLarge = checkLate('size', subject.context, plan, {
    composed_bytes: prepared.send.composed.mime.length,
    reservation: { kind: 'ok' },
    lock_held_until: null,
  });
  if (tooLarge !== null) return tooLarge;
  const recipients = plan.recipients.map(({ address, field, filtered }): DryRunRecipient => {
    return { address, field, status: filtered === null ? 'queued' : 'suppressed', reason: filtered };
  });
  if (recipients.some(({ reason }) => reason === null)) return { ok: true, recipients };
  const allSuppressed = recipients.every(({ reason }) => reason !== null && isSuppression(reason));
  return refuse(allSuppressed ? 'all_recipients_suppressed' : 'recipient_blocked', { recipients });
}
