import type { DsnReport } from '@pmail/core/delivery/dsn.ts';
import type { DsnEnvelope } from '@pmail/core/delivery/dsn-verdict.ts';
import type { DeliveryEvent, LearnedId } from '@pmail/core/delivery/events.ts';
import type { EventType } from '@pmail/core/events/types.ts';
import type { AttachmentId, EventId, MessageId, ThreadId } from '@pmail/core/ids.ts';
import type { MessageResource } from '@pmail/core/message/resource.ts';
import type { Owner } from '@pmail/core/storage/keys.ts';
import { type AlarmMemory, dueDeadlines, forgettingSql, rearm, setDeadline } from '../alarms.ts';
import { readMeta, writeMeta } from '../meta.ts';
import type { SendState } from '../quota/types.ts';
import { migrate } from '../sql.ts';
import { applyEvent, type EventAnswer } from './apply-event.ts';
import type { AttemptRow } from './attempts.ts';
import { type BeginAnswer, type BeginRequest, beginTransport } from './begin-transport.ts';
import { type CancelAnswer, cancel, type StopAnswer, stopSend } from './cancel.ts';
import { expireClaims } from './claim-expiry.ts';
import { isWaiting } from './claims.ts';
import { pullMailBack } from './clock-back.ts';
import { dispatchQueued } from './dispatch.ts';
import { type DryRunAnswer, dryRun } from './dry-run.ts';
import { applyDsn, type DsnAnswer } from './event-dsn.ts';
import { emit } from './events.ts';
import { sendFollowups } from './followups.ts';
import { type IngestAnswer, type IngestRequest, ingest } from './ingest.ts';
import { type JournalCopy, learnMessageId } from './learn-ids.ts';
import { maintain } from './maintenance.ts';
import { findMessage } from './messages.ts';
import { dispatchOutbox, readEvent } from './outbox.ts';
import { learnId } from './provider-ids.ts';
import { owesQuota, payQuota } from './quota-tasks.ts';
import * as read from './read.ts';
import { rebuildLedger } from './rebuild.ts';
import type { RebuildProgress } from './rebuild-types.ts';
import { type OutcomeAnswer, type OutcomeRequest, recordOutcome } from './record-outcome.ts';
import { type ResolveAnswer, resolve } from './resolve.ts';
import { isRestored, takeForRestored, turnBack } from './restore.ts';
import type { Include } from './rows.ts';
import { MAILBOX_MIGRATIONS } from './schema.ts';
import { submit } from './submit.ts';
import type { SubmitAnswer, SubmitRequest } from './submit-types.ts';
import { recordSuppressed, type SuppressedAnswer, type SuppressedRequest } from './suppression-round.ts';
import { noteCleanUp } from './trusted-time.ts';
import { type MessagePatch, updateMessage } from './update.ts';
import { clearWhenIdle, hasWork, withEntry } from './work.ts';
import type { MailboxPorts, MailboxWorld } from './world.ts';

/** Wait before an alarm purpose that threw is tried again. */
const FAILED_PURPOSE_RETRY_MS = 30_000;

/**
 * The mailbox of one identity: its messages, threads, idempotency ledger and outbox. One instance per object; what it
 * keeps in memory may be lost with it at any time.
 */
export class MailboxEngine {
  readonly #world: MailboxWorld;

