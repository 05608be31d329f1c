// The doubles run in Node, which the engine itself must not know.
// oxlint-disable-next-line typescript/triple-slash-reference
/// <reference types="node" />
import { hmacSha256, toHex, utf8 } from '@pmail/core/hash.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import type { SendBody } from '@pmail/core/message/request.ts';
import type { MessageResource } from '@pmail/core/message/resource.ts';
import type { SendJob } from '@pmail/core/queue/jobs.ts';
import type { ThreadKey } from '@pmail/core/threading/token.ts';
import type {
  MailTransport,
  OutgoingMessage,
  Provider,
  ProviderSuppression,
  TransportResult,
} from '@pmail/core/transport/types.ts';
import { Knob } from '@pmail/testkit/doubles.ts';
import { auditEntry, directory, identityRow, newIdentity, tenantRow } from '../directory/directory.fixture.ts';
import { type Deployment, factsStatements, parseFacts } from '../directory/facts.ts';
import { type IdentityRow, insertIdentity } from '../directory/identities.ts';
import { insertTenant, type TenantRow } from '../directory/tenants.ts';
import { Crash, JO, MailboxRig, THREAD_KEY } from '../mailbox/mailbox.fixture.ts';
import { accepted } from '../mailbox/transport.fixture.ts';
import type { MarkName } from '../marks.ts';
import { type Db, queryAll, statement } from '../sql.ts';
import { consumeSend } from './send.ts';
import type { ConsumerWorld, Disposition, MailboxRemote, MailContent } from './world.ts';

/** The directory, one mailbox and its consumers: every call over the wire has a knob. */

const HASH_KEY = utf8('0123456789abcdef0123456789abcdef');
const FACTS: Deployment = { default_policy: {}, ses_configured: true, smtp_enabled: true };

/** A transport that answers what it is told, acceptance when it is told nothing. */
export class TransportDouble implements MailTransport {
  readonly provider: Provider;
  readonly calls: { message: OutgoingMessage; deadline_ms: number }[] = [];
  readonly answers: (TransportResult | Error)[] = [];
  /** What it says of the recipients of a call that it has refused because of some of them. */
  suppressions: ProviderSuppression[] | Error = [];
  readonly #ids: () => number;

  constructor(provider: Provider, ids: () => number) {
    this.provider = provider;
    this.#ids = ids;
  }

  async send(message: OutgoingMessage, deadlineMs: number): Promise<TransportResult> {
    this.calls.push({ message, deadline_ms: deadlineMs });
    const answer = this.answers.shift() ?? accepted({ provider_message_id: `${this.provider} ${this.#ids()}` });
    if (answer instanceof Error) throw answer;
    return answer;
  }

  async findSuppressed(): Promise<ProviderSuppression[]> {
    if (this.suppressions instanceof Error) throw this.suppressions;
    return this.suppressions;
  }
}

/** A composed message of the rig read apart: everything after its header is its text. */
async function readContent(mime: Uint8Array): Promise<MailContent> {
  const raw = new TextDecoder().decode(mime);
  return { text: raw.slice(raw.indexOf('\n\n') + 2), html: null, headers: [], attachments: [] };
}

export interface ServiceOptions {
  tenant?: Partial<TenantRow>;
  identity?: Partial<IdentityRow>;
}

export class Service {
  readonly db: Db;
  readonly tenant: TenantRow;
  readonly identity: IdentityRow;
  readonly address: string;
  readonly rig: MailboxRig;
  readonly begins = new Knob();
  readonly records = new Knob();
  readonly rounds = new Knob();
  readonly learns = new Knob();
  messageIds: ConsumerWorld['message_ids'] = { strategy: 'none', domain: null };
  threadKey: ThreadKey | null = THREAD_KEY;
  readonly stops = new Knob();
  readonly applies = new Knob();
  readonly emits = new Knob();
  readonly abuse = new Knob();
  readonly queries = new Knob();
  readonly counts: string[] = [];
  readonly checks: { domain: string; issue: string }[] = [];
  readonly checking = new Knob();
  readonly transports: Record<Provider, TransportDouble>;
  #crash: { mark: MarkName; nth: number } | null = null;
  #tokens = 0;
  #keys = 0;

