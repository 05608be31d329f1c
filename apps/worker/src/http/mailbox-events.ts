import type { EventType } from '@pmail/core/events/types.ts';
import type { IdentityId, TenantId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import type { IdentityRecord } from '@pmail/engine/directory/identities.ts';
import type { MailboxOwner } from '@pmail/engine/directory/tenants.ts';
import { changeId } from '../change-id.ts';
import type { TellJob } from '../consumers/tell.ts';
import { errorPlace } from '../log.ts';
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

/** Events are told to this many mailboxes at a time, and by one job of the queue. */
const TOLD_AT_ONCE = 20;

/** How many a request tells itself, for it can make only so many calls. */
const TOLD_IN_REQUEST = 100;

/** A call to the queue takes no more. */
const JOBS_PER_CALL = 100;

/** What telling takes of a request; the consumer of the queue has it too. */
type Teller = Pick<RequestContext, 'env' | 'config' | 'log' | 'requestId'>;

export interface MailboxEvent {
  type: Extract<EventType, `identity.${string}`>;
  data: Record<string, unknown>;
  /** When the directory changed; with the type and the identity it makes the event's id. */
  at: number;
}

/** Gives a mailbox its owner and lets it tell of the identity's creation. Repeating it changes nothing. */
export async function initMailbox(context: RequestContext, row: IdentityRecord): Promise<void> {
  const init = await mailboxInit(context.config, context.db, row, context.now);
  await call(mailboxStub(context.env, row.mailbox_do_id).init(callOf(context, row), init));
}

/** Tells one mailbox; false when it could not be reached. An identity without a mailbox yet has nobody to tell. */
export async function tell(context: Teller, owner: MailboxOwner, event: MailboxEvent): Promise<boolean> {
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

/** What a change of their tenant's status is to its identities. */
export type TenantStatusEvent = 'identity.paused' | 'identity.resumed';

export function statusEvent(type: TenantStatusEvent, id: IdentityId, at: number): MailboxEvent {
  const paused = type === 'identity.paused';
  return { type, data: { identity_id: id, ...(paused ? { reason: 'tenant_suspended' } : {}) }, at };
}

/**
 * Tells the mailboxes of a tenant that its status has changed. However many there are, the request ends: it tells some,
 * and leaves the others, and those that it could not reach, to the queue.
 *
 * @returns false when somebody was neither told nor is in the queue
 */
export async function tellAll(
  context: RequestContext,
  tenant: TenantId,
  type: TenantStatusEvent,
  at: number,
  owners: MailboxOwner[],
): Promise<boolean> {
  try {
    // The queue first, because whatever comes after it may be cut short.
    await tellLater(context, tenant, type, at, owners.slice(TOLD_IN_REQUEST));
    const missed: MailboxOwner[] = [];
    for (const some of chunks(owners.slice(0, TOLD_IN_REQUEST), TOLD_AT_ONCE)) {
      const told = await Promise.all(some.map((owner) => tell(context, owner, statusEvent(type, owner.id, at))));
      missed.push(...some.filter((_owner, index) => told[index] === false));
    }
    await tellLater(context, tenant, type, at, missed);
    return true;
  } catch (error) {
    context.log('warn', 'telling_not_queued', { tenant_id: tenant, error: errorPlace(error) });
    return false;
  }
}

/** Leaves mailboxes to the queue, some to a job and as many jobs to a call as a call takes. */
async function tellLater(
  { env, requestId }: RequestContext,
  tenant_id: TenantId,
  type: TenantStatusEvent,
  at: number,
  owners: MailboxOwner[],
): Promise<void> {
  const jobs = chunks(owners, TOLD_AT_ONCE).map((some): { body: TellJob } => ({
    body: {
      v: 1,
      kind: 'tenant_status',
      type,
      at,
      tenant_id,
      identities: some.map(({ id }) => id),
      request_id: requestId,
    },
  }));
  for (const some of chunks(jobs, JOBS_PER_CALL)) await env.Q_OUTBOUND.sendBatch(some);
}

function chunks<T>(all: T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, n) => all.slice(n * size, (n + 1) * size));
}

function call<T>(made: Promise<T>): Promise<T> {
  return within(LIMITS.object_call_deadline_ms, 'object', made);
}

function callOf(context: Teller, owner: Pick<MailboxOwner, 'id' | 'tenant_id'>): CallContext {
  return { v: 1, tenant_id: owner.tenant_id, identity_id: owner.id, request_id: context.requestId };
}
