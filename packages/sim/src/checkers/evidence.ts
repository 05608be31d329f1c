import type { DeliveryStatus, MessageStatus } from '@pmail/core/delivery/status.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import type { Provider } from '@pmail/core/transport/types.ts';
import type { Intent } from '../client.ts';
import type { Deployment } from '../deployment.ts';
import type { SimIdentity } from '../population.ts';

/** What the checkers look at once a schedule has come to rest. */
export interface Evidence {
  deployment: Deployment;
  identities: SimIdentity[];
  intents: Intent[];
  /** Messages that a person has settled, and how. */
  resolved: Map<MessageId, 'sent' | 'not_sent'>;
  /** Unix ms from which on what happened is to be found in the counters; those of before may be gone.
   * Infinity: clocks were turned back over a day, so the days that are counted are not those of the rows. */
  since: number;
  /** Unix ms at which faults have stopped. */
  calmAt: number;
}

export interface Violation {
  invariant: string;
  text: string;
}

export interface MessageTrace {
  rowid: number;
  id: MessageId;
  direction: 'inbound' | 'outbound';
  status: MessageStatus;
  provider: Provider | null;
  provider_message_id: string | null;
  raw_sha256: string;
  raw_r2_key: string;
  rfc_message_id: string | null;
  flags_json: string;
  received_at: number;
  thread_seq: number;
}

export interface DeliveryTrace {
  message_rowid: number;
  address: string;
  status: DeliveryStatus;
  smtp_response: string | null;
  provider_event_ids_json: string;
  /** When the report was made that its status comes from; null when it does not come from one. */
  reported_at: number | null;
}

export interface Step {
  rowid: number;
  address: string | null;
  old: string;
  new: string;
}

export function messagesOf(evidence: Evidence, identity: SimIdentity): MessageTrace[] {
  return mailbox(evidence, identity).sql.all<MessageTrace>('SELECT * FROM messages ORDER BY rowid');
}

export function deliveriesOf(evidence: Evidence, identity: SimIdentity): DeliveryTrace[] {
  return mailbox(evidence, identity).sql.all<DeliveryTrace>('SELECT * FROM deliveries');
}

export function traceOf(evidence: Evidence, identity: SimIdentity): Step[] {
  return mailbox(evidence, identity).sql.all<Step>(
    'SELECT rowid_ AS rowid, address, old, new FROM sim_trace ORDER BY n',
  );
}

export function mailbox({ deployment }: Evidence, identity: SimIdentity) {
  const host = deployment.mailboxes.get(identity.identity_id);
  if (host === undefined) throw new Error('no such mailbox');
  return host;
}
