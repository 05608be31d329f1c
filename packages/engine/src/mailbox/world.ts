import type { Composer } from '@pmail/core/compose/types.ts';
import type { IdFactory, MessageId } from '@pmail/core/ids.ts';
import type { InboundJob, OutboundJob } from '@pmail/core/queue/jobs.ts';
import type { Owner } from '@pmail/core/storage/keys.ts';
import type { AlarmMemory } from '../alarms.ts';
import type { Mark } from '../marks.ts';
import type { ParsedMail } from '../parsed-mail.ts';
import type { AlarmClock, BlobStore, EventSink, Log, Queue, WorkRegistry } from '../ports.ts';
import type { QuotaTask, ReserveAnswer, ReserveRequest } from '../quota/types.ts';
import type { Waits } from '../settings.ts';
import type { Sql } from '../sql.ts';
import type { RebuildProgress } from './rebuild-types.ts';

/** The tenant's quota as a mailbox sees it. Both calls may throw, with or without having taken effect. */
export interface QuotaPort {
  reserve(request: ReserveRequest): Promise<ReserveAnswer>;
  apply(task: QuotaTask): Promise<void>;
}

/** What the shell gives to a mailbox: everything that is not rule or state. */
export interface MailboxPorts {
  sql: Sql;
  now: () => number;
  /** In [0, 1). */
  random: () => number;
  newId: IdFactory;
  alarm: AlarmClock;
  mark: Mark;
  waits: Waits;
  log: Log;
  blobs: BlobStore;
  outbound: Queue<OutboundJob>;
  inbound: Queue<InboundJob>;
  quota: QuotaPort;
  events: EventSink;
  registry: WorkRegistry;
  composer: Composer;
  /** Reads mail as it was stored. Never throws, whatever the bytes are. */
  parse: (raw: Uint8Array) => Promise<ParsedMail>;
  sleep: (ms: number) => Promise<void>;
  /** Lets work go on after the answer; its failure is logged and loses nothing, because an alarm repeats it. */
  background: (name: string, work: Promise<void>) => void;
}

/** World of one live mailbox instance: the ports, and what only this instance remembers. */
export interface MailboxWorld extends MailboxPorts {
  owner: Owner;
  alarms: AlarmMemory;
  /** Hashes of Idempotency-Keys whose request is running in this instance. */
  inFlight: Set<string>;
  /** Messages whose objects are being stored, and that may still commit. */
  storing: Set<MessageId>;
  /** The last thread number handed out. */
  threadSeq: { last: number };
  /**
   * Per thread (its seq) the message that comes next into it and is being composed again for that. Nobody else takes the
   * thread's lock meanwhile.
   */
  turns: Map<number, MessageId>;
  /** How many calls are under way that may leave work behind. */
  running: { count: number };
  /** The entry in the registry of work that is being made just now. */
  entry: { making: Promise<void> | null };
  /**
   * The step of a rebuild of the ledger that is under way; whether one is under way or due; and the requests that ended
   * meanwhile without a message. Their copies may still be listed, and are no proof of an accepted send.
   */
  rebuild: { step: Promise<RebuildProgress> | null; awaited: boolean; turned_away: Set<MessageId> };
}
