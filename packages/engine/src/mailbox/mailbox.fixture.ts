// The doubles run in Node, which the engine itself must not know.
// oxlint-disable-next-line typescript/triple-slash-reference
/// <reference types="node" />
import type { Json } from '@pmail/core/canonical-json.ts';
import type { Composer } from '@pmail/core/compose/types.ts';
import type { DeliveryStatus } from '@pmail/core/delivery/status.ts';
import type { EventEnvelope, EventType } from '@pmail/core/events/types.ts';
import { sha256Hex } from '@pmail/core/hash.ts';
import { createIdFactory, type IdentityId, type MessageId } from '@pmail/core/ids.ts';
import { type SendBody, type SendOperation, sendFingerprint } from '@pmail/core/message/request.ts';
import type { MessageResource } from '@pmail/core/message/resource.ts';
import { type Overrides, sendContext } from '@pmail/core/policy/context.fixture.ts';
import type { DirectoryFacts } from '@pmail/core/policy/types.ts';
import type { InboundJob, OutboundJob } from '@pmail/core/queue/jobs.ts';
import type { Owner } from '@pmail/core/storage/keys.ts';
import { Knob, MemoryBlobs, ObjectStorage, parsePlain, plainComposer, RecordedQueue } from '@pmail/testkit/doubles.ts';
import type { MarkName } from '../marks.ts';
import type { ParsedMail } from '../parsed-mail.ts';
import type { OutboxEvent } from '../ports.ts';
import { QuotaEngine } from '../quota/engine.ts';
import type { QuotaTask } from '../quota/types.ts';
import { DEFAULT_WAITS } from '../settings.ts';
import type { DryRunAnswer } from './dry-run.ts';
import { MailboxEngine } from './engine.ts';
import type { DirectoryNeeded, SubmitAnswer, SubmitRequest } from './submit-types.ts';

/** A mailbox with everything around it: a virtual clock, stores in memory, its tenant's quota, and knobs for faults. */

export const NOW = Date.UTC(2026, 10, 30, 9);
export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

const SAMPLE = sendContext().directory;
export const OWNER: Owner = { tenant_id: SAMPLE.tenant.id, identity_id: SAMPLE.identity.id };
export const JO = 'jo@example.net';
export const KIM = 'kim@example.net';
export const LEE = 'lee@example.net';

/** Thrown at a mark: the instance dies there. */
export class Crash extends Error {
  override name = 'Crash';
}

export interface SendOptions extends Overrides {
  key?: string;
  /** The message that is answered or forwarded. */
  target_id?: MessageId;
  keys?: SubmitRequest['keys'];
}

export const THREAD_KEY = { kid: '0', secret: new Uint8Array(32).fill(1) };
export const LINK_KEY = { kid: '0', secret: new Uint8Array(32).fill(2) };
export const API_ORIGIN = 'https://api.agents.example';

export type Submitted = Exclude<SubmitAnswer, DirectoryNeeded>;

function isDirectoryNeeded(answer: { ok: boolean; code?: string }): answer is DirectoryNeeded {
  return answer.code === 'directory_needed';
}

export class MailboxRig {
  readonly clock: { now: number };
  readonly owner: Owner;
  readonly storage = new ObjectStorage();
  readonly quotaStorage = new ObjectStorage();
  readonly blobs = new MemoryBlobs();
  readonly outbound = new RecordedQueue<OutboundJob>();
  readonly inbound = new RecordedQueue<InboundJob>();
  readonly reserves = new Knob();
  readonly applies = new Knob();
  readonly applied: QuotaTask[] = [];
  readonly sink = new Knob();
  readonly sequences = new Knob();
  /** What the event index has taken in, repeats included. */
  readonly dispatched: OutboxEvent[] = [];
  readonly registering = new Knob();
  readonly clearing = new Knob();
  /** The registry of mailboxes with work: when each entry was made. */
  readonly registry = new Map<IdentityId, number>();
  readonly logged: string[] = [];
  readonly waits = { ...DEFAULT_WAITS };
  /** What happens while the engine sleeps, beside time passing. */
  whileAsleep: () => void = () => {};
  /** How the engine sleeps; with many sleepers at once, `VirtualTime` puts its own in here. */
  sleep = async (ms: number): Promise<void> => {
    this.clock.now += ms;
    this.whileAsleep();
  };
  composer: Composer = plainComposer;
  /** How stored copies are read. */
  parse: (raw: Uint8Array) => Promise<ParsedMail> = parsePlain;
  #crash: { mark: MarkName; nth: number } | null = null;
  readonly newId = createIdFactory(() => 0.5);
  readonly quota: QuotaEngine;
  engine: MailboxEngine;
  readonly #background: Promise<void>[] = [];

