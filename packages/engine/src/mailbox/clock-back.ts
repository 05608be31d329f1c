import { isFarAhead, pullBack } from '../alarms.ts';
import { metaWithPrefix, writeMeta } from '../meta.ts';
import { allClaims, writeClaim } from './claims.ts';
import type { MailboxWorld } from './world.ts';

/**
 * Mail that was accepted while the clock ran ahead is taken to wait for now: a pointer too many is harmless, and so is a
 * claim that ends early, because it ends as uncertain and a late result is still heard.
 */
export function pullMailBack(world: MailboxWorld): void {
  const { sql } = world;
  pullBack(world, (now, farthest) => {
    for (const { k, v } of metaWithPrefix(sql, 'dispatch:')) {
      if (isFarAhead(Number(v), now)) writeMeta(sql, k, String(now));
    }
    for (const { message, claim } of allClaims(sql)) {
      if (isFarAhead(claim.claimed_at, now)) writeClaim(sql, message, { ...claim, claimed_at: now });
    }
    sql.run('UPDATE followups SET due_at = ? WHERE due_at > ?', now, farthest);
  });
}
