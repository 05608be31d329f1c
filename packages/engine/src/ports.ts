import type { EventType } from '@pmail/core/events/types.ts';
import type { EventId, IdentityId, TenantId } from '@pmail/core/ids.ts';

/** Object storage (R2). Keys hold ids only. */
export interface BlobStore {
  put(key: string, bytes: Uint8Array, metadata: Record<string, string>): Promise<void>;
  /** Null when there is no such object. */
  get(key: string): Promise<Uint8Array | null>;
  delete(keys: string[]): Promise<void>;
  /** Keys after `startAfter` in byte order, at most `limit`, and whether more follow. */
  list(prefix: string, startAfter: string, limit: number): Promise<{ keys: string[]; more: boolean }>;
  /** The same with what stands beside each object; a page may hold fewer than `limit` although more follow. */
  inspect(prefix: string, startAfter: string, limit: number): Promise<{ objects: BlobFacts[]; more: boolean }>;
}

export interface BlobFacts {
  key: string;
  bytes: number;
  metadata: Record<string, string>;
}

export interface Queue<T> {
  /** @param delayMs the earliest delivery, rounded up to whole seconds by the platform */
  send(job: T, delayMs?: number): Promise<void>;
}

/** One event of a mailbox's outbox on its way to the index and the subscribers. */
export interface OutboxEvent {
  id: EventId;
  type: EventType;
  tenant_id: TenantId;
  identity_id: IdentityId;
  sequence: number;
  occurred_at: number;
}

export interface Dispatched {
  taken: number | null;
  /** With the numbers under which it has them. */
  known: { id: EventId; sequence: number }[];
}

/** Where the outbox goes: the event index, then one fan-out job each. Repeats are harmless. */
export interface EventSink {
  /**
   * Takes a batch of one mailbox, or nothing of it when other events of that mailbox already stand at its numbers.
   *
   * @returns the highest number of those others, or null when the batch was taken, and which of the batch it had already
   */
  dispatch(events: OutboxEvent[]): Promise<Dispatched>;
  /** The highest number known of a mailbox's events; null when none is known. */
  lastSequence(identityId: IdentityId): Promise<number | null>;
}

/** The list of mailboxes with work, by which a cron finds one whose alarm has died. */
export interface WorkRegistry {
  /** Says that the mailbox has work from `since` on (Unix ms, which names the entry). */
  mark(identityId: IdentityId, since: number): Promise<void>;
  /** Takes back exactly the entry made with `since`. */
  clear(identityId: IdentityId, since: number): Promise<void>;
}

/** The platform's single alarm of an object. Null puts it off. */
export interface AlarmClock {
  set(at: number | null): void;
}

/** Structured log without addresses or content: ids, codes and counts only. */
export type Log = (
  level: 'info' | 'warn' | 'error',
  event: string,
  fields: Record<string, string | number | null>,
) => void;
