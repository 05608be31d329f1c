import { DurableObject } from 'cloudflare:workers';
import type { DeliveryEvent, LearnedId } from '@pmail/core/delivery/events.ts';
import type { EventType } from '@pmail/core/events/types.ts';
import type { AttachmentId, EventId, MessageId, ThreadId } from '@pmail/core/ids.ts';
import type { MessageResource } from '@pmail/core/message/resource.ts';
import { lastSequence } from '@pmail/engine/directory/events.ts';
import { workRegistry } from '@pmail/engine/directory/work.ts';
import type { EventAnswer } from '@pmail/engine/mailbox/apply-event.ts';
import type { AttemptRow } from '@pmail/engine/mailbox/attempts.ts';
import type { BeginAnswer, BeginRequest } from '@pmail/engine/mailbox/begin-transport.ts';
import type { CancelAnswer, StopAnswer } from '@pmail/engine/mailbox/cancel.ts';
import type { DryRunAnswer } from '@pmail/engine/mailbox/dry-run.ts';
import { MailboxEngine } from '@pmail/engine/mailbox/engine.ts';
import type { IngestAnswer, IngestRequest } from '@pmail/engine/mailbox/ingest.ts';
import type { JournalCopy } from '@pmail/engine/mailbox/learn-ids.ts';
import type * as Read from '@pmail/engine/mailbox/read.ts';
import type { RebuildProgress } from '@pmail/engine/mailbox/rebuild-types.ts';
import type { OutcomeAnswer, OutcomeRequest } from '@pmail/engine/mailbox/record-outcome.ts';
import type { ResolveAnswer } from '@pmail/engine/mailbox/resolve.ts';
import type { Include } from '@pmail/engine/mailbox/rows.ts';
import type { SubmitAnswer, SubmitRequest } from '@pmail/engine/mailbox/submit-types.ts';
import type { SuppressedAnswer, SuppressedRequest } from '@pmail/engine/mailbox/suppression-round.ts';
import type { MessagePatch } from '@pmail/engine/mailbox/update.ts';
import type { SendState } from '@pmail/engine/quota/types.ts';
import { createComposer } from '@pmail/mime/compose.ts';
import { readMail } from '@pmail/mime/read-mail.ts';
import { config, type Env } from '../env.ts';
import { createLog, errorPlace } from '../log.ts';
import { marks } from '../marks.ts';
import { r2 } from '../ports/blobs.ts';
import { tellEvents } from '../ports/events.ts';
import { producer } from '../ports/queue.ts';
import { newId, random } from '../ports/random.ts';
import { d1, objectSql } from '../ports/sql.ts';
import { platformAlarm } from './alarm.ts';
import { type CallContext, NoOwner, OwnerMismatch } from './calls.ts';
import type { TenantQuota } from './quota.ts';
import { quotaStub, type Remote } from './remote.ts';

export interface MailboxInit {
  quota_do_id: string;
  /** The highest number that the event index knows of this mailbox; null when it has told of nothing. */
  last_sequence: number | null;
  created: { identity: Record<string, unknown>; event_id: EventId; at: number } | null;
}

