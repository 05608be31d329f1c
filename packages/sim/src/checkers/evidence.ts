import type { Intent } from '../client.ts';
import type { Deployment } from '../deployment.ts';
import type { SimIdentity } from '../population.ts';
import { type DeliveryTrace, type MessageTrace, type Remembered, remember } from '../remembered.ts';

export type { DeliveryTrace, MessageTrace, Step } from '../remembered.ts';

/** What the checkers look at once a schedule has come to rest. */
export interface Evidence {
  deployment: Deployment;
  identities: SimIdentity[];
  intents: Intent[];
  /** Unix ms from which on what happened is to be found in the counters; those of before may be gone.
   * Infinity: clocks were turned over whole periods, so those that are counted are not those of the rows. */
  since: number;
  /** Unix ms at which faults have stopped. */
  calmAt: number;
}

export interface Violation {
  invariant: string;
  text: string;
}

export function messagesOf(evidence: Evidence, identity: SimIdentity): MessageTrace[] {
  return mailbox(evidence, identity).sql.all<MessageTrace>('SELECT * FROM messages ORDER BY rowid');
}

export function deliveriesOf(evidence: Evidence, identity: SimIdentity): DeliveryTrace[] {
  return mailbox(evidence, identity).sql.all<DeliveryTrace>('SELECT * FROM deliveries');
}

/** All of it at once. */
export function rowsOf(evidence: Evidence, identity: SimIdentity): Remembered {
  return remember(mailbox(evidence, identity).sql);
}

export function mailbox({ deployment }: Evidence, identity: SimIdentity) {
  const host = deployment.mailboxes.get(identity.identity_id);
  if (host === undefined) throw new Error('no such mailbox');
  return host;
}
