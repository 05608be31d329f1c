import type { ErrorCode } from '@pmail/core/errors.ts';
import { ERRORS } from '@pmail/core/errors.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import type { Conflict, Intent } from '../client.ts';
import { type Evidence, mailbox, type Violation } from './evidence.ts';

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

/** What is wrong with a refusal; null when it was right. */
function whyRefused(evidence: Evidence, intent: Intent, code: ErrorCode, at: number): string | null {
  const { identity } = intent;
  const tenant = evidence.deployment.tenants.find(({ tenant_id }) => tenant_id === identity.tenant_id);
  const unless = (right: boolean, text: string): string | null => (right ? null : `${code}, ${text}`);
  switch (code) {
    case 'daily_cap_reached': {
      const { identity_daily_send_cap: own, tenant_daily_send_cap: all } = tenant?.policy ?? {};
      return unless(typeof own === 'number' || typeof all === 'number', 'and there is no cap');
    }
    case 'billing_limit':
      return unless(tenant?.granted !== undefined, 'and nothing is metered');
    case 'identity_paused':
      return unless(
        wasBanned(evidence, intent, 'paused', at) || pausedForAbuse(evidence, intent),
        'and nobody paused it',
      );
    case 'tenant_suspended':
      return unless(wasBanned(evidence, intent, 'suspended', at), 'and nobody suspended it');
    case 'message_too_large':
      return unless(contentOf(intent) > 0.9 * LIMITS.composed_bytes_max, `and has ${contentOf(intent)} bytes`);
    case 'idempotency_conflict':
      return unless(intent.conflicts.some(mayHaveMade), 'and no other body was taken');
    case 'message_not_found':
    case 'thread_not_found': {
      // A mailbox that was put back has forgotten what it was to be an answer to.
      const { restored } = mailbox(evidence, identity);
      return unless(restored && (intent.target_id !== null || intent.body.thread_id != null), 'and it is there');
    }
    case 'invalid_request':
      return unless(isToItself(evidence, intent), 'and there was somebody to send it to');
    default:
      return unless(ERRORS[code].retryable, 'for which there is no cause');
  }
}

/** Whoever heard nothing may have been accepted. */
function mayHaveMade({ ok, code }: Conflict): boolean {
  return ok || code === null || code === 'timeout';
}

function wasBanned({ deployment }: Evidence, { identity, reads }: Intent, what: string, at: number): boolean {
  const first = Math.min(...reads);
  return deployment.standing.bans.some(
    ({ subject, what: how, from, until }) =>
      how === what &&
      (subject === identity.identity_id || subject === identity.tenant_id) &&
      from <= at &&
      until >= first,
  );
}

function pausedForAbuse({ deployment }: Evidence, { identity }: Intent): boolean {
  return (
    deployment.directory.first(
      "SELECT 1 FROM audit_log WHERE target_id = ? AND action = 'identity.auto_pause'",
      identity.identity_id,
    ) !== undefined
  );
}

/** An answer to what an identity has written to itself is to nobody. */
function isToItself(evidence: Evidence, { identity, operation, target_id: target }: Intent): boolean {
  if (operation !== 'reply' && operation !== 'reply_all') return false;
  const row = mailbox(evidence, identity).sql.first<{ from_address: string; to_json: string; cc_json: string }>(
    'SELECT from_address, to_json, cc_json FROM messages WHERE id = ?',
    target,
  );
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
