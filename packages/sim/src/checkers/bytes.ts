import { createHash } from 'node:crypto';
import { rewriteOriginator } from '@pmail/core/compose/originator.ts';
import { PLATFORM_DOMAIN, type SimIdentity } from '../population.ts';
import type { CallRecord } from '../provider.ts';
import { type Evidence, type MessageTrace, mailbox, messagesOf, type Violation } from './evidence.ts';

/** An outbound message, with the hash of what stood in the store when it was committed. */
interface Composed {
  message: MessageTrace;
  owner: SimIdentity;
  sha256: string | null;
}

/**
 * I6: what a transport was handed, what stands in the store, what the row says and what arrived is what was stored before
 * the commit, apart from whom it is from when its domain fell back.
 */
export function sameBytes(evidence: Evidence): Violation[] {
  const violations: Violation[] = [];
  const wrong = (text: string): void => {
    violations.push({ invariant: 'I6', text });
  };
  const composed = composedOf(evidence);
  const { provider, store } = evidence.deployment;
  for (const { message, sha256 } of composed.values()) {
    if (sha256 === null) wrong(`${message.id} was committed before its copy was stored`);
    if (message.raw_sha256 !== sha256) wrong(`${message.id} says that it has other bytes`);
    if (store.objects.has(message.raw_r2_key) && store.hashOf(message.raw_r2_key) !== sha256) {
      wrong(`${message.id} is stored with other bytes than it was committed with`);
    }
  }
  for (const call of provider.log) {
    const known = composed.get(call.message_id);
    if (known?.sha256 !== call.sha256 && !(known !== undefined && fellBack(evidence, known, call))) {
      wrong(`${call.message_id} was handed over with other bytes`);
    }
  }
  for (const identity of evidence.identities) {
    for (const copy of messagesOf(evidence, identity).filter(({ direction }) => direction === 'inbound')) {
      const of = composed.get(idIn(copy));
      if (of === undefined) wrong(`${copy.id} is a copy of nothing that was sent`);
      else if (of.sha256 !== copy.raw_sha256) wrong(`${copy.id} arrived with other bytes than ${of.message.id}`);
    }
  }
  return violations;
}

function composedOf(evidence: Evidence): Map<string, Composed> {
  return new Map(
    evidence.identities.flatMap((owner) => {
      const stored = new Map(
        mailbox(evidence, owner)
          .sql.all<{ id: string; sha256: string | null }>('SELECT id, sha256 FROM sim_composed ORDER BY n')
          .map(({ id, sha256 }) => [id, sha256]),
      );
      return messagesOf(evidence, owner)
        .filter(({ direction }) => direction === 'outbound')
        .map((message) => [message.id as string, { message, owner, sha256: stored.get(message.id) ?? null }] as const);
    }),
  );
}

/** The message that a copy says it is of: our Message-IDs are made of our ids. */
function idIn({ rfc_message_id: id }: MessageTrace): string {
  return `msg_${id?.split('@')[0]?.toUpperCase() ?? ''}`;
}

/** Whether a call had the stored bytes with nothing but the originator of a message that had fallen back. */
function fellBack(evidence: Evidence, { message, owner }: Composed, call: CallRecord): boolean {
  const { from, reply_to: replyTo, sha256 } = call;
  if (!from.endsWith(`@${PLATFORM_DOMAIN}`)) return false;
  const stored = evidence.deployment.store.objects.get(message.raw_r2_key);
  // A mailbox that was put back may have forgotten that it did.
  const said = message.flags_json.includes('sent_via_fallback') || mailbox(evidence, owner).restored;
  if (stored === undefined || !said) return false;
  const expected = rewriteOriginator(stored.bytes, from, replyTo);
  return createHash('sha256').update(expected).digest('hex') === sha256;
}
