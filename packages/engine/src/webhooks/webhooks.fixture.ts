// The in-memory directory runs in Node, which the engine itself must not know.
// oxlint-disable-next-line typescript/triple-slash-reference
/// <reference types="node" />
import { EVENT_API_VERSION, type EventEnvelope, type EventType } from '@pmail/core/events/types.ts';
import type { EventId, IdentityId, TenantId } from '@pmail/core/ids.ts';
import type { WebhookJob } from '@pmail/core/queue/jobs.ts';
import { rfc3339 } from '@pmail/core/time.ts';
import type { WebhookError } from '@pmail/core/webhooks/outcome.ts';
import {
  auditEntry,
  directory,
  identityRow,
  NOW,
  newId,
  newIdentity,
  rows,
  tenantRow,
} from '../directory/directory.fixture.ts';
import { type IdentityRow, insertIdentity } from '../directory/identities.ts';
import { platformEventStatement } from '../directory/policy.ts';
import { insertTenant, type TenantRow } from '../directory/tenants.ts';
import { noMark } from '../marks.ts';
import { DEFAULT_WAITS } from '../settings.ts';
import { type Db, queryAll, statement } from '../sql.ts';
import { deliver } from './deliver.ts';
import { addEndpoint, type EndpointId, type EndpointRow, findEndpoint, newEndpoint } from './endpoints.ts';
import { fanOut } from './fan-out.ts';
import { type DeliveryAttempt, recordAttempt } from './record.ts';
import { takeUp, type Work } from './work.ts';
import type { PostAnswer, WebhookWorld } from './world.ts';

/** A directory with subscribers, a queue that a test runs by hand, and a network that answers as it is told. */

export interface Post {
  url: string;
  headers: Record<string, string>;
  body: string;
  at: number;
}

export const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

export class Hooks {
  now = NOW;
  readonly db: Db;
  readonly tenant: TenantRow;
  readonly world: WebhookWorld;
  readonly jobs: { job: WebhookJob; at: number }[] = [];
  readonly posts: Post[] = [];
  /** What the network answers next, a status or an error; 200 when nothing is said. */
  readonly answers: (number | Extract<PostAnswer, { ok: false }>['error'])[] = [];
  /** What resolvers say of a host; a public address when nothing is said. */
  readonly hosts = new Map<string, string[] | Error>();
  secrets: string[] = [SECRET];
  /** In the middle of its spread a wait is exactly as long as the table says. */
  random = 0.5;
  /** What reading an event comes to, when not its bytes. */
  unread: null | Error | undefined;
  queueIsDown = false;
  #hosts = 0;

  private constructor(db: Db, tenant: TenantRow) {
    this.db = db;
    this.tenant = tenant;
    this.world = {
      db,
      now: () => this.now,
      random: () => this.random,
      newId,
      mark: noMark,
      log: () => undefined,
      count: () => undefined,
      queue: {
        send: async (job, delayMs = 0) => {
          if (this.queueIsDown) throw new Error('the queue is away');
          this.jobs.push({ job, at: this.now + delayMs });
        },
      },
      waits: DEFAULT_WAITS,
      rules: { api_host: 'api.example', platform_domain: 'agents.example', allow_loopback: false },
      resolve: async (host) => {
        const found = this.hosts.get(host) ?? ['93.184.215.14'];
        if (found instanceof Error) throw found;
        return found;
      },
      readEvent: async (row) => {
        if (this.unread instanceof Error) throw this.unread;
        return this.unread === null ? null : row.payload_json;
      },
      secrets: async () => this.secrets,
      post: async (url, headers, body) => {
        this.posts.push({ url, headers, body: new TextDecoder().decode(body), at: this.now });
        const answer = this.answers.shift() ?? 200;
        return typeof answer === 'number' ? { ok: true, status: answer } : { ok: false, error: answer };
      },
    };
  }

  static async create(): Promise<Hooks> {
    const db = await directory();
    const hooks = new Hooks(db, tenantRow('acme'));
    await hooks.addTenant(hooks.tenant);
    return hooks;
  }

  async addTenant(row: TenantRow): Promise<void> {
    await insertTenant(this.db, row, auditEntry('tenant.create', row.id));
  }

  async identity(username: string, changes: Partial<IdentityRow> = {}): Promise<IdentityId> {
    const row = identityRow(this.tenant.id, username, changes);
    await insertIdentity(this.db, newIdentity(row));
    return row.id;
  }

