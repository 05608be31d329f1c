import type { EventType } from '@pmail/core/events/types.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import type { IdentityRecord } from '@pmail/engine/directory/identities.ts';
import type { MailboxOwner } from '@pmail/engine/directory/tenants.ts';
import { changeId } from '../change-id.ts';
import type { CallContext } from '../objects/calls.ts';
import { mailboxInit } from '../objects/mailbox-init.ts';
import { mailboxStub } from '../objects/remote.ts';
import type { RequestContext } from './context.ts';
import { within } from './deadline.ts';

/**
 * The directory changes first and the mailbox tells of it afterwards, so the second step can fail alone. Every id here
 * follows from the change, never from the request: whoever repeats the request tells the same event, and the mailbox
 * keeps the first.
 */

/** Events are told to this many mailboxes at a time. */
const TOLD_AT_ONCE = 20;

export interface MailboxEvent {
  type: Extract<EventType, `identity.${string}`>;
  data: Record<string, unknown>;
  /** When the directory changed; with the type and the identity it makes the event's id. */
  at: number;
}

/** Gives a mailbox its owner and lets it tell of the identity's creation. Repeating it changes nothing. */
export async function initMailbox(context: RequestContext, row: IdentityRecord): Promise<void> {
  const init = await mailboxInit(context.config, row, context.now);
  await call(mailboxStub(context.env, row.mailbox_do_id).init(callOf(context, row), init));
}

/** Tells one mailbox; false when it could not be reached. An identity without a mailbox yet has nobody to tell. */
export async function tell(context: RequestContext, owner: MailboxOwner, event: MailboxEvent): Promise<boolean> {
  if (owner.mailbox_do_id === '') return true;
  const { type, data, at } = event;
  try {
    const known = { id: await changeId(context.config, 'evt', type, owner.id, at), occurred_at: at };
    await call(mailboxStub(context.env, owner.mailbox_do_id).emitEvent(callOf(context, owner), type, data, known));
    return true;
  } catch (error) {
    context.log('warn', 'mailbox_not_told', {
      identity_id: owner.id,
      error: error instanceof Error ? error.name : 'unknown',
    });
    return false;
  }
}

/** Tells many mailboxes the same kind of thing; false when one of them could not be reached. */
export async function tellAll(
  context: RequestContext,
  owners: MailboxOwner[],
  eventFor: (owner: MailboxOwner) => MailboxEvent,
): Promise<boolean> {
  let all = true;
  for (let i = 0; i < owners.length; i += TOLD_AT_ONCE) {
    const told = await Promise.all(
      owners.slice(i, i + TOLD_AT_ONCE).map((owner) => tell(context, owner, eventFor(owner))),
    );
    all &&= told.every(Boolean);
  }
  return all;
}

function call<T>(made: Promise<T>): Promise<T> {
  return within(LIMITS.object_call_deadline_ms, 'object', made);
}

function callOf(context: RequestContext, owner: Pick<MailboxOwner, 'id' | 'tenant_id'>): CallContext {
  return { v: 1, tenant_id: owner.tenant_id, identity_id: owner.id, request_id: context.requestId };
}
