import type { Composer } from '@pmail/core/compose/types.ts';
import type { DeliveryEvent } from '@pmail/core/delivery/events.ts';
import { hmacSha256, toHex } from '@pmail/core/hash.ts';
import { createIdFactory, type IdentityId, type IdFactory, type MessageId, type TenantId } from '@pmail/core/ids.ts';
import type { PolicyPatch } from '@pmail/core/policy/document.ts';
import type { InboundJob, OutboundJob, WebhookJob } from '@pmail/core/queue/jobs.ts';
import type { Owner } from '@pmail/core/storage/keys.ts';
import { consumeEvent } from '@pmail/engine/consumers/event.ts';
import { consumeInbound } from '@pmail/engine/consumers/inbound.ts';
import { consumeLearnedId } from '@pmail/engine/consumers/learned-id.ts';
import { consumeSend } from '@pmail/engine/consumers/send.ts';
import { ACK, type MailboxRemote } from '@pmail/engine/consumers/world.ts';
import { scopeStatements } from '@pmail/engine/directory/facts.ts';
import { oldDays, writeUsageDays } from '@pmail/engine/directory/usage.ts';
import { takeForPoke } from '@pmail/engine/directory/work.ts';
import type { CancelAnswer } from '@pmail/engine/mailbox/cancel.ts';
import { MailboxEngine } from '@pmail/engine/mailbox/engine.ts';
import type { ResolveAnswer } from '@pmail/engine/mailbox/resolve.ts';
import { MAILBOX_MIGRATIONS } from '@pmail/engine/mailbox/schema.ts';
import type { SubmitAnswer, SubmitRequest } from '@pmail/engine/mailbox/submit-types.ts';
import type { ParsedMail } from '@pmail/engine/parsed-mail.ts';
import { QuotaEngine } from '@pmail/engine/quota/engine.ts';
import { QUOTA_MIGRATIONS } from '@pmail/engine/quota/schema.ts';
import { DEFAULT_WAITS, type Waits } from '@pmail/engine/settings.ts';
import { type Db, type Migration, migrate, type Sql, type Statement } from '@pmail/engine/sql.ts';
import { DatabasePool, type PooledDatabase } from '@pmail/testkit/database-pool.ts';
import { migrateDirectory, nodeSql } from '@pmail/testkit/node-sql.ts';
import { Host } from './host.ts';
import { consumerWorld, mailboxPorts, quotaWorld } from './ports.ts';
import { type Process, StorageFailed } from './process.ts';
import { ProviderDouble, type ProviderPlan } from './provider.ts';
import { SimQueue } from './queue.ts';
import { HASH_KEY } from './settings.ts';
import { Standing } from './standing.ts';
import { SimStore } from './store.ts';
import { Subscribers } from './subscribers.ts';
import { DIRECTORY_TRACE_SQL, giveTraceItsClock, giveTraceItsStore, QUOTA_TRACE_SQL, TRACE_SQL } from './trace.ts';
import type { Universe } from './universe.ts';
import { caseOfStorageFault } from './watch.ts';
import { Watcher } from './watcher.ts';
import { STRAIGHT, type Wiring } from './wiring.ts';

function objectPool(migrations: readonly Migration[], more: string): DatabasePool {
  return new DatabasePool((database) => {
    migrate(nodeSql(database), migrations);
    database.exec(more);
  });
}

const directoryPool = new DatabasePool((database) => {
  migrateDirectory(database);
  database.exec(DIRECTORY_TRACE_SQL);
});
const DAY_MS = 86_400_000;

/** By how many steps of their schema are missing: storage that older code has left behind. */
const mailboxPools = MAILBOX_MIGRATIONS.map((_, missing) =>
  objectPool(MAILBOX_MIGRATIONS.slice(0, MAILBOX_MIGRATIONS.length - missing), TRACE_SQL),
);
const quotaPools = QUOTA_MIGRATIONS.map((_, missing) =>
  objectPool(QUOTA_MIGRATIONS.slice(0, QUOTA_MIGRATIONS.length - missing), QUOTA_TRACE_SQL),
);

/** Older storage for some; the oldest there is where less is missing than there are steps. */
function poolOf(pools: readonly DatabasePool[], missing: number): DatabasePool {
  const pool = pools[Math.min(missing, pools.length - 1)];
  if (pool === undefined) throw new Error('a schema without a step');
  return pool;
}

