import { LIMITS } from '@pmail/core/limits.ts';
import type { SimIdentity } from '../population.ts';
import { type Evidence, mailbox, type Violation } from './evidence.ts';

/** S14: a thread goes from one message to the next only when the first let go of it, or its lease has run out. */
export function threadsInTurn(evidence: Evidence): Violation[] {
  const violations: Violation[] = [];
  for (const identity of evidence.identities) {
    const taken = mailbox(evidence, identity).sql.all<{
      seq: number;
      old: string | null;
      new: string | null;
      old_until: number | null;
      at: number;
    }>('SELECT seq, old, new, old_until, at FROM sim_lock ORDER BY n');
    for (const text of betweenTurns(evidence, identity)) violations.push({ invariant: 'S14', text });
    for (const { seq, old, new: next, old_until: until, at } of taken) {
      if (old === null || next === null || (until ?? 0) < at) continue;
      violations.push({ invariant: 'S14', text: `thread ${seq} went from ${old} to ${next} before its time` });
    }
    const held = mailbox(evidence, identity).sql.all<{ seq: number; lock_owner: string; status: string | null }>(
      `SELECT t.seq, t.lock_owner, m.status FROM threads t LEFT JOIN messages m ON m.id = t.lock_owner
       WHERE t.lock_owner IS NOT NULL`,
    );
    for (const { seq, lock_owner: owner, status } of held) {
      violations.push({ invariant: 'S14', text: `thread ${seq} at rest is held by ${owner}, which is ${status}` });
    }
  }
  return violations;
}

interface Turn {
  id: string;
  thread: number;
  what: 'opened' | 'joined' | 'claimed' | 'ended';
  at: number;
}

/**
 * Messages that joined a thread while one before them had its turn, by what befell the messages and not by the lock: a lock
 * that is not taken, or let go too early, shows here. Who opens a thread needs none.
 */
function betweenTurns(evidence: Evidence, identity: SimIdentity): string[] {
  const wrong: string[] = [];
  const turns = mailbox(evidence, identity).sql.all<Turn>('SELECT id, thread, what, at FROM sim_turn ORDER BY n');
  for (const [thread, own] of Map.groupBy(turns, (turn) => turn.thread)) {
    /** Until when who has not ended yet keeps the others out. */
    const leases = new Map<string, number>();
    for (const { id, what, at } of own) {
      if (what === 'ended') leases.delete(id);
      if (what === 'claimed' && leases.has(id)) leases.set(id, at + LIMITS.thread_lock_claim_lease_ms);
      if (what !== 'joined') continue;
      for (const [other, until] of leases) {
        if (until >= at) wrong.push(`thread ${thread} went on with ${id} before ${other} had its end`);
        // Whose lease was over has lost the thread, and a claim that comes later does not bring it back (seed 700045).
        leases.delete(other);
      }
      leases.set(id, at + LIMITS.thread_lock_lease_ms);
    }
  }
  return wrong;
}
