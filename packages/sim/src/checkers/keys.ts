import type { ErrorCode } from '@pmail/core/errors.ts';
import { ERRORS } from '@pmail/core/errors.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import type { Conflict, Intent } from '../client.ts';
import { type Evidence, mailbox, rowsOf, type Violation } from './evidence.ts';

/** I1 and I5: a key has one message, one answer, and another body under it changes nothing, whichever came first. */
export function oneMessagePerKey(evidence: Evidence): Violation[] {
  const violations: Violation[] = [];
  for (const intent of evidence.intents) {
    const wrong = (text: string): void => {
      violations.push({ invariant: 'I5', text: `${intent.key} ${text}` });
    };
    const [first, ...others] = intent.answers.map((answer) => JSON.stringify(answer));
    for (const other of others) if (other !== first) wrong('was answered in two ways');
    for (const conflict of intent.conflicts) conflictKept(evidence, intent, conflict, wrong);
    const bodies = intent.conflicts.filter(({ ok }) => ok);
    if (new Set(bodies.map(({ id }) => id)).size > 1) wrong('has two messages of another body');
  }
  for (const identity of evidence.identities) {
    const { universe } = evidence.deployment;
    const unkeyed = mailbox(evidence, identity).sql.first<{ n: number }>(
      `SELECT COUNT(*) AS n FROM messages m WHERE direction = 'outbound' AND received_at > ?
       AND (SELECT COUNT(*) FROM idempotency i WHERE i.message_id = m.id) <> 1`,
      universe.now - LIMITS.idempotency_retention_ms,
    );
    if ((unkeyed?.n ?? 0) > 0) {
      violations.push({ invariant: 'I1', text: `${unkeyed?.n} messages of ${identity.address} without their own key` });
    }
  }
  return violations;
}

/** Of two bodies under one key the mailbox takes one, for as long as a key is remembered. */
function conflictKept(
  evidence: Evidence,
  intent: Intent,
  { ok, code, begun_at: begun, at }: Conflict,
  wrong: (text: string) => void,
): void {
  const answered = intent.answered_at;
  const within = answered.some((time) => Math.abs(time - (at ?? begun)) < LIMITS.idempotency_retention_ms);
  if (ok && within) wrong('accepted a second body');
  if (ok || code === null || code === 'timeout' || code === 'idempotency_conflict') return;
  const before = answered.some((time) => time < begun && begun - time < LIMITS.idempotency_retention_ms);
  if (before && !ERRORS[code].retryable) wrong(`answered another body ${code}, and had a message`);
  const why = whyRefused(evidence, intent, code, at ?? begun);
  if (why !== null) wrong(`refused another body: ${why}`);
}

/** I2: a send that was refused for good was refused for a reason that there was. */
export function refusalsTrue(evidence: Evidence): Violation[] {
  return evidence.intents.flatMap((intent) => {
    if (intent.refused === null) return [];
    const why = whyRefused(evidence, intent, intent.refused, intent.refused_at ?? Number.POSITIVE_INFINITY);
    return why === null ? [] : [{ invariant: 'I2', text: `${intent.key} was refused: ${why}` }];
  });
}

/** A refusal that was heard, and when. */
interface Refused {
  evidence: Evidence;
  intent: Intent;
  at: number;
}

/** What has to be so for a refusal, and what is said when it is not. */
const CAUSES: Partial<Record<ErrorCode, { text: string; holds: (refused: Refused) => boolean }>> = {
  daily_cap_reached: {
    text: 'and there is no cap',
    holds: (refused) => {
      const { identity_daily_send_cap: own, tenant_daily_send_cap: all } = tenantOf(refused)?.policy ?? {};
      return typeof own === 'number' || typeof all === 'number';
    },
  },
  billing_limit: { text: 'and nothing is metered', holds: (refused) => tenantOf(refused)?.granted !== undefined },
  identity_paused: {
    text: 'and nobody paused it',
    holds: (refused) => wasBanned(refused, 'paused') || pausedForAbuse(refused),
  },
  tenant_suspended: { text: 'and nobody suspended it', holds: (refused) => wasBanned(refused, 'suspended') },
  message_too_large: {
    text: 'and is not large',
    holds: ({ intent }) => contentOf(intent) > 0.9 * LIMITS.composed_bytes_max,
  },
  idempotency_conflict: {
    text: 'and no other body was taken',
    holds: ({ intent }) => intent.conflicts.some(mayHaveMade),
  },
  // A mailbox that was put back has forgotten what it was to be an answer to.
  message_not_found: { text: 'and it is there', holds: (refused) => mayBeForgotten(refused) },
  thread_not_found: { text: 'and it is there', holds: (refused) => mayBeForgotten(refused) },
  invalid_request: { text: 'and there was somebody to send it to', holds: (refused) => isToItself(refused) },
};

/** What is wrong with a refusal; null when it was right. */
function whyRefused(evidence: Evidence, intent: Intent, code: ErrorCode, at: number): string | null {
  const cause = CAUSES[code];
  if (cause === undefined) return ERRORS[code].retryable ? null : `${code}, for which there is no cause`;
  return cause.holds({ evidence, intent, at }) ? null : `${code}, ${cause.text}`;
}

function tenantOf({ evidence, intent }: Refused): Evidence['deployment']['tenants'][number] | undefined {
  return evidence.deployment.tenants.find(({ tenant_id }) => tenant_id === intent.identity.tenant_id);
}

function mayBeForgotten({ evidence, intent: { identity, target_id: target, body } }: Refused): boolean {
  return mailbox(evidence, identity).restored && (target !== null || body.thread_id != null);
}

/** Whoever heard nothing may have been accepted. */
function mayHaveMade({ ok, code }: Conflict): boolean {
  return ok || code === null || code === 'timeout';
}

function wasBanned({ evidence, intent: { identity, reads }, at }: Refused, what: string): boolean {
  const first = Math.min(...reads);
  return evidence.deployment.standing.bans.some(
    ({ subject, what: how, from, until }) =>
      how === what &&
      (subject === identity.identity_id || subject === identity.tenant_id) &&
      from <= at &&
      until >= first,
  );
}

function pausedForAbuse({ evidence, intent: { identity } }: Refused): boolean {
  return (
    evidence.deployment.directory.first(
      "SELECT 1 FROM audit_log WHERE target_id = ? AND action = 'identity.auto_pause'",
      identity.identity_id,
    ) !== undefined
  );
}

/** An answer to what an identity has written to itself is to nobody, also to what a restore has made it forget since. */
function isToItself({ evidence, intent: { identity, operation, target_id: target } }: Refused): boolean {
  if (operation !== 'reply' && operation !== 'reply_all') return false;
  const known = [rowsOf(evidence, identity), ...mailbox(evidence, identity).forgotten];
  const row = known.flatMap(({ messages }) => messages).find(({ id }) => id === target);
  if (row === undefined) return false;
  const people = [row.to_json, row.cc_json].flatMap((json) => JSON.parse(json) as { address: string }[]);
  const [local = ''] = identity.address.split('@');
  return [row.from_address, ...people.map(({ address }) => address)].every((address) => {
    return address.replace(/\+[^@]*@/, '@').startsWith(`${local}@`);
  });
}

function contentOf({ body }: Intent): number {
  const files = (body.attachments ?? []).reduce((sum, file) => sum + JSON.stringify(file).length, 0);
  return files + (body.text?.length ?? 0) + (body.html?.length ?? 0);
}