function schemaOf(sql: Sql): number {
  return Number(sql.first<{ v: string }>("SELECT v FROM meta WHERE k = 'schema_version'")?.v ?? 0);
}

/** The read that tells who may send; a consumer also reads whom a report is about, and writes. */
const [WHO_SENDS] = scopeStatements('idn_0');
const asksWhoSends = ({ sql }: Statement): boolean => sql === WHO_SENDS?.sql;

export interface DeploymentOptions {
  composer: Composer;
  parse: (raw: Uint8Array) => Promise<ParsedMail>;
  plan: ProviderPlan;
  waits?: Partial<Waits> | undefined;
  wiring?: Partial<Wiring> | undefined;
  /** So many steps of their schema are missing in the storage of the objects when their first instances find it. */
  steps_missing?: number | undefined;
}

/** A mailbox as a consumer reaches it, and as a request or a person does. */
export interface Remote extends MailboxRemote {
  engine: <T>(run: (engine: MailboxEngine) => Promise<T> | T, label: string) => Promise<T>;
  submit: (request: SubmitRequest, label: string) => Promise<SubmitAnswer>;
  cancel: (id: MessageId) => Promise<CancelAnswer>;
  resolve: (id: MessageId, outcome: 'sent' | 'not_sent') => Promise<ResolveAnswer>;
}

/** The whole service over virtual time: directory, objects, queues, consumers, object store and a provider. */
export class Deployment {
  readonly universe: Universe;
  readonly options: DeploymentOptions;
  readonly wiring: Wiring;
  readonly #directory: PooledDatabase = directoryPool.take();
  /** The directory as a checker reads it, without faults and at once. */
  readonly directory: Sql = this.#directory.sql;
  readonly db: Db = this.#directory.db;
  readonly watcher: Watcher;
  readonly standing: Standing;
  readonly mailboxes = new Map<string, Host<MailboxEngine>>();
  readonly tenants: { tenant_id: TenantId; policy: PolicyPatch; granted: number | undefined }[] = [];
  readonly quotas = new Map<string, Host<QuotaEngine>>();
  readonly store: SimStore;
  readonly provider: ProviderDouble;
  readonly outbound: SimQueue<OutboundJob>;
  readonly inbound: SimQueue<InboundJob>;
  readonly delivery: SimQueue<DeliveryEvent>;
  readonly webhooks: SimQueue<WebhookJob>;
  readonly subscribers: Subscribers;
  readonly newId: IdFactory;
  readonly waits: Waits;
  readonly #stepsMissing: number;