  private constructor(db: Db, tenant: TenantRow, identity: IdentityRow, address: string) {
    this.db = db;
    this.tenant = tenant;
    this.identity = identity;
    this.address = address;
    this.rig = new MailboxRig({ tenant_id: tenant.id, identity_id: identity.id });
    let ids = 0;
    const double = (provider: Provider): TransportDouble => new TransportDouble(provider, () => ++ids);
    this.transports = {
      cloudflare: double('cloudflare'),
      ses: double('ses'),
      smtp: double('smtp'),
      simulator: double('simulator'),
      loopback: double('loopback'),
    };
  }

  static async create(options: ServiceOptions = {}): Promise<Service> {
    const db = await directory();
    const owner = { owner_name: 'Kim', owner_email: 'kim@example.org' };
    const tenant = tenantRow('acme', { ...owner, ...options.tenant });
    await insertTenant(db, tenant, auditEntry('tenant.create', tenant.id));
    const identity = identityRow(tenant.id, 'desk', { ...owner, ...options.identity });
    const address = 'desk.acme@agents.example';
    await insertIdentity(db, newIdentity(identity, address));
    return new Service(db, tenant, identity, address);
  }

  get now(): number {
    return this.rig.clock.now;
  }

  /** World of one consumer run. */
  world(): ConsumerWorld {
    const { rig } = this;
    const remote: MailboxRemote = {
      beginTransport: (request) => this.begins.run(() => rig.engine.beginTransport(request)),
      recordOutcome: (request) => this.records.run(() => rig.engine.recordOutcome(request)),
      recordSuppressed: (request) => this.rounds.run(() => rig.engine.recordSuppressed(request)),
      learnMessageId: (copy) => this.learns.run(() => rig.engine.learnMessageId(copy)),
      stopSend: (id, reason) => this.stops.run(() => rig.engine.stopSend(id, reason)),
      applyEvent: (event) => this.applies.run(() => rig.engine.applyEvent(event)),
      learnId: (learned) => this.applies.run(() => rig.engine.learnId(learned)),
      ingest: (request) => rig.engine.ingest(request),
      emitEvent: (type, data, known) => this.emits.run(() => rig.engine.emitEvent(type, data, known)),
    };
    return {
      db: { batch: (statements) => this.queries.run(() => this.db.batch(statements)) },
      deployment: FACTS,
      now: () => rig.clock.now,
      newId: rig.newId,
      newToken: () => `token ${++this.#tokens}`,
      mark: (name) => this.#mark(name),
      log: (_level, event) => rig.logged.push(event),
      count: (counter) => this.counts.push(counter),
      mailbox: ({ identity_id }) => {
        if (identity_id !== this.identity.id) throw new Error(`no mailbox of ${identity_id}`);
        return remote;
      },
      quota: () => ({ recordOutcome: (request) => this.abuse.run(() => rig.quota.recordOutcome(request)) }),
      blobs: rig.blobs,
      outbound: rig.outbound,
      transports: { ...this.transports },
      requestDomainCheck: (domain, issue) =>
        this.checking.run(() => {
          this.checks.push({ domain, issue });
        }),
      content: readContent,
      message_ids: this.messageIds,
      threadKey: async () => this.threadKey,
      hashAddress: async (address) => toHex(await hmacSha256(HASH_KEY, address)),
      hmac: (text) => hmacSha256(HASH_KEY, text),
    };
  }

  /** The consumer run dies at a mark, on its n-th visit. */
  dieAt(mark: MarkName, nth = 1): void {
    this.#crash = { mark, nth };
  }

