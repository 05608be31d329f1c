import type { DatabaseSync } from 'node:sqlite';
import type { Composer } from '@pmail/core/compose/types.ts';
import type { DeliveryEvent } from '@pmail/core/delivery/events.ts';
import { hmacSha256, toHex, utf8 } from '@pmail/core/hash.ts';
import { createIdFactory, type IdentityId, type IdFactory, type TenantId } from '@pmail/core/ids.ts';
import type { PolicyPatch } from '@pmail/core/policy/document.ts';
import type { InboundJob, OutboundJob } from '@pmail/core/queue/jobs.ts';
import type { Owner } from '@pmail/core/storage/keys.ts';
import type { ThreadKey } from '@pmail/core/threading/token.ts';
import { consumeEvent } from '@pmail/engine/consumers/event.ts';
import { consumeInbound, type InboundWorld } from '@pmail/engine/consumers/inbound.ts';
import { consumeLearnedId } from '@pmail/engine/consumers/learned-id.ts';
import { consumeSend } from '@pmail/engine/consumers/send.ts';
import type { MailboxRemote } from '@pmail/engine/consumers/world.ts';
import { indexEvents, lastSequence } from '@pmail/engine/directory/events.ts';
import type { Deployment as DeploymentFacts } from '@pmail/engine/directory/facts.ts';
import { type Route, routeRecipient } from '@pmail/engine/directory/routing.ts';
import { takeForPoke, workRegistry } from '@pmail/engine/directory/work.ts';
import { MailboxEngine } from '@pmail/engine/mailbox/engine.ts';
import type { ParsedMail } from '@pmail/engine/parsed-mail.ts';
import type { BlobStore } from '@pmail/engine/ports.ts';
import { QuotaEngine } from '@pmail/engine/quota/engine.ts';
import { DEFAULT_WAITS, type Waits } from '@pmail/engine/settings.ts';
import type { Db } from '@pmail/engine/sql.ts';
import { memoryDirectory, nodeDb } from '@pmail/testkit/node-sql.ts';
import { loopbackTransport, simulatorTransport } from '@pmail/transports/simulator/transport.ts';
import { Host } from './host.ts';
import type { Process } from './process.ts';
import { ProviderDouble, type ProviderPlan } from './provider.ts';
import { SimQueue } from './queue.ts';
import type { Universe } from './universe.ts';

const HASH_KEY = utf8('0123456789abcdef0123456789abcdef');
/** Signs the thread tokens of the whole deployment. */
export const THREAD_KEY: ThreadKey = { kid: '0', secret: utf8('fedcba9876543210fedcba9876543210') };
const FACTS: DeploymentFacts = { default_policy: {}, ses_configured: true, smtp_enabled: true };

export interface DeploymentOptions {
  composer: Composer;
  parse: (raw: Uint8Array) => Promise<ParsedMail>;
  plan: ProviderPlan;
}

interface StoredBlob {
  bytes: Uint8Array;
  metadata: Record<string, string>;
}

/** The whole service over virtual time: directory, objects, queues, consumers, object store and a provider. */
export class Deployment {
  readonly universe: Universe;
  readonly directory: DatabaseSync = memoryDirectory();
  /** The directory as a checker reads it, without faults. */
  readonly db: Db = nodeDb(this.directory);
  readonly mailboxes = new Map<string, Host<MailboxEngine>>();
  readonly tenants: { tenant_id: TenantId; policy: PolicyPatch; granted: number | undefined }[] = [];
  readonly quotas = new Map<string, Host<QuotaEngine>>();
  readonly blobs = new Map<string, StoredBlob>();
  readonly provider: ProviderDouble;
  readonly outbound: SimQueue<OutboundJob>;
  readonly inbound: SimQueue<InboundJob>;
  readonly delivery: SimQueue<DeliveryEvent>;
  readonly newId: IdFactory;
  readonly waits: Waits = DEFAULT_WAITS;
  readonly #composer: Composer;
  readonly #parse: DeploymentOptions['parse'];

