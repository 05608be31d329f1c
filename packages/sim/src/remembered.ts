import type { DeliveryStatus, MessageStatus } from '@pmail/core/delivery/status.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import type { Provider } from '@pmail/core/transport/types.ts';
import type { Sql } from '@pmail/engine/sql.ts';

/** What a mailbox holds, as the checkers read it. */

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

export interface Remembered {
  messages: MessageTrace[];
  deliveries: DeliveryTrace[];
  trace: Step[];
}

export function remember(sql: Sql): Remembered {
  return {
    messages: sql.all('SELECT * FROM messages ORDER BY rowid'),
    deliveries: sql.all('SELECT * FROM deliveries'),
    trace: sql.all('SELECT rowid_ AS rowid, address, old, new FROM sim_trace ORDER BY n'),
  };
}