  constructor(owner: Owner = OWNER, clock = { now: NOW }) {
    this.owner = owner;
    this.clock = clock;
    this.quota = new QuotaEngine({
      sql: this.quotaStorage.sql,
      now: () => this.clock.now,
      alarm: this.quotaStorage.alarm,
      mark: () => {},
      waits: this.waits,
      log: () => {},
      sendState: async (_identity, ref) => this.engine.sendState(ref as MessageId),
    });
    this.quota.init(owner.tenant_id);
    this.engine = this.instance();
    this.engine.init(owner);
  }

  /** The highest number in the event index. */
  get lastSequence(): number | null {
    return this.dispatched.length === 0 ? null : Math.max(...this.dispatched.map(({ sequence }) => sequence));
  }

  get sql(): ObjectStorage['sql'] {
    return this.storage.sql;
  }

  /** Another instance of the object, over the same storage. */
  instance(): MailboxEngine {
    return new MailboxEngine({
      sql: this.storage.sql,
      now: () => this.clock.now,
      // In the middle, so that back-offs come without jitter.
      random: () => 0.5,
      newId: this.newId,
      alarm: this.storage.alarm,
      mark: (name) => this.#mark(name),
      waits: this.waits,
      log: (_level, event) => this.logged.push(event),
      blobs: this.blobs,
      outbound: this.outbound,
      inbound: this.inbound,
      quota: {
        reserve: (request) => this.reserves.run(() => this.quota.reserve(request)),
        apply: (task) =>
          this.applies.run(() => {
            this.applied.push(task);
            this.quota.apply(task);
          }),
      },
      events: {
        dispatch: (events) =>
          this.sink.run(() => {
            const [first] = events;
            const others = this.dispatched.filter(
              ({ id, sequence }) =>
                sequence >= (first?.sequence ?? 0) &&
                !events.some((event) => event.id === id && event.sequence === sequence),
            );
            const known = this.dispatched.filter(({ id }) => events.some((event) => event.id === id));
            if (others.length > 0) return { taken: Math.max(...others.map(({ sequence }) => sequence)), known };
            // A repeat shows here as one; an event of before under another number does not take that one too.
            const fresh = events.filter(
              ({ id, sequence }) => !known.some((event) => event.id === id && event.sequence !== sequence),
            );
            this.dispatched.push(...structuredClone(fresh));
            return { taken: null, known };
          }),
        lastSequence: () => this.sequences.run(() => this.lastSequence),
      },
      registry: {
        mark: (identity, since) => this.registering.run(() => void this.registry.set(identity, since)),
        clear: (identity, since) =>
          this.clearing.run(() => {
            if (this.registry.get(identity) === since) this.registry.delete(identity);
          }),
      },
      composer: { compose: (input) => this.composer.compose(input) },
      parse: (raw) => this.parse(raw),
      sleep: (ms) => this.sleep(ms),
      background: (_name, work) => {
        this.#background.push(work.catch(() => this.logged.push('background_failed')).then(() => undefined));
      },
    });
  }

  /** The live instance is gone with its memory; the next call finds a new one. */
  restart(): void {
    this.engine = this.instance();
  }

  /** The instance dies at a mark, on its n-th visit. */
  dieAt(mark: MarkName, nth = 1): void {
    this.#crash = { mark, nth };
  }

  #mark(name: MarkName): void {
    if (this.#crash?.mark !== name || --this.#crash.nth > 0) return;
    this.#crash = null;
    throw new Crash(name);
  }

