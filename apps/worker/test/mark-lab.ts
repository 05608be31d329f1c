import {
  createExecutionContext,
  createMessageBatch,
  getQueueResult,
  runDurableObjectAlarm,
  runInDurableObject,
} from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import type { CloudflareMail } from '@pmail/core/cloudflare/send-request.ts';
import { expect, vi } from 'vitest';
import type { Env } from '../src/env.ts';
import worker from '../src/index.ts';
import { newId } from '../src/ports/random.ts';
import { Deaths, Died } from './deaths.ts';
import {
  inMailbox,
  type Lab,
  type Letter,
  letter,
  makeLab,
  person,
  post,
  quotaObject,
  routeOf,
  type Sent,
  until,
} from './mail.ts';
import { Net, type Posted } from './net.ts';
import { call, deploy, makeKey, sql, tenant } from './support.ts';

interface Job {
  queue: string;
  body: unknown;
  due: number;
  attempts: number;
}

const PROVIDER = 'http://provider.invalid/taken';
const SUPPRESSIONS = 'https://api.cloudflare.com/client/v4/accounts/account/email/sending/suppressions';
const ROUNDS_MAX = 80;
const WAITED_FOR = ['outbox', 'claim', 'dispatch', 'quota', 'followup', 'holds']
  .map((name) => `'alarm:${name}'`)
  .join();
const RETRY_MS = 30_000;

/**
 * A deployment whose time, queues and alarms are a test's. Its clock runs an hour ahead at least, so that no alarm goes off by
 * itself; queue messages come when the test lets them; and everything that recovers does it by what production has: a
 * message that comes again, an alarm, a repeat of the request.
 */
export class MarkLab {
  readonly root: string;
  readonly lab: Lab;
  /** A tenant whose mail goes out, and its key. */
  readonly live: { tenant: string; key: string };
  deaths = new Deaths();
  net = new Net();
  jobs: Job[] = [];
  /** What Cloudflare's binding says, one call after the other; then it takes everything. */
  answers: Error[] = [];
  mailed: CloudflareMail[] = [];
  #ahead = 3_600_000;
  /** What each tenant had used before the test. */
  readonly #used = new Map<string, number>();
  #made = 0;

  private constructor(root: string, lab: Lab, live: { tenant: string; key: string }) {
    this.root = root;
    this.lab = lab;
    this.live = live;
  }

  static async make(): Promise<MarkLab> {
    const root = await deploy();
    const lab = await makeLab(root);
    const { id } = await tenant(root, 'live');
    return new MarkLab(root, lab, { tenant: id, key: await makeKey(root, { level: 'tenant', tenant_id: id }) });
  }

  /** Before each test. */
  async begin(): Promise<void> {
    for (const id of [this.lab.tenant, this.live.tenant]) this.#used.set(id, (await booksOf(id, '')).used);
    for (const level of ['warn', 'error'] as const) vi.spyOn(console, level).mockReturnValue();
    const now = Date.now.bind(Date);
    vi.spyOn(Date, 'now').mockImplementation(() => now() + this.#ahead);
    this.net = new Net().install();
    this.deaths = new Deaths();
    this.deaths.install();
    this.jobs = [];
    this.answers = [];
    this.mailed = [];
    this.#keep('pm-outbound', env.Q_OUTBOUND);
    this.#keep('pm-inbound', env.Q_INBOUND);
    this.#keep('pm-webhooks', env.Q_WEBHOOKS);
  }

  /** Messages of a queue wait here. As with the real one, nothing is sent before what led to it is on disk. */
  #keep(queue: string, binding: Queue<never>): void {
    const take = async (body: unknown, { delaySeconds = 0 }: QueueSendOptions = {}): Promise<void> => {
      await env.BLOBS.head('gate');
      this.jobs.push({ queue, body, due: Date.now() + delaySeconds * 1_000, attempts: 1 });
    };
    vi.spyOn(binding, 'send').mockImplementation(take as never);
    vi.spyOn(binding, 'sendBatch').mockImplementation((async (all: Iterable<{ body: unknown }>) => {
      for (const { body } of all) await take(body);
    }) as never);
  }

  somebody(of: 'lab' | 'live' = 'lab'): Promise<string> {
    return person(this.root, of === 'lab' ? this.lab.tenant : this.live.tenant, `mark${++this.#made}`);
  }

  /** Waits until an accepted message has come to its queue, which it does beside the answer. */
  queued(): Promise<void> {
    return until(() => expect(this.jobs.some(({ queue }) => queue === 'pm-outbound')).toBe(true));
  }