  constructor(universe: Universe, options: DeploymentOptions) {
    this.universe = universe;
    this.#composer = options.composer;
    this.#parse = options.parse;
    this.newId = createIdFactory(universe.random);
    this.outbound = new SimQueue(universe, 'pm-outbound', 100, (process, job) => this.#consumeOutbound(process, job));
    this.inbound = new SimQueue(universe, 'pm-inbound', 10, (process, job) =>
      consumeInbound(this.#consumerWorld(process, null), job),
    );
    this.delivery = new SimQueue(universe, 'pm-delivery-events', 20, (process, event) =>
      consumeEvent(this.#consumerWorld(process, null), event),
    );
    this.provider = new ProviderDouble(universe, options.plan, (event) => this.delivery.put(event));
  }

  dbFor(process: Process): Db {
    return {
      batch: (statements) => this.universe.call(process, 'db', 'directory', () => this.db.batch(statements)),
    };
  }

  #blobsFor(process: Process): BlobStore {
    const { universe, blobs } = this;
    const call = <T>(label: string, effect: () => T): Promise<T> => universe.call(process, 'store', label, effect);
    return {
      put: (key, bytes, metadata) =>
        call(`put ${key}`, () => {
          blobs.set(key, { bytes: Uint8Array.from(bytes), metadata });
        }),
      get: (key) =>
        call(`get ${key}`, () => {
          const found = blobs.get(key);
          if (found === undefined) return null;
          if (key.includes('/out/') && universe.chance('store_corrupt')) {
            universe.log(`corrupt read: ${key}`);
            return universe.random() < 0.5 ? null : Uint8Array.from([...found.bytes, 0x21]);
          }
          return Uint8Array.from(found.bytes);
        }),
      delete: (keys) =>
        call('delete', () => {
          for (const key of keys) blobs.delete(key);
        }),
      list: (prefix, startAfter, limit) =>
        call('list', () => {
          const keys = [...blobs.keys()].filter((key) => key.startsWith(prefix) && key > startAfter).sort();
          return { keys: keys.slice(0, limit), more: keys.length > limit };
        }),
      inspect: (prefix, startAfter, limit) =>
        call('inspect', () => {
          const found = [...blobs].filter(([key]) => key.startsWith(prefix) && key > startAfter);
          found.sort(([a], [b]) => (a < b ? -1 : 1));
          const objects = found
            .slice(0, limit)
            .map(([key, { bytes, metadata }]) => ({ key, bytes: bytes.length, metadata }));
          return { objects, more: found.length > limit };
        }),
    };
  }

  addTenant(id: TenantId, policy: PolicyPatch, granted: number | undefined): void {
    const { universe } = this;
    this.tenants.push({ tenant_id: id, policy, granted });
    const host = new Host<QuotaEngine>(universe, `quota ${id.slice(-4)}`, (process, sql, alarm) => {
      return new QuotaEngine({
        sql,
        now: () => universe.now,
        alarm,
        mark: (name) => universe.mark(process, name),
        waits: this.waits,
        log: (_level, event) => universe.log(`  [quota] ${event}`),
        sendState: (identity, ref) =>
          universe.call(process, 'call', 'sendState', () =>
            this.#mailboxHost(identity).invoke((engine) => engine.sendState(ref as never)),
          ),
      });
    });
    this.quotas.set(id, host);
    host
      .invoke((engine) => {
        engine.init(id);
        if (granted !== undefined) engine.setBilling('metered', { sends: granted });
      })
      .catch(() => undefined);
  }

  addIdentity(owner: Owner): void {
    const { universe } = this;
    const host = new Host<MailboxEngine>(universe, `mailbox ${owner.identity_id.slice(-4)}`, (process, sql, alarm) => {
      const db = this.dbFor(process);
      return new MailboxEngine({
        sql,
        now: () => universe.now,
        random: universe.random,
        newId: this.newId,
        alarm,
        mark: (name) => universe.mark(process, name),
        waits: this.waits,
        log: (_level, event) => universe.log(`  [mailbox] ${event}`),
        blobs: this.#blobsFor(process),
        outbound: this.outbound.producer(process),
        inbound: this.inbound.producer(process),
        quota: {
          reserve: (request) =>
            universe.call(process, 'call', 'reserve', () =>
              this.#quotaHost(owner.tenant_id).invoke((e) => e.reserve(request)),
            ),
          apply: (task) =>
            universe.call(process, 'call', `quota ${task.op}`, () =>
              this.#quotaHost(owner.tenant_id).invoke((e) => e.apply(task)),
            ),
        },
        events: {
          dispatch: async (events) => (await indexEvents(db, events, universe.now)).taken,
          lastSequence: (identity) => lastSequence(db, identity),
        },
        registry: workRegistry(db),
        composer: this.#composer,
        parse: this.#parse,
        sleep: (ms) => universe.sleep(process, ms),
        background: (name, work) => {
          work.catch((error: unknown) =>
            universe.log(`  background ${name}: ${error instanceof Error ? error.name : '?'}`),
          );
        },
      });
    });
    this.mailboxes.set(owner.identity_id, host);
    host.invoke((engine) => engine.init(owner)).catch(() => undefined);
  }

  #mailboxHost(identity: string): Host<MailboxEngine> {
    const host = this.mailboxes.get(identity);
    if (host === undefined) throw new Error(`no mailbox ${identity}`);
    return host;
  }

  #quotaHost(tenant: string): Host<QuotaEngine> {
    const host = this.quotas.get(tenant);
    if (host === undefined) throw new Error(`no quota ${tenant}`);
    return host;
  }