  /** Lets the work that goes on after an answer come to its end. */
  async settle(): Promise<void> {
    await Promise.all(this.#background.splice(0));
  }

  /** Time passes, and the alarm goes off whenever it is due. */
  async advance(ms: number): Promise<void> {
    const until = this.clock.now + ms;
    for (let at = this.storage.alarmAt; at !== null && at <= until; at = this.storage.alarmAt) {
      this.clock.now = Math.max(this.clock.now, at);
      this.storage.alarmAt = null;
      await this.engine.alarm();
    }
    this.clock.now = Math.max(this.clock.now, until);
  }

  /** Time passes and the platform has forgotten the alarm. */
  skip(ms: number): void {
    this.clock.now += ms;
    this.storage.alarmAt = null;
  }

  async request({ key = 'k-1', target_id, keys, ...overrides }: SendOptions = {}): Promise<SubmitRequest> {
    const { directory, body, operation } = sendContext(overrides);
    const given = operation === 'send' || operation === 'forward' ? body : (overrides.body ?? {});
    // Those of the body were asked about with the identity; those of a reply only the mailbox knows.
    const named = [...(given.to ?? []), ...(given.cc ?? []), ...(given.bcc ?? [])];
    const checked = named.map((entry) => (typeof entry === 'string' ? entry : entry.address).toLowerCase());
    const request = await this.requestFor({ ...directory, checked }, given, key, operation, target_id);
    return keys === undefined ? request : { ...request, keys };
  }

  async requestFor(
    directory: DirectoryFacts,
    body: SendBody,
    key: string,
    operation: SendOperation = 'send',
    targetId?: MessageId,
  ): Promise<SubmitRequest> {
    const { identity_id: identity } = this.owner;
    const about = targetId === undefined ? identity : `${identity}/${targetId}`;
    return {
      operation,
      target_id: targetId ?? null,
      key_hash: await sha256Hex(key),
      fingerprint: await sendFingerprint(operation, about, body as unknown as Json),
      body,
      directory,
      keys: { thread: THREAD_KEY, link: LINK_KEY },
      api_origin: API_ORIGIN,
      can_review_quarantine: false,
      last_sequence: this.lastSequence,
      request_id: 'req_01JD9Q3V7M8X2C4N6B5K1R0E9T',
    };
  }

  /** Submits as the HTTP layer does: when the mailbox names recipients, the directory is asked about them. */
  async submit(options: SendOptions = {}): Promise<Submitted> {
    const answer = await this.#asked(await this.request(options), (request) => this.engine.submit(request));
    await this.settle();
    return answer;
  }

  async dryRun(options: SendOptions = {}): Promise<Exclude<DryRunAnswer, DirectoryNeeded>> {
    return this.#asked(await this.request(options), (request) => this.engine.dryRun(request));
  }

  async #asked<T extends { ok: boolean }>(
    request: SubmitRequest,
    ask: (request: SubmitRequest) => Promise<T>,
  ): Promise<Exclude<T, DirectoryNeeded>> {
    const answer = await ask(request);
    if (!isDirectoryNeeded(answer)) return answer as Exclude<T, DirectoryNeeded>;
    const again = await ask({ ...request, directory: { ...request.directory, checked: answer.recipients } });
    if (isDirectoryNeeded(again)) throw new Error('asked twice');
    return again as Exclude<T, DirectoryNeeded>;
  }

  /** Submits a send that must be accepted, each with a key of its own unless one is given. */
  async send(options: SendOptions = {}): Promise<MessageResource> {
    const answer = await this.submit({ key: `key ${++this.#keys}`, ...options });
    if (!answer.ok) throw new Error(`refused: ${answer.code} ${JSON.stringify(answer.details)}`);
    return answer.message;
  }

  #keys = 0;

  message(id: MessageId): MessageResource {
    const found = this.engine.getMessage(id, { text: true, html: true }, true);
    if (found === undefined) throw new Error(`no message ${id}`);
    return found;
  }

  statuses(id: MessageId): Record<string, DeliveryStatus> {
    const deliveries = this.message(id).deliveries ?? [];
    return Object.fromEntries(deliveries.map(({ address, status }) => [address, status]));
  }

  /** Everything the outbox has ever held, in order. */
  get events(): EventEnvelope[] {
    return this.sql
      .all<{ payload_json: string }>('SELECT payload_json FROM outbox ORDER BY seq')
      .map(({ payload_json }) => JSON.parse(payload_json) as EventEnvelope);
  }

  get eventTypes(): EventType[] {
    return this.events.map(({ type }) => type);
  }

  eventData(type: EventType): Record<string, unknown>[] {
    return this.events.filter((event) => event.type === type).map(({ data }) => data);
  }

  meta(key: string): string | undefined {
    return this.sql.first<{ v: string }>('SELECT v FROM meta WHERE k = ?', key)?.v;
  }

  rows(table: string): number {
    return this.sql.first<{ n: number }>(`SELECT COUNT(*) AS n FROM ${table}`)?.n ?? 0;
  }

  /** What the quota holds and counts for this mailbox today. */
  get quotaBooks(): { held: number; holds: number; used: number; counted: number; tenant: number } {
    const { sql } = this.quotaStorage;
    const number = (query: string, ...bindings: string[]): number =>
      sql.first<{ n: number | null }>(query, ...bindings)?.n ?? 0;
    const counter = 'SELECT SUM(value) AS n FROM counters WHERE metric = ?';
    return {
      held: number("SELECT held AS n FROM allowances WHERE feature = 'sends'"),
      holds: number('SELECT COUNT(*) AS n FROM holds'),
      used: number("SELECT used AS n FROM allowances WHERE feature = 'sends'"),
      counted: number(counter, `sends:${this.owner.identity_id}`),
      tenant: number(counter, 'sends'),
    };
  }

  usage(metric: 'inbound' | 'outbound' | 'sends'): number {
    return this.quota.usageDays().find((row) => row.metric === metric)?.value ?? 0;
  }
}