  constructor(ports: MailboxPorts) {
    migrate(ports.sql, MAILBOX_MIGRATIONS);
    const owner = {
      tenant_id: readMeta(ports.sql, 'tenant_id'),
      identity_id: readMeta(ports.sql, 'identity_id'),
    } as Owner;
    const alarms: AlarmMemory = { armed: undefined };
    const sql = forgettingSql(ports.sql, alarms);
    const memory = {
      inFlight: new Set<string>(),
      storing: new Set<MessageId>(),
      threadSeq: { last: 0 },
      turns: new Map<number, MessageId>(),
      running: { count: 0 },
      entry: { making: null },
      rebuild: { step: null, awaited: false, turned_away: new Set<MessageId>() },
    };
    this.#world = { ...ports, sql, owner, alarms, ...memory };
    rearm(this.#world);
  }

  /** Undefined before `init`. */
  owner(): Owner | undefined {
    return (this.#world.owner.identity_id as string | undefined) === undefined ? undefined : this.#world.owner;
  }

  /**
   * Stores the owner. Repeating it changes nothing.
   *
   * @param known highest number that the event index has of this mailbox; null when it has told of nothing
   */
  init(owner: Owner, known: number | null = null): void {
    const world = this.#world;
    world.sql.transaction(() => {
      const fresh = readMeta(world.sql, 'identity_id') === undefined;
      if (fresh) {
        writeMeta(world.sql, 'tenant_id', owner.tenant_id);
        writeMeta(world.sql, 'identity_id', owner.identity_id);
        writeMeta(world.sql, 'created_at', String(world.now()));
        noteCleanUp(world.sql, world.now());
        setDeadline(world, 'maintenance', world.now() + world.waits.maintenance_every_ms);
      }
      Object.assign(world.owner, owner);
      // One that has told of something and has no owner has forgotten everything, its keys too.
      if (fresh && known !== null) turnBack(world, known);
    });
  }

  submit(request: SubmitRequest): Promise<SubmitAnswer> {
    return submit(this.#enter(), request);
  }

  dryRun(request: SubmitRequest): Promise<DryRunAnswer> {
    return dryRun(this.#enter(), request);
  }

  beginTransport(request: BeginRequest): BeginAnswer {
    return beginTransport(this.#enter(), request);
  }

  recordOutcome(request: OutcomeRequest): Promise<OutcomeAnswer> {
    // A late result can find the mailbox idle and leave work behind.
    return this.#withEntry((world) => recordOutcome(world, request));
  }

  recordSuppressed(request: SuppressedRequest): Promise<SuppressedAnswer> {
    return this.#withEntry((world) => recordSuppressed(world, request));
  }

  learnMessageId(copy: JournalCopy): boolean {
    return learnMessageId(this.#enter(), copy);
  }

  applyEvent(event: DeliveryEvent): Promise<EventAnswer> {
    return this.#withEntry((world) => applyEvent(world, event));
  }

  applyDsn(report: DsnReport, envelope: DsnEnvelope): Promise<DsnAnswer> {
    return this.#withEntry((world) => applyDsn(world, report, envelope));
  }

  learnId(learned: LearnedId): boolean {
    return learnId(this.#enter(), learned);
  }

  ingest(request: IngestRequest): Promise<IngestAnswer> {
    return this.#withEntry((world) => ingest(world, request));
  }

  cancel(id: MessageId): Promise<CancelAnswer> {
    return this.#withEntry((world) => cancel(world, id));
  }

  stopSend(id: MessageId, reason: string): Promise<StopAnswer> {
    return this.#withEntry((world) => stopSend(world, id, reason));
  }

  resolve(id: MessageId, outcome: 'sent' | 'not_sent'): Promise<ResolveAnswer> {
    return this.#withEntry((world) => resolve(world, id, outcome));
  }

  /** Emits an event whose cause lies outside the mailbox; the same id is emitted once. */
  emitEvent(
    type: EventType,
    data: Record<string, unknown>,
    known: { id: EventId; occurred_at: number },
  ): Promise<void> {
    return this.#withEntry((world) => world.sql.transaction(() => emit(world, type, data, known)));
  }

  updateMessage(id: MessageId, patch: MessagePatch): ReturnType<typeof updateMessage> {
    return updateMessage(this.#enter(), id, patch);
  }

  getMessage(id: MessageId, include: Include, canReview: boolean): MessageResource | undefined {
    return read.getMessage(this.#enter(), id, include, canReview);
  }

  listMessages(...args: Tail<typeof read.listMessages>): ReturnType<typeof read.listMessages> {
    return read.listMessages(this.#enter(), ...args);
  }

  listThreads(...args: Tail<typeof read.listThreads>): ReturnType<typeof read.listThreads> {
    return read.listThreads(this.#enter(), ...args);
  }

  getThread(
    id: ThreadId,
    limit: number,
    after: read.Position | null,
    include: Include,
  ): read.ThreadWithMessages | undefined {
    return read.getThread(this.#enter(), id, limit, after, include);
  }

  rawLocation(id: MessageId, canReview: boolean): string | null | undefined {
    return read.rawLocation(this.#enter(), id, canReview);
  }

  attachmentLocation(id: MessageId, attachment: AttachmentId, canReview: boolean): read.AttachmentLocation | undefined {
    return read.attachmentLocation(this.#enter(), id, attachment, canReview);
  }

  listAttempts(id: MessageId): AttemptRow[] {
    return read.listAttempts(this.#enter(), id);
  }

  readEvent(id: EventId): string | undefined {
    return readEvent(this.#enter(), id);
  }

  /** What the quota asks about a hold that has run out of time. */
  sendState(id: MessageId): SendState {
    const { sql, storing } = this.#enter();
    // A clock that jumps ends the hold of a request that is still under way.
    if (storing.has(id)) return 'open';
    const row = findMessage(sql, id);
    // A mailbox that was put back knows only with its ledger whether it has the send.
    if (row === undefined) return isRestored(sql) ? 'open' : 'unknown';
    if (row.status === 'canceled') return 'canceled';
    // What has been sent and not yet been counted needs its hold: others would be given its place in the allowance.
    return isWaiting(sql, id) || owesQuota(sql, id) ? 'open' : 'ended';
  }

  /**
   * Makes the ledger again from the object store, as far as one request goes; the alarm goes on until it is complete.
   *
   * @param restored somebody's word that the mailbox was put back
   */
  rebuildLedger(restored: boolean): Promise<RebuildProgress> {
    if (restored) takeForRestored(this.#enter());
    return this.#withEntry(rebuildLedger);
  }

  /** A poke of the cron: entering has put a lost alarm back; an entry without work is taken out of the registry. */
  async poke(): Promise<{ work: boolean }> {
    const world = this.#enter();
    const work = hasWork(world);
    if (!work) await clearWhenIdle(world);
    return { work };
  }

  /**
   * The platform alarm. Every due purpose gets its turn whatever the others do, and one that fails stays armed: the
   * platform's own retries are few, and would be replaced by the next alarm anyway. It throws only where not even
   * that can be written: an alarm armed again would fire at once, and the platform's retries come slower each time. After
   * them the cron's poke is what is left.
   */
  async alarm(): Promise<void> {
    const world = this.#world;
    world.alarms.armed = undefined;
    const now = world.now();
    let full: Error | undefined;
    for (const { purpose } of dueDeadlines(world.sql, now)) {
      try {
        await this.#run(purpose);
      } catch (error) {
        world.log('error', 'mailbox_alarm_failed', { purpose, error: error instanceof Error ? error.name : 'unknown' });
        const fault = this.#putOff(purpose);
        full ??= fault;
      }
    }
    if (full !== undefined) throw full;
    // What was due may have been put off to where the clock once was.
    pullMailBack(world);
    rearm(world);
  }

  /** @returns what stands against writing even that */
  #putOff(purpose: string): Error | undefined {
    const world = this.#world;
    try {
      setDeadline(world, purpose, world.now() + FAILED_PURPOSE_RETRY_MS);
      return undefined;
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  async #run(purpose: string): Promise<void> {
    const world = this.#world;
    switch (purpose) {
      case 'outbox':
        return dispatchOutbox(world);
      case 'claim':
        expireClaims(world);
        return payQuota(world);
      case 'dispatch':
        return dispatchQueued(world);
      case 'quota':
        return payQuota(world);
      case 'followup':
        return sendFollowups(world);
      case 'maintenance':
        return maintain(world);
      case 'rebuild':
        await this.rebuildLedger(false);
        return;
      default:
        // Left by a newer version of this code that was rolled back.
        return setDeadline(world, purpose, null);
    }
  }

  #withEntry<T>(run: (world: MailboxWorld) => Promise<T> | T): Promise<T> {
    const world = this.#enter();
    return withEntry(world, () => run(world));
  }

  #enter(): MailboxWorld {
    if (rearm(this.#world)) pullMailBack(this.#world);
    return this.#world;
  }
}

type Tail<F> = F extends (first: never, ...rest: infer R) => unknown ? R : never;
