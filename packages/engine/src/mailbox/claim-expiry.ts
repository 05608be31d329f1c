import { planOutcome } from '@pmail/core/delivery/outcome.ts';
import { setDeadline } from '../alarms.ts';
import { findAttempt } from './attempts.ts';
import { allClaims, type Claim, readClaim } from './claims.ts';
import { applyOutcome } from './leave-queue.ts';
import { findMessage, readDeliveries } from './messages.ts';
import type { MessageRow } from './rows.ts';
import type { MailboxWorld } from './world.ts';

/**
 * Ends a claim whose holder has not reported in time. Whether it dialed, and what it heard, nobody here knows: the
 * message is uncertain, and never sent again by itself. Call inside a transaction.
 */
export function expireClaim(world: MailboxWorld, row: MessageRow, claim: Claim): void {
  const queued = readDeliveries(world.sql, row.rowid).filter(({ status }) => status === 'queued');
  const plan = planOutcome(
    { kind: 'unknown', reason: 'transport_connection_lost', detail: 'the sending process did not report back' },
    {
      queued: queued.map(({ address }) => address),
      backoff_n: 0,
      submitted_at: row.received_at,
      now: world.now(),
      random: 0,
    },
  );
  applyOutcome(world, row, plan, findAttempt(world.sql, claim.token)?.n ?? 0);
  world.mark('claim.expired');
}

/** The claim alarm: every claim past its time, one transaction each. */
export function expireClaims(world: MailboxWorld): void {
  const { sql } = world;
  const now = world.now();
  const ttl = world.waits.claim_ttl_ms;
  for (const { message, claim } of allClaims(sql)) {
    if (now - claim.claimed_at < ttl) continue;
    sql.transaction(() => {
      const row = findMessage(sql, message);
      const standing = readClaim(sql, message);
      if (row !== undefined && standing?.token === claim.token) expireClaim(world, row, standing);
    });
  }
  sql.transaction(() => {
    const left = allClaims(sql).map(({ claim }) => claim.claimed_at + ttl);
    setDeadline(world, 'claim', left.length === 0 ? null : Math.min(...left));
  });
}
