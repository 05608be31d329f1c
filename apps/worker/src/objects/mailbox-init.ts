import { lastSequence } from '@pmail/engine/directory/events.ts';
import type { IdentityRecord } from '@pmail/engine/directory/identities.ts';
import type { Db } from '@pmail/engine/sql.ts';
import { changeId } from '../change-id.ts';
import type { Config } from '../env.ts';
import { identityResource } from '../http/routes/identity-resource.ts';
import type { MailboxInit } from './mailbox.ts';

/** A mailbox that was made this long ago has told of it, or never will; its outbox may no longer know that it has. */
const CREATED_EVENT_MS = 30 * 86_400_000;

/** What gives a mailbox its owner and lets it tell of the identity's creation. Repeating it changes nothing. */
export async function mailboxInit(config: Config, db: Db, row: IdentityRecord, now: number): Promise<MailboxInit> {
  const { created_at: at } = row;
  const last_sequence = await lastSequence(db, row.id);
  // Its first event tells of this, so whoever has told of anything has told of it.
  const young = last_sequence === null && now - at < CREATED_EVENT_MS;
  const event_id = await changeId(config, 'evt', 'identity.created', row.id, at);
  return {
    quota_do_id: row.tenant_quota_do_id,
    last_sequence,
    created: young ? { identity: { ...identityResource({ config }, row) }, event_id, at } : null,
  };
}