  /** An endpoint of the tenant for every event, unless it is to be another. */
  async endpoint(changes: Partial<EndpointRow> = {}): Promise<EndpointId> {
    const id = newId('whk', this.now);
    const url = `https://h${++this.#hosts}.acme.com/hook`;
    const begun = newEndpoint({ id, tenant_id: this.tenant.id, url, types: ['*'], secret_enc: 'sealed' }, this.now);
    const row: EndpointRow = { ...begun, ...changes };
    await addEndpoint(this.db, row, 1_000, auditEntry('webhook.create', this.tenant.id));
    await this.set(id, changes);
    return id;
  }

  /** Puts columns of an endpoint right as they are. */
  async set(id: EndpointId, columns: Partial<EndpointRow>): Promise<void> {
    const { id: _id, ...rest } = columns;
    for (const [name, value] of Object.entries(rest)) {
      await this.db.batch([statement(`UPDATE webhook_endpoints SET ${name} = ? WHERE id = ?`, value, id)]);
    }
  }

  async row(id: EndpointId): Promise<EndpointRow> {
    const row = await findEndpoint(this.db, id);
    if (row === undefined) throw new Error('no such endpoint');
    return row;
  }

  /** An event that stands in the index and waits to be told. */
  async event(
    type: EventType = 'message.sent',
    changes: { identity_id?: IdentityId | null; tenant_id?: TenantId | null; at?: number } = {},
  ): Promise<EventId> {
    const { identity_id = null, tenant_id = this.tenant.id, at = this.now } = changes;
    const event: EventEnvelope = {
      id: newId('evt', at),
      type,
      api_version: EVENT_API_VERSION,
      occurred_at: rfc3339(at),
      tenant_id,
      identity_id,
      sequence: null,
      data: { say: 'Grüße' },
    };
    await this.db.batch([
      platformEventStatement(event, at, statement('1')),
      statement('UPDATE event_index SET identity_id = ? WHERE id = ?', identity_id, event.id),
    ]);
    return event.id;
  }

  /** Events that were told to those who want them, without running what that queued. */
  async told(count: number, type?: EventType): Promise<EventId[]> {
    const ids: EventId[] = [];
    for (let n = 0; n < count; n++) {
      const id = await this.event(type);
      await fanOut(this.world, id);
      ids.push(id);
    }
    return ids;
  }

  /** Runs what is due on the queue, and what that puts there, in order. */
  async run(): Promise<void> {
    for (;;) {
      const next = this.jobs.findIndex(({ at }) => at <= this.now);
      if (next === -1) return;
      const [taken] = this.jobs.splice(next, 1);
      if (taken !== undefined) await this.consume(taken.job);
    }
  }

  async consume(job: WebhookJob): Promise<void> {
    if (job.kind === 'fanout') return fanOut(this.world, job.event_id);
    const work = await this.take(job.endpoint_id, job.event_id);
    if (work !== undefined) await deliver(this.world, job.endpoint_id, work);
  }

  take(endpoint: EndpointId, event: EventId): Promise<Work | undefined> {
    return takeUp(this.world, endpoint, event);
  }

  /** Writes down how an attempt that was taken up went. */
  async record(endpoint: EndpointId, work: Work | undefined, error: WebhookError | null): Promise<DeliveryAttempt> {
    if (work === undefined) throw new Error('nothing was taken up');
    const result = { error, http_status: null, started: this.now, duration_ms: 5 };
    return recordAttempt(this.world, await this.row(endpoint), work, result);
  }

  attempts(endpoint: EndpointId): Promise<DeliveryAttempt[]> {
    return queryAll<DeliveryAttempt>(
      this.db,
      'SELECT * FROM webhook_deliveries WHERE endpoint_id = ? ORDER BY event_id, attempt',
      endpoint,
    );
  }

  work(endpoint: EndpointId): Promise<Record<string, unknown>[]> {
    return rows(
      this.db,
      'SELECT event_id, attempt, step, due_at, taken_until FROM webhook_work WHERE endpoint_id = ? ORDER BY event_id',
      endpoint,
    );
  }

  /** Deliveries that the queue holds, whenever they come. */
  queued(): string[] {
    return this.jobs.map(({ job }) => (job.kind === 'deliver' ? job.event_id : `fanout ${job.event_id}`));
  }
}