/** The mailbox of one identity: a thin shell around the engine. It decides nothing. */
export class IdentityMailbox extends DurableObject<Env> {
  readonly #engine: MailboxEngine;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const log = createLog(env.PM_LOG_LEVEL, { object: 'mailbox' });
    const db = d1(env.DB);
    this.#engine = new MailboxEngine({
      sql: objectSql(ctx.storage),
      now: () => Date.now(),
      random,
      newId,
      alarm: platformAlarm(ctx, (error) => log('error', 'alarm_not_set', { error: errorPlace(error) })),
      mark: (name) => marks.reached(name, ctx),
      waits: config(env).waits,
      log,
      blobs: r2(env.BLOBS),
      outbound: producer(env.Q_OUTBOUND),
      inbound: producer(env.Q_INBOUND),
      quota: {
        reserve: async (request) => (await this.#quota()).reserve(this.#quotaCall(), request),
        apply: async (task) => (await this.#quota()).apply(this.#quotaCall(), task),
      },
      events: {
        dispatch: (events) => tellEvents(db, env.Q_WEBHOOKS, events),
        lastSequence: (identity) => lastSequence(db, identity),
      },
      registry: workRegistry(db),
      composer: createComposer(),
      parse: readMail,
      sleep: (ms) => scheduler.wait(ms),
      background: (name, work) => {
        ctx.waitUntil(
          work.catch((error: unknown) => log('warn', 'background_failed', { name, error: errorPlace(error) })),
        );
      },
    });
  }

  async init(call: CallContext, init: MailboxInit): Promise<void> {
    if (call.identity_id === null) throw new OwnerMismatch('a mailbox needs an identity');
    const owner = this.#engine.owner();
    if (owner !== undefined) this.#owned(call);
    // What is to be told stands before there is an owner, so that nobody who comes later can find only half of this.
    await this.ctx.storage.put({ quota_do_id: init.quota_do_id, untold: init.created });
    this.#engine.init({ tenant_id: call.tenant_id, identity_id: call.identity_id }, init.last_sequence);
    await this.#tellCreated();
  }

  submit(call: CallContext, request: SubmitRequest): Promise<SubmitAnswer> {
    return this.#owned(call).submit(request);
  }

  dryRun(call: CallContext, request: SubmitRequest): Promise<DryRunAnswer> {
    return this.#owned(call).dryRun(request);
  }

  beginTransport(call: CallContext, request: BeginRequest): BeginAnswer {
    return this.#owned(call).beginTransport(request);
  }

  recordOutcome(call: CallContext, request: OutcomeRequest): Promise<OutcomeAnswer> {
    return this.#owned(call).recordOutcome(request);
  }

  recordSuppressed(call: CallContext, request: SuppressedRequest): Promise<SuppressedAnswer> {
    return this.#owned(call).recordSuppressed(request);
  }

  learnMessageId(call: CallContext, copy: JournalCopy): boolean {
    return this.#owned(call).learnMessageId(copy);
  }

  applyEvent(call: CallContext, event: DeliveryEvent): Promise<EventAnswer> {
    return this.#owned(call).applyEvent(event);
  }

  learnId(call: CallContext, learned: LearnedId): boolean {
    return this.#owned(call).learnId(learned);
  }

  ingest(call: CallContext, request: IngestRequest): Promise<IngestAnswer> {
    return this.#owned(call).ingest(request);
  }

  cancel(call: CallContext, id: MessageId): Promise<CancelAnswer> {
    return this.#owned(call).cancel(id);
  }

  stopSend(call: CallContext, id: MessageId, reason: string): Promise<StopAnswer> {
    return this.#owned(call).stopSend(id, reason);
  }

  resolve(call: CallContext, id: MessageId, outcome: 'sent' | 'not_sent'): Promise<ResolveAnswer> {
    return this.#owned(call).resolve(id, outcome);
  }

  emitEvent(
    call: CallContext,
    type: EventType,
    data: Record<string, unknown>,
    known: { id: EventId; occurred_at: number },
  ): Promise<void> {
    return this.#owned(call).emitEvent(type, data, known);
  }

  updateMessage(call: CallContext, id: MessageId, patch: MessagePatch): ReturnType<MailboxEngine['updateMessage']> {
    return this.#owned(call).updateMessage(id, patch);
  }

  getMessage(call: CallContext, id: MessageId, include: Include, canReview: boolean): MessageResource | undefined {
    return this.#owned(call).getMessage(id, include, canReview);
  }

  listMessages(
    call: CallContext,
    filter: Read.MessageFilter,
    limit: number,
    after: Read.Position | null,
    canReview: boolean,
  ): Read.Page<MessageResource> {
    return this.#owned(call).listMessages(filter, limit, after, canReview);
  }

  listThreads(
    call: CallContext,
    filter: Read.ThreadFilter,
    limit: number,
    after: Read.Position | null,
  ): ReturnType<MailboxEngine['listThreads']> {
    return this.#owned(call).listThreads(filter, limit, after);
  }

  getThread(
    call: CallContext,
    id: ThreadId,
    limit: number,
    after: Read.Position | null,
    include: Include,
  ): Read.ThreadWithMessages | undefined {
    return this.#owned(call).getThread(id, limit, after, include);
  }

  rawLocation(call: CallContext, id: MessageId, canReview: boolean): string | null | undefined {
    return this.#owned(call).rawLocation(id, canReview);
  }

  attachmentLocation(
    call: CallContext,
    id: MessageId,
    attachment: AttachmentId,
    canReview: boolean,
  ): Read.AttachmentLocation | undefined {
    return this.#owned(call).attachmentLocation(id, attachment, canReview);
  }

  listAttempts(call: CallContext, id: MessageId): AttemptRow[] {
    return this.#owned(call).listAttempts(id);
  }

  readEvent(call: CallContext, id: EventId): string | undefined {
    return this.#owned(call).readEvent(id);
  }

  sendState(call: CallContext, id: MessageId): SendState {
    return this.#owned(call).sendState(id);
  }

  rebuildLedger(call: CallContext, restored: boolean): Promise<RebuildProgress> {
    return this.#owned(call).rebuildLedger(restored);
  }

  async poke(call: CallContext): Promise<{ work: boolean }> {
    const engine = this.#owned(call);
    await this.#tellCreated();
    return engine.poke();
  }

  override async alarm(): Promise<void> {
    await this.#engine.alarm();
  }

  /** Tells of the identity's creation unless that has been done. The event keeps its id, so twice is once. */
  async #tellCreated(): Promise<void> {
    const created = await this.ctx.storage.get<MailboxInit['created']>('untold');
    if (created === undefined) return;
    if (created !== null) {
      const { identity, event_id: id, at } = created;
      await this.#engine.emitEvent('identity.created', { identity }, { id, occurred_at: at });
    }
    await this.ctx.storage.delete('untold');
  }

  #owned(call: CallContext): MailboxEngine {
    const owner = this.#engine.owner();
    if (owner === undefined) throw new NoOwner('mailbox without an owner');
    if (owner.identity_id !== call.identity_id || owner.tenant_id !== call.tenant_id) {
      throw new OwnerMismatch('mailbox belongs to another identity');
    }
    return this.#engine;
  }

  #quotaId: string | undefined;

  async #quota(): Promise<Remote<TenantQuota>> {
    this.#quotaId ??= await this.ctx.storage.get<string>('quota_do_id');
    if (this.#quotaId === undefined) throw new OwnerMismatch('mailbox without a quota');
    return quotaStub(this.env, this.#quotaId);
  }

  #quotaCall(): CallContext {
    const owner = this.#engine.owner();
    if (owner === undefined) throw new OwnerMismatch('mailbox without an owner');
    return { v: 1, ...owner, request_id: 'mailbox' };
  }
}
