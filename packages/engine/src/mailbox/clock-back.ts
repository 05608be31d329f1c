import { isFarAhead, LONGEST_WAIT_MS, setDeadline, strayDeadlines } from '../alarms.ts';
import { metaWithPrefix, writeMeta } from '../meta.ts';
import { allClaims, writeClaim } from './claims.ts';
import type { MailboxWorld } from './world.ts';

/**
 * Mail that was accepted while the clock ran far ahead would wait until that time has really come. Whatever waits for
 * a moment that nothing waits for is taken to wait for now: a pointer too many is harmless, and so is a claim that
 * ends early, because it ends as uncertain and a late result is still heard.
 */
export function pullBack(world: MailboxWorld): void {
  const { sql } = world;
  const now = world.now();
  const ahead = strayDeadlines(sql, now);
  if (ahead.length === 0) return;
  const farthest = now + LONGEST_WAIT_MS;
  sql.transaction(() => {
    for (const { k, v } of metaWithPrefix(sql, 'dispatch:')) {
      if (isFarAhead(Number(v), now)) writeMeta(sql, k, String(now));
    }
    for (const { message, claim } of allClaims(sql)) {
      if (isFarAhead(claim.claimed_at, now)) writeClaim(sql, message, { ...claim, claimed_at: now });
    }
    sql.run('UPDATE followups SET due_at = ? WHERE due_at > ?', now, farthest);
    sql.run('UPDATE threads SET lock_until = ? WHERE lock_until > ?', now, farthest);
    for (const purpose of ahead) setDeadline(world, purpose, now);
  });
  world.log('warn', 'clock_went_back', { deadlines: ahead.length });
}