  constructor(universe: Universe, options: DeploymentOptions) {
    this.universe = universe;
    this.options = options;
    this.wiring = { ...STRAIGHT, ...options.wiring };
    this.waits = { ...DEFAULT_WAITS, ...options.waits };
    this.#stepsMissing = options.steps_missing ?? 0;
    giveTraceItsClock(this.#directory.database, () => universe.now);
    this.watcher = new Watcher(universe, this.directory);
    this.standing = new Standing(universe, this.db);
    this.store = new SimStore(universe);
    this.newId = createIdFactory(universe.random);
    const threw = (who: string, error: unknown): void => this.watcher.threw(who, error);
    this.outbound = new SimQueue<OutboundJob>(universe, {
      name: 'pm-outbound',
      retriesMax: 100,
      threw,
      consume: (process, job) => this.#consumeOutbound(process, job),
      about: (job) => (job.kind === 'send' ? job.message_id : null),
    });
    this.inbound = new SimQueue<InboundJob>(universe, {
      name: 'pm-inbound',
      retriesMax: 10,
      threw,
      consume: (process, job) => consumeInbound(consumerWorld(this, process, null), job),
    });
    this.delivery = new SimQueue<DeliveryEvent>(universe, {
      name: 'pm-delivery-events',
      retriesMax: 20,
      threw,
      consume: (process, event) => consumeEvent(consumerWorld(this, process, null), event),
    });
    this.subscribers = new Subscribers(this);
    this.webhooks = new SimQueue<WebhookJob>(universe, {
      name: 'pm-webhooks',
      retriesMax: 13,
      threw,
      consume: async (process, job) => {
        await this.subscribers.consume(process, job);
        return ACK;
      },
    });
    this.provider = new ProviderDouble(universe, options.plan, (event) => this.delivery.put(event));
  }

  /**
   * The directory as a process reaches it.
   *
   * @param looks whether its reads there are about who sends; those of a transport are about where mail goes
   */
  dbFor(process: Process, looks = true): Db {
    return {
      batch: (statements) =>
        this.universe.call(process, 'db', `directory for ${process.name}`, () => {
          if (looks && statements.some(asksWhoSends)) process.readAt = this.universe.scheduler.now;
          return this.db.batch(statements);
        }),
    };
  }

  addTenant(id: TenantId, policy: PolicyPatch, granted: number | undefined): void {
    this.tenants.push({ tenant_id: id, policy, granted });
    const host = new Host(
      this.universe,
      `quota ${id.slice(-4)}`,
      poolOf(quotaPools, this.#stepsMissing).take(),
      (process, sql, alarm) => new QuotaEngine(this.wiring.quota(quotaWorld(this, process, sql, alarm))),
    );
    this.quotas.set(id, host);
    host
      .invoke((engine) => {
        engine.init(id);
        if (granted !== undefined) engine.setBilling('metered', { sends: granted });
      })
      .catch((error: unknown) => this.universe.log(`quota not made: ${String(error)}`));
  }

  addIdentity(owner: Owner): void {
    const storage = poolOf(mailboxPools, this.#stepsMissing).take();
    giveTraceItsClock(storage.database, () => this.universe.now);
    giveTraceItsStore(storage.database, (key) => this.store.hashOf(key));
    const host = new Host(
      this.universe,
      `mailbox ${owner.identity_id.slice(-4)}`,
      storage,
      (process, sql, alarm) => new MailboxEngine(this.wiring.mailbox(mailboxPorts(this, owner, process, sql, alarm))),
    );
    this.mailboxes.set(owner.identity_id, host);
    if (this.#stepsMissing > 0) {
      this.#madeBefore(owner, host);
      return;
    }
    host
      .invoke((engine) => engine.init(owner))
      .catch((error: unknown) => this.universe.log(`mailbox not made: ${String(error)}`));
  }

  /** As older code has made it: the first instance of today comes with the first call, in the middle of the faults. */
  #madeBefore(owner: Owner, host: Host<MailboxEngine>): void {
    const { sql } = host;
    const rows = {
      ...owner,
      created_at: String(this.universe.now),
      'alarm:maintenance': String(this.universe.now + DAY_MS),
    };
    for (const [k, v] of Object.entries(rows)) sql.run('INSERT INTO meta (k, v) VALUES (?, ?)', k, v);
    this.isOlder(host);
  }

  /** The storage of an object is as older code has left it: that is met when it was brought up to date and served a call. */
  isOlder(host: Host<MailboxEngine> | Host<QuotaEngine>): void {
    const before = schemaOf(host.sql);
    host.whenServed(() => {
      if (schemaOf(host.sql) > before) this.universe.meet('P3');
    });
  }

  mailbox(identity: string): Host<MailboxEngine> {
    const host = this.mailboxes.get(identity);
    if (host === undefined) throw new Error(`no mailbox ${identity}`);
    return host;
  }

  quota(tenant: string): Host<QuotaEngine> {
    const host = this.quotas.get(tenant);
    if (host === undefined) throw new Error(`no quota ${tenant}`);
    return host;
  }

  /** A mailbox as somebody else reaches it. */
  remote(process: Process, identity: IdentityId): Remote {
    const { universe, watcher } = this;
    const host = this.mailbox(identity);
    const engine: Remote['engine'] = (run, label) =>
      universe.call(process, 'call', label, async () => {
        try {
          return await host.invoke(run);
        } catch (error) {
          if (error instanceof StorageFailed) universe.meet(caseOfStorageFault(label));
          throw error;
        }
      });
    return {
      engine,
      submit: (request, label) =>
        engine(async (e) => watcher.submit(identity, request, await e.submit(request)), label),
      cancel: (id) => engine(async (e) => watcher.cancel(id, await e.cancel(id)), `cancel ${id}`),
      resolve: (id, outcome) =>
        engine(async (e) => {
          watcher.says(id, outcome);
          return watcher.resolve(id, outcome, await e.resolve(id, outcome));
        }, `resolve ${id} ${outcome}`),
      beginTransport: (request) =>
        engine((e) => watcher.begin(identity, request, e.beginTransport(request)), `begin ${request.message_id}`),
      recordOutcome: (request) =>
        engine((e) => {
          watcher.outcome(request);
          return e.recordOutcome(request);
        }, `outcome ${request.result.kind} ${request.message_id}`),
      recordSuppressed: (request) => engine((e) => e.recordSuppressed(request), `round ${request.message_id}`),
      learnMessageId: (copy) => engine((e) => e.learnMessageId(copy), `learn ${copy.message_id}`),
      stopSend: (id, reason) =>
        engine(async (e) => watcher.stop(reason, await e.stopSend(id, reason)), `stop ${id} ${reason}`),
      applyEvent: (event) =>
        engine(async (e) => {
          const since = universe.now;
          watcher.brought.set(event.event_id, event);
          return watcher.event(identity, host.sql, event, since, await e.applyEvent(event));
        }, `event ${event.kind} ${event.recipient}`),
      learnId: (learned) => engine((e) => e.learnId(learned), `learn ${learned.provider_message_id}`),
      ingest: (request) => engine(async (e) => watcher.ingest(await e.ingest(request)), `ingest ${request.message_id}`),
      emitEvent: (type, data, known) => engine((e) => e.emitEvent(type, data, known), `emit ${type}`),
    };
  }

  async #consumeOutbound(process: Process, job: OutboundJob): ReturnType<typeof consumeSend> {
    if (job.kind === 'transport_event') return consumeEvent(consumerWorld(this, process, null), job.event);
    if (job.kind === 'learned_id') return consumeLearnedId(consumerWorld(this, process, null), job.learned);
    // What was read for an earlier message of its batch says nothing about this one.
    process.readAt = null;
    const done = this.watcher.consumes(job.message_id);
    process.onDeath(done);
    try {
      return await consumeSend(consumerWorld(this, process, job), job);
    } finally {
      if (process.alive) done();
    }
  }

  async hashAddress(address: string): Promise<string> {
    const hash = toHex(await this.hmac(address));
    this.watcher.hashes.set(address, hash);
    return hash;
  }

  hmac(text: string): Promise<Uint8Array> {
    return hmacSha256(HASH_KEY, text);
  }

  /** The minute's cron: pokes mailboxes that have work, should the platform have lost their alarms, and sweeps webhooks. */
  async cron(process: Process): Promise<void> {
    const db = this.dbFor(process);
    const { now } = this.universe;
    for (const identity of await takeForPoke(db, now - 5 * 60_000, now, 200)) {
      await this.remote(process, identity).engine((engine) => engine.poke(), 'poke');
    }
    await this.subscribers.sweep(process);
  }

  /** The roll-up of usage, every quarter of an hour, which also enters each quota. */
  async rollUp(process: Process): Promise<void> {
    const db = this.dbFor(process);
    for (const [id, host] of this.quotas) {
      const days = await this.universe.call(process, 'call', 'usage', () =>
        host.invoke((engine) => engine.usageDays()),
      );
      await writeUsageDays(db, id as TenantId, days);
      const old = oldDays(days, this.universe.now);
      if (old.length === 0) continue;
      await this.universe.call(process, 'call', 'usage written', () =>
        host.invoke((engine) => engine.usageWritten(old)),
      );
    }
  }

  /** Power goes: every process dies, and what queues hold in memory is gone. */
  powerLoss(forgetQueues: boolean): void {
    this.universe.log('POWER LOSS');
    for (const host of [...this.mailboxes.values(), ...this.quotas.values()]) host.kill();
    for (const { running } of [this.outbound, this.inbound, this.delivery, this.webhooks, this.subscribers]) {
      for (const process of [...running]) process.kill();
    }
    if (!forgetQueues) return;
    this.outbound.forget();
    this.inbound.forget();
    this.webhooks.forget();
  }

  /** Gives its databases back; nothing of it may be looked at any more. */
  close(): void {
    directoryPool.giveBack(this.#directory);
    for (const { storage } of this.mailboxes.values()) poolOf(mailboxPools, this.#stepsMissing).giveBack(storage);
    for (const { storage } of this.quotas.values()) poolOf(quotaPools, this.#stepsMissing).giveBack(storage);
  }
}