  /** What the provider says of an address when it is asked. */
  suppressAtProvider(address: string): void {
    for (const email of ['jo@example.net', 'kim@example.org']) {
      const entry = { id: 'x', email, reason: 'complaint', created_at: '2026-11-29T08:00:00Z', expires_at: null };
      this.net.endpoints.set(`${SUPPRESSIONS}?email=${encodeURIComponent(email)}`, () =>
        Response.json({ success: true, errors: [], result: email === address ? [entry] : [] }),
      );
    }
  }

  async forgetSuppressions(): Promise<void> {
    await sql('DELETE FROM suppressions');
  }

  /** What the quota has counted of how an identity's mail ended. */
  async outcomes(from: string): Promise<unknown[]> {
    const query = 'SELECT outcome FROM outcomes WHERE identity_id = ? ORDER BY seq';
    return runInDurableObject(await quotaObject(this.lab.tenant), (_quota, { storage }) =>
      storage.sql
        .exec(query, from)
        .toArray()
        .map(({ outcome }) => outcome),
    );
  }

  /** What the tenant has used of something, over all days. */
  async usageOf(metric: string): Promise<number> {
    const query = 'SELECT COALESCE(SUM(value), 0) AS n FROM counters WHERE metric = ?';
    return runInDurableObject(await quotaObject(this.lab.tenant), (_quota, { storage }) =>
      Number(storage.sql.exec(query, `usage:${metric}`).one()['n']),
    );
  }

  later(ms: number): void {
    this.#ahead += ms;
  }

  /** Something has died at this mark, once and nowhere else. */
  expectDied(...at: string[]): void {
    expect(this.deaths.at).toEqual(at);
  }

  /** Sends as a client does that insists: the same request under the same key until it is accepted. */
  async sends(from: string, body: Partial<Letter> = {}, key = this.lab.key): Promise<Sent & { refused: number }> {
    for (let refused = 0; refused < 6; refused++) {
      const response = await post(key, from, letter(body), `key of ${from}`);
      if (response.status === 202) return { ...(await response.json<Sent>()), refused };
      expect(response.status).toBeGreaterThanOrEqual(500);
      await response.arrayBuffer();
      this.later(1_000);
    }
    throw new Error('never accepted');
  }

  /** Lets the consumer have what waits in the queues and is due. */
  async deliver(): Promise<void> {
    const due = this.jobs.filter((job) => job.due <= Date.now());
    this.jobs = this.jobs.filter((job) => job.due > Date.now());
    for (const job of due) {
      if (!(await this.#consumed(job))) {
        this.jobs.push({ ...job, due: Date.now() + RETRY_MS, attempts: job.attempts + 1 });
      }
    }
  }

  /** @returns whether the queue need not bring the message again */
  async #consumed({ queue, body, attempts }: Job): Promise<boolean> {
    const { deaths } = this;
    deaths.consumer = false;
    const id = newId('req', Date.now());
    const batch = createMessageBatch(queue, [{ id, timestamp: new Date(), attempts, body }]);
    for (const message of batch.messages) {
      for (const word of ['ack', 'retry'] as const) {
        const say = message[word].bind(message);
        const value = (): void => {
          if (deaths.consumer) throw new Died(word);
          say();
        };
        Object.defineProperty(message, word, { value });
      }
    }
    const thrown: unknown = await worker.queue(batch, this.#env()).catch((error: unknown) => error);
    // Only a dead consumer throws, and it never comes back otherwise: nothing of the Worker may go on after the mark.
    if (thrown instanceof Died !== deaths.consumer)
      throw new Error('a consumer lives on after its death', { cause: thrown });
    if (thrown !== undefined && !deaths.consumer) throw thrown as Error;
    const { explicitAcks } = await getQueueResult(batch, createExecutionContext());
    return explicitAcks.length === 1;
  }

  #env(): Env {
    const send = async (mail: CloudflareMail): Promise<{ messageId: string }> => {
      this.mailed.push(mail);
      const answer = this.answers.shift();
      if (answer !== undefined) throw answer;
      return { messageId: `cf-${this.mailed.length}` };
    };
    const EMAIL = { send } as unknown as SendEmail;
    return { ...env, EMAIL, PM_PROVIDER_LOG_URL: PROVIDER, PM_CF_ACCOUNT_ID: 'account', PM_CF_API_TOKEN: 'token' };
  }

  /** The calls that the simulated provider took, as it noted them itself. */
  taken(): { message_id: string }[] {
    return this.net.posted.filter(({ url }) => url === PROVIDER).map(({ body }: Posted) => JSON.parse(body));
  }

