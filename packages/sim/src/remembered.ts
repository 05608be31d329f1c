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
  subject: string | null;
  from_address: string;
  to_json: string;
  cc_json: string;
  flags_json: string;
  received_at: number;
  thread_seq: number;
  /** Whether a transport took it for anyone, by the mailbox's own word. */
  accepted: number;
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

/** A step in the order of all, the coming into being of a row among them: then there was no status before. */
export interface Numbered extends Step {
  n: number;
}

/** A report as it was noted at a recipient, with all that were noted there by then. */
export interface Noted {
  rowid: number;
  address: string;
  ids: string;
  /** The step that came before it. */
  after_n: number;
}

export interface Attempt {
  message_rowid: number;
  n: number;
  result: string | null;
  late: number;
  detail_json: string | null;
}

export interface Remembered {
  messages: MessageTrace[];
  deliveries: DeliveryTrace[];
  trace: Step[];
  history: Numbered[];
  noted: Noted[];
  attempts: Attempt[];
  /** What was told, in its order, and the messages that wait for a transport. */
  events: string[];
  waiting: string[];
}

export function remember(sql: Sql): Remembered {
  const texts = (query: string): string[] => sql.all<{ text: string }>(query).map(({ text }) => text);
  return {
    messages: sql.all('SELECT * FROM messages ORDER BY rowid'),
    deliveries: sql.all('SELECT * FROM deliveries'),
    trace: sql.all("SELECT rowid_ AS rowid, address, old, new FROM sim_trace WHERE old <> '' ORDER BY n"),
    history: sql.all('SELECT n, rowid_ AS rowid, address, old, new FROM sim_trace ORDER BY n'),
    noted: sql.all('SELECT rowid_ AS rowid, address, ids, after_n FROM sim_report ORDER BY n'),
    attempts: sql.all('SELECT message_rowid, n, result, late, detail_json FROM attempts ORDER BY message_rowid, n'),
    events: texts('SELECT payload_json AS text FROM outbox ORDER BY seq'),
    waiting: texts("SELECT substr(k, 10) AS text FROM meta WHERE k LIKE 'dispatch:%'"),
  };
}
