import type { IdentityRecord } from '@pmail/engine/directory/identities.ts';
import { changeId } from '../change-id.ts';
import type { Config } from '../env.ts';
import { identityResource } from '../http/routes/identity-resource.ts';
import type { MailboxInit } from './mailbox.ts';

/** A mailbox that was made this long ago has told of it, or never will; its outbox may no longer know that it has. */
const CREATED_EVENT_MS = 30 * 86_400_000;

/** What gives a mailbox its owner and lets it tell of the identity's creation. Repeating it changes nothing. */
export async function mailboxInit(config: Config, row: IdentityRecord, now: number): Promise<MailboxInit> {
  const { created_at: at } = row;
  const young = now - at < CREATED_EVENT_MS;
  const event_id = await changeId(config, 'evt', 'identity.created', row.id, at);
  return {
    quota_do_id: row.tenant_quota_do_id,
    created: young ? { identity: { ...identityResource({ config }, row) }, event_id, at } : null,
  };
}