  /** Goes from deadline to deadline until the queues are empty and these mailboxes, and the quotas, wait for nothing. */
  async rest(...mailboxes: string[]): Promise<void> {
    const objects = await this.#objects(mailboxes);
    let left: unknown[] = [];
    for (let round = 0; round < ROUNDS_MAX; round++) {
      await this.deliver();
      const waits = await Promise.all(objects.map(async (object) => ({ object, at: await earliest(object()) })));
      const times = [...waits.flatMap(({ at }) => (at === null ? [] : [at])), ...this.jobs.map(({ due }) => due)];
      if (times.length === 0) return;
      const next = Math.min(...times);
      this.later(Math.max(0, next + 1 - Date.now()));
      for (const { object, at } of waits) if (at !== null && at <= Date.now()) await ring(object());
      left = [waits.map(({ at }) => at), this.jobs];
    }
    throw new Error(`never at rest: ${JSON.stringify(left)}`);
  }

  /** These mailboxes and their quotas; a stub breaks with its object, so each call makes a new one. */
  async #objects(mailboxes: string[]): Promise<(() => DurableObjectStub<undefined>)[]> {
    const stub = (namespace: unknown, id: DurableObjectId) => () =>
      (namespace as DurableObjectNamespace<undefined>).get(id);
    const routes = await Promise.all(mailboxes.map(routeOf));
    const quotas = await Promise.all([...new Set(routes.map(({ tenant_id: id }) => id))].map(quotaObject));
    return [
      ...routes.map(({ mailbox_do_id: id }) => stub(env.MAILBOX, env.MAILBOX.idFromString(id))),
      ...quotas.map(({ id }) => stub(env.QUOTA, id)),
    ];
  }

  async status(from: string, id: string, key = this.lab.key): Promise<string> {
    return (await call(key, 'messages.get', { params: { identity_id: from, message_id: id } })).status;
  }

  /** Every count of the quota equals one of the rows that it counts, and nothing is held, owed or untold. */
  async expectBooks(from: string): Promise<void> {
    const { tenant_id: of } = await routeOf(from);
    const taken = "('submitted', 'delivered', 'deferred', 'bounced', 'complained')";
    const counted = await inMailbox(
      from,
      `SELECT (SELECT COUNT(*) FROM messages WHERE direction = 'outbound' AND status <> 'canceled') AS sends,
         (SELECT COUNT(*) FROM quota_tasks) AS owed, (SELECT COUNT(*) FROM followups WHERE kind = 'inbound') AS copies,
         (SELECT COUNT(*) FROM outbox WHERE dispatched_at IS NULL) AS untold,
         (SELECT COUNT(*) FROM meta WHERE k LIKE 'claim:%' OR k LIKE 'dispatch:%' OR k LIKE 'backoff:%') AS open`,
    );
    const { sends, ...books } = await booksOf(of, from);
    const [accepted] = await inMailbox(from, `SELECT COUNT(*) AS n FROM deliveries WHERE status IN ${taken}`);
    const used = Number(accepted?.['n']) + (this.#used.get(of) ?? 0);
    expect(counted).toEqual([{ sends, owed: 0, copies: 0, untold: 0, open: 0 }]);
    expect(books).toEqual({ holds: 0, held: 0, used, usage: used });
  }
}

/** What a tenant's quota says, and how many sends it has counted for one of its identities. */
async function booksOf(tenantId: string, from: string) {
  return runInDurableObject(await quotaObject(tenantId), (_quota, { storage }) => {
    const one = (query: string, ...values: string[]) => Number(storage.sql.exec(query, ...values).one()['n']);
    return {
      sends: one('SELECT COALESCE(SUM(value), 0) AS n FROM counters WHERE metric = ?', `sends:${from}`),
      holds: one('SELECT COUNT(*) AS n FROM holds'),
      held: one("SELECT COALESCE(SUM(held), 0) AS n FROM allowances WHERE feature = 'sends'"),
      used: one("SELECT COALESCE(SUM(used), 0) AS n FROM allowances WHERE feature = 'sends'"),
      usage: one("SELECT COALESCE(SUM(value), 0) AS n FROM counters WHERE metric = 'usage:sends'"),
    };
  });
}

/** When an object next wants its alarm, apart from its daily cleaning up. */
async function earliest(object: DurableObjectStub<undefined>): Promise<number | null> {
  return runInDurableObject(object, (_object, { storage }) => {
    const query = `SELECT MIN(CAST(v AS INTEGER)) AS at FROM meta WHERE k IN (${WAITED_FOR})`;
    return storage.sql.exec<{ at: number | null }>(query).one().at;
  });
}

/** An alarm goes off; when its object dies in it, the platform would ring again, as the next round does. */
async function ring(object: DurableObjectStub): Promise<void> {
  try {
    await runDurableObjectAlarm(object);
  } catch (error) {
    if (!/killed|Died/.test(String(error))) throw error;
  }
}