  #mark(name: MarkName): void {
    if (this.#crash?.mark !== name || --this.#crash.nth > 0) return;
    this.#crash = null;
    throw new Crash(name);
  }

  /** Submits as the HTTP layer would, with the directory's facts. */
  async send(body: SendBody = {}, key = `key ${++this.#keys}`): Promise<MessageResource> {
    const full: SendBody = { to: [JO], subject: 'Your booking', text: 'Hello', ...body };
    const to = [...(full.to ?? []), ...(full.cc ?? []), ...(full.bcc ?? [])].map(String);
    const { hashAddress } = this.world();
    const normal = to.map((address) => address.toLowerCase());
    const hashed = async (address: string) => ({ address, hash: await hashAddress(address) });
    const recipients = await Promise.all(normal.map(hashed));
    const query = { identity_id: this.identity.id, recipients, now: this.now };
    const facts = parseFacts(query, await this.db.batch(factsStatements(query)), FACTS);
    if (facts === undefined) throw new Error('no identity');
    const answer = await this.rig.engine.submit(await this.rig.requestFor(facts, full, key));
    await this.rig.settle();
    if (!answer.ok) throw new Error(`refused: ${JSON.stringify(answer)}`);
    return answer.message;
  }

  job(id: MessageId): SendJob {
    return { v: 1, kind: 'send', ...this.rig.owner, message_id: id, request_id: 'req_01JD9Q3V7M8X2C4N6B5K1R0E9T' };
  }

  consume(id: MessageId): Promise<Disposition> {
    return consumeSend(this.world(), this.job(id));
  }

  /** Pointers that were sent and not taken yet. */
  takeSends(): { id: MessageId; delay_ms: number }[] {
    return this.rig.outbound.sent
      .splice(0)
      .flatMap(({ job, delay_ms }) => (job.kind === 'send' ? [{ id: job.message_id, delay_ms }] : []));
  }

  get calls(): Record<string, number> {
    return Object.fromEntries(
      Object.entries(this.transports)
        .map(([provider, { calls }]) => [provider, calls.length] as const)
        .filter(([, n]) => n > 0),
    );
  }

  /** Gives the identity a domain of its own, from which it sends from now on; its first address becomes an alias. */
  async addOwnDomain(transport: string): Promise<string> {
    const address = 'desk@acme.example.com';
    const id = 'dom_01JD9Q3V7M8X2C4N6B5K1R0E9T';
    await this.db.batch([
      statement(
        `INSERT INTO domains (id, tenant_id, name, kind, method, is_apex, routing_mode, inbound, transport, reply_token,
           receiving, sending, state, state_changed_at, created_at, updated_at)
         VALUES (?, ?, 'acme.example.com', 'external', 'dns_records', 1, 'catch_all', 'ses', ?, 'subaddress', 1, 1,
           'healthy', 0, 0, 0)`,
        id,
        this.tenant.id,
        transport,
      ),
      statement("UPDATE addresses SET role = 'alias'"),
      statement(
        `INSERT INTO addresses (id, address, local_part, domain_id, tenant_id, identity_id, role, status, created_at, updated_at)
         VALUES ('adr_01JD9Q3V7M8X2C4N6B5K1R0E9T', ?, 'desk', ?, ?, ?, 'primary', 'active', 0, 0)`,
        address,
        id,
        this.tenant.id,
        this.identity.id,
      ),
    ]);
    return address;
  }

  async set(table: 'tenants' | 'identities' | 'domains' | 'addresses', column: string, value: string): Promise<void> {
    await this.db.batch([statement(`UPDATE ${table} SET ${column} = ?`, value)]);
  }

  rows<T extends object>(query: string): Promise<T[]> {
    return queryAll<T>(this.db, query);
  }

  audit(action: string): Promise<Record<string, unknown>[]> {
    return queryAll(this.db, 'SELECT * FROM audit_log WHERE action = ? ORDER BY id', action);
  }
}
