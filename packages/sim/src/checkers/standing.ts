import type { SimIdentity } from '../population.ts';
import type { Ban } from '../standing.ts';
import { deliveriesOf, type Evidence, messagesOf, type Violation } from './evidence.ts';

/** C9: nothing was handed over for someone who, when the consumer last looked, could not send. */
export function sendersMaySend(evidence: Evidence): Violation[] {
  const { deployment, identities } = evidence;
  const owners = new Map(
    identities.flatMap((identity) => messagesOf(evidence, identity).map(({ id }) => [id as string, identity] as const)),
  );
  return deployment.provider.log.flatMap((call) => {
    const owner = owners.get(call.message_id);
    if (owner === undefined) return [];
    if (call.read_at === null)
      return [{ invariant: 'C9', text: `${call.message_id} left, and nobody looked who sends` }];
    const subjects = [owner.identity_id, owner.tenant_id, call.from.split('@')[1] ?? ''];
    const ban = deployment.standing.bans.find(
      (one) => subjects.includes(one.subject) && covers(one, call.read_at ?? 0),
    );
    if (ban === undefined) return [];
    return [{ invariant: 'C9', text: `${call.message_id} left although ${ban.subject} was ${ban.what}` }];
  });
}

/** In the very moment of a change either is right. */
function covers({ from, until }: Ban, time: number): boolean {
  return from < time && time < until;
}

/**
 * C9: a recipient is suppressed in a message exactly when the list said so while the directory was read for it. Between
 * several reads for one message nobody knows which counted.
 */
export function suppressionsKept(evidence: Evidence): Violation[] {
  const violations: Violation[] = [];
  if (evidence.deployment.standing.suppressed.length === 0) return [];
  for (const { answers, reads, identity, key } of evidence.intents) {
    const message = messagesOf(evidence, identity).find(({ id }) => id === answers[0]?.id);
    if (message === undefined || reads.length === 0) continue;
    const [first, last] = [Math.min(...reads), Math.max(...reads)];
    for (const { message_rowid, address, status, smtp_response: said } of deliveriesOf(evidence, identity)) {
      // By the provider's own list somebody is suppressed at any time.
      if (message_rowid !== message.rowid || said?.startsWith('provider: ') === true) continue;
      const since = suppressedAt(evidence, identity, address);
      if (since === undefined) continue;
      if (since < first && status !== 'suppressed') {
        violations.push({ invariant: 'C9', text: `${key}: ${address} was suppressed before, and is ${status}` });
      }
      if (since > last && status === 'suppressed') {
        violations.push({ invariant: 'C9', text: `${key}: ${address} was suppressed only afterwards` });
      }
    }
  }
  return violations;
}

/** When somebody put an address on a tenant's list that did not stand there already, by the scheduler's time. */
function suppressedAt({ deployment }: Evidence, identity: SimIdentity, address: string): number | undefined {
  const byHand = deployment.directory.first(
    "SELECT 1 FROM suppressions WHERE tenant_id = ? AND address_hash = ? AND reason = 'manual'",
    identity.tenant_id,
    deployment.watcher.hashes.get(address) ?? '',
  );
  if (byHand === undefined) return undefined;
  return deployment.standing.suppressed.find(
    (entry) => entry.tenant_id === identity.tenant_id && entry.address === address,
  )?.at;
}
