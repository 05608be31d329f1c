import type { AuditEntry } from '@pmail/engine/directory/audit.ts';
import { newId } from '../ports/random.ts';
import type { RequestContext } from './context.ts';

type Target = Pick<AuditEntry, 'tenant_id' | 'target_type' | 'target_id'>;

/** What the log says about a change that a request makes: who made it, of what, and when. */
export function auditEntry(
  context: RequestContext,
  action: string,
  target: Target,
  details: AuditEntry['details'],
): AuditEntry {
  return {
    id: newId('aud', context.now),
    actor_key_id: context.key.id,
    action,
    ...target,
    details,
    request_id: context.requestId,
    at: context.now,
  };
}