  /** A mailbox as somebody else reaches it. */
  remote(
    process: Process,
    identity: IdentityId,
  ): MailboxRemote & { engine: <T>(run: (e: MailboxEngine) => Promise<T> | T, label: string) => Promise<T> } {
    const host = this.#mailboxHost(identity);
    const engine = <T>(run: (e: MailboxEngine) => Promise<T> | T, label: string): Promise<T> =>
      this.universe.call(process, 'call', label, () => host.invoke(run));
    return {
      engine,
      beginTransport: (request) => engine((e) => e.beginTransport(request), `begin ${request.message_id}`),
      recordOutcome: (request) =>
        engine((e) => e.recordOutcome(request), `outcome ${request.result.kind} ${request.message_id}`),
      stopSend: (id, reason) => engine((e) => e.stopSend(id, reason), `stop ${id}`),
      applyEvent: (event) => engine((e) => e.applyEvent(event), `event ${event.kind} ${event.recipient}`),
      learnId: (learned) => engine((e) => e.learnId(learned), `learn ${learned.provider_message_id}`),
      ingest: (request) => engine((e) => e.ingest(request), `ingest ${request.message_id}`),
      emitEvent: (type, data, known) => engine((e) => e.emitEvent(type, data, known), `emit ${type}`),
    };
  }

  #consumerWorld(process: Process, owner: Owner | null): InboundWorld {
    const { universe } = this;
    const db = this.dbFor(process);
    const blobs = this.#blobsFor(process);
    const inbound = this.inbound.producer(process);
    const world: InboundWorld = {
      db,
      deployment: FACTS,
      now: () => universe.now,
      newId: this.newId,
      newToken: () => `token-${universe.random().toString(36).slice(2)}-${process.name}`,
      mark: (name) => universe.mark(process, name),
      log: (_level, event) => universe.log(`  [consumer] ${event}`),
      count: (counter) => universe.log(`  count ${counter}`),
      mailbox: (route: Route) => this.remote(process, route.identity_id),
      quota: (_id, tenant) => ({
        recordOutcome: (request) =>
          universe.call(process, 'call', 'abuse outcome', () =>
            this.#quotaHost(tenant).invoke((e) => e.recordOutcome(request)),
          ),
      }),
      blobs,
      outbound: this.outbound.producer(process),
      transports: {},
      hashAddress: async (address) => toHex(await hmacSha256(HASH_KEY, address)),
      hmac: (text) => hmacSha256(HASH_KEY, text),
      parse: this.#parse,
      threadKeys: () => Promise.resolve([THREAD_KEY]),
    };
    if (owner !== null) {
      const ports = {
        now: world.now,
        newId: this.newId,
        route: (address: string) => routeRecipient(db, address),
        put: blobs.put.bind(blobs),
        send: (job: InboundJob) => inbound.send(job),
        ownerOf: () => owner,
      };
      world.transports = {
        simulator: simulatorTransport(ports),
        loopback: loopbackTransport(ports),
        cloudflare: this.provider.transport(process, 'cloudflare'),
        ses: this.provider.transport(process, 'ses'),
        smtp: this.provider.transport(process, 'smtp'),
      };
    }
    return world;
  }

  #consumeOutbound(process: Process, job: OutboundJob): ReturnType<typeof consumeSend> {
    if (job.kind === 'transport_event') return consumeEvent(this.#consumerWorld(process, null), job.event);
    if (job.kind === 'learned_id') return consumeLearnedId(this.#consumerWorld(process, null), job.learned);
    return consumeSend(this.#consumerWorld(process, job), job);
  }

  facts(): DeploymentFacts {
    return FACTS;
  }

  hashAddress(address: string): Promise<string> {
    return hmacSha256(HASH_KEY, address).then(toHex);
  }

  /** The minute's cron: pokes mailboxes that have work, should the platform have lost their alarms. */
  async cron(process: Process): Promise<void> {
    const db = this.dbFor(process);
    const now = this.universe.now;
    for (const identity of await takeForPoke(db, now - 5 * 60_000, now, 200)) {
      await this.remote(process, identity).engine((engine) => engine.poke(), 'poke');
    }
  }

  /** The roll-up of usage, every quarter of an hour, which also enters each quota. */
  async rollUp(process: Process): Promise<void> {
    for (const host of this.quotas.values()) {
      await this.universe.call(process, 'call', 'usage', () => host.invoke((engine) => engine.usageDays()));
    }
  }

  /** Power goes: every process dies, and what queues hold in memory is gone. */
  powerLoss(forgetQueues: boolean): void {
    this.universe.log('POWER LOSS');
    for (const host of [...this.mailboxes.values(), ...this.quotas.values()]) host.kill();
    for (const queue of [this.outbound, this.inbound, this.delivery]) {
      for (const process of [...queue.running]) process.kill();
      if (forgetQueues && queue !== (this.delivery as unknown)) queue.forget();
    }
    this.universe.scheduler.after(3_000, () => {
      this.outbound.resume();
      this.inbound.resume();
    });
  }
}
