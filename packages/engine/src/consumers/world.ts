import type { Address } from '@pmail/core/address/address.ts';
import type { MessageIdStrategy } from '@pmail/core/cloudflare/message-id.ts';
import type { DeliveryEvent, LearnedId } from '@pmail/core/delivery/events.ts';
import type { EventType } from '@pmail/core/events/types.ts';
import type { EventId, IdFactory, MessageId } from '@pmail/core/ids.ts';
import type { OutboundJob } from '@pmail/core/queue/jobs.ts';
import type { ThreadKey } from '@pmail/core/threading/token.ts';
import type { DomainIssue, MailTransport, OutgoingMessage, Provider } from '@pmail/core/transport/types.ts';
import type { Deployment } from '../directory/facts.ts';
import type { Route } from '../directory/routing.ts';
import type { EventAnswer } from '../mailbox/apply-event.ts';
import type { BeginAnswer, BeginRequest } from '../mailbox/begin-transport.ts';
import type { StopAnswer } from '../mailbox/cancel.ts';
import type { IngestAnswer, IngestRequest } from '../mailbox/ingest.ts';
import type { JournalCopy } from '../mailbox/learn-ids.ts';
import type { OutcomeAnswer, OutcomeRequest } from '../mailbox/record-outcome.ts';
import type { SuppressedAnswer, SuppressedRequest } from '../mailbox/suppression-round.ts';
import type { Mark } from '../marks.ts';
import type { BlobStore, Log, Queue } from '../ports.ts';
import type { OutcomeAnswer as AbuseAnswer, OutcomeRequest as AbuseRequest } from '../quota/types.ts';
import type { Db } from '../sql.ts';
import type { RelayPlaces } from './relay-places.ts';

/** A mailbox as a consumer reaches it: over the wire, so every call may fail with or without effect. */
export interface MailboxRemote {
  beginTransport(request: BeginRequest): Promise<BeginAnswer>;
  recordOutcome(request: OutcomeRequest): Promise<OutcomeAnswer>;
  recordSuppressed(request: SuppressedRequest): Promise<SuppressedAnswer>;
  learnMessageId(copy: JournalCopy): Promise<boolean>;
  stopSend(id: MessageId, reason: string): Promise<StopAnswer>;
  applyEvent(event: DeliveryEvent): Promise<EventAnswer>;
  /** False when no message there is meant, at least not yet. */
  learnId(learned: LearnedId): Promise<boolean>;
  ingest(request: IngestRequest): Promise<IngestAnswer>;
  emitEvent(type: EventType, data: Record<string, unknown>, known: { id: EventId; occurred_at: number }): Promise<void>;
}

export interface QuotaRemote {
  recordOutcome(request: AbuseRequest): Promise<AbuseAnswer>;
}

/** What a message says beside who it is from and to. */
export type MailContent = Pick<OutgoingMessage, 'text' | 'html' | 'headers' | 'attachments' | 'names'>;

/** World of the queue consumers. They act and report back; nothing they decide outlives them. */
export interface ConsumerWorld {
  db: Db;
  deployment: Deployment;
  now: () => number;
  newId: IdFactory;
  /** A name for one run of one job, never used again. */
  newToken: () => string;
  mark: Mark;
  log: Log;
  count: (counter: string) => void;
  mailbox: (route: Route) => MailboxRemote;
  quota: (quotaDoId: string, tenantId: Route['tenant_id']) => QuotaRemote;
  blobs: BlobStore;
  outbound: Queue<OutboundJob>;
  transports: { [P in Provider]?: MailTransport };
  /** Shared by the jobs of a batch. Without it nobody waits. */
  relay_places?: RelayPlaces;
  /**
   * A transport was refused because of the sending domain, whose health should be checked now and not only when its turn
   * comes. Asking is all that is done here; that it fails changes nothing about the message.
   */
  requestDomainCheck: (domain: string, issue: DomainIssue) => Promise<void>;
  /** Reads a composed message apart, for transports that take it in fields. */
  content: (mime: Uint8Array) => Promise<MailContent>;
  /** How the Message-IDs that Cloudflare makes become known, and the domain it makes them with, where that is known. */
  message_ids: { strategy: MessageIdStrategy; domain: string | null };
  /** The key that signs thread tokens now; null where there is none. */
  threadKey: () => Promise<ThreadKey | null>;
  /** Hex HMAC under which an address stands in the suppression list, and raw HMAC bytes for derived ids. */
  hashAddress: (address: Address) => Promise<string>;
  hmac: (text: string) => Promise<Uint8Array>;
}

/** What becomes of the queue message. */
export type Disposition = { kind: 'ack' } | { kind: 'retry'; delay_ms: number };

export const ACK: Disposition = { kind: 'ack' };

/** Wait before a job that met an unexpected fault is delivered again. */
export const FAULT_RETRY_MS = 30_000;

export function retryAfter(delayMs: number): Disposition {
  return { kind: 'retry', delay_ms: delayMs };
}
