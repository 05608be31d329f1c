import type { EventType } from '@pmail/core/events/types.ts';
import { derivedId, type Id, type IdPrefix } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { findIdentity, type IdentityRecord } from '@pmail/engine/directory/identities.ts';
import type { MailboxOwner } from '@pmail/engine/directory/tenants.ts';
import type { CallContext } from '../objects/calls.ts';
import { mailboxStub } from '../objects/remote.ts';
import { hmac } from '../ports/secrets.ts';
import type { RequestContext } from './context.ts';
import { within } from './deadline.ts';
import { identityResource } from './routes/identity-resource.ts';

/**
 * The directory changes first and the mailbox tells of it afterwards, so the second step can fail alone. Every id here
 * follows from the change, never from the request: whoever repeats the request tells the same event, and the mailbox
 * keeps the first.
 */

/** Events are told to this many mailboxes at a time. */
const TOLD_AT_ONCE = 20;

/** A mailbox that was made this long ago has told of it, or never will; its outbox may no longer know that it has. */
const CREATED_EVENT_MS = 30 * 86_400_000;

/** An id for a change of `subject` at `at` (Unix ms), the same whenever it is asked for. */
export async function changeId<P extends IdPrefix>(
  { config }: RequestContext,
  prefix: P,
  what: string,
  subject: string,
  at: number,
): Promise<Id<P>> {
  return derivedId(prefix, at, await hmac(config.hash_key, `${what}:${subject}:${at}`));
}

export interface MailboxEvent {
  type: Extract<EventType, `identity.${string}`>;
  data: Record<string, unknown>;
  /** When the directory changed; with the type and the identity it makes the event's id. */
  at: number;
}

/** Gives a mailbox its owner and lets it tell of the identity's creation. Repeating it changes nothing. */
export async function initMailbox(context: RequestContext, row: IdentityRecord): Promise<void> {
  const id = await changeId(context, 'evt', 'identity.created', row.id, row.created_at);
  const young = context.now - row.created_at < CREATED_EVENT_MS;
  await call(
    mailboxStub(context.env, row.mailbox_do_id).init(callOf(context, row), {
      quota_do_id: row.tenant_quota_do_id,
      created: young ? { identity: { ...identityResource(context, row) }, event_id: id, at: row.created_at } : null,
    }),
  );
}

/** Tells one mailbox; false when it could not be reached. An identity without a mailbox yet has nobody to tell. */
export async function tell(context: RequestContext, owner: MailboxOwner, event: MailboxEvent): Promise<boolean> {
  if (owner.mailbox_do_id === '') return true;
  const { type, data, at } = event;
  const known = { id: await changeId(context, 'evt', type, owner.id, at), occurred_at: at };
  const emit = () =>
    call(mailboxStub(context.env, owner.mailbox_do_id).emitEvent(callOf(context, owner), type, data, known));
  try {
    await emit();
    return true;
  } catch (error) {
    if (error instanceof Error && error.name === 'OwnerMismatch') return repair(context, owner, emit);
    return failed(context, owner, error);
  }
}

/** The call that was to give the mailbox its owner was lost when the identity was made; it is made up for here. */
async function repair(context: RequestContext, owner: MailboxOwner, emit: () => Promise<void>): Promise<boolean> {
  try {
    const row = await findIdentity(context.db, owner.id);
    if (row !== undefined) await initMailbox(context, row);
    await emit();
    return true;
  } catch (error) {
    return failed(context, owner, error);
  }
}

function failed({ log }: RequestContext, owner: MailboxOwner, error: unknown): false {
  log('warn', 'mailbox_not_told', { identity_id: owner.id, error: error instanceof Error ? error.name : 'unknown' });
  return false;
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
