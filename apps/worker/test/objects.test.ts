import {
  createScheduledController,
  evictDurableObject,
  runDurableObjectAlarm,
  runInDurableObject,
} from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { makeApiKey } from '@pmail/core/keys/api-key.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import type { BootstrapIds } from '@pmail/engine/directory/bootstrap.ts';
import { bootstrapStatements } from '@pmail/engine/directory/bootstrap.ts';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { config } from '../src/env.ts';
import { hashKey } from '../src/http/auth.ts';
import worker, { IdentityMailbox, TenantQuota } from '../src/index.ts';
import type { CallContext } from '../src/objects/calls.ts';
import { newMailboxId, newQuotaId } from '../src/objects/new-id.ts';
import { mailboxStub, quotaStub } from '../src/objects/remote.ts';
import { newId } from '../src/ports/random.ts';
import {
  accepted,
  arrive,
  atRest,
  inMailbox,
  type Lab,
  letter,
  mailboxObject,
  mailboxRemote,
  makeLab,
  person,
  post,
  quotaObject,
  quotaRemote,
  until,
  waiting,
} from './mail.ts';
import { keepStorage } from './storage.ts';
import { ALL, call, db, eventTypes, refusal, sql } from './support.ts';

/** The objects behind the API: whose they are, what survives their death, and what finds those that were forgotten. */

keepStorage();

let root: string;
let lab: Lab;
let ids: BootstrapIds;

const MINUTE = '* * * * *';
const QUARTER = '*/15 * * * *';
const cron = (expression: string) => worker.scheduled(createScheduledController({ cron: expression }), env);

/** The deployment as the setup leaves it, before any object exists. */
beforeAll(async () => {
  const now = Date.now();
  ids = {
    tenant: newId('ten', now),
    domain: newId('dom', now),
    identity: newId('idn', now),
    address: newId('adr', now),
    key: newId('key', now),
    audit: newId('aud', now),
  };
  const { key, lookup } = makeApiKey('live', crypto.getRandomValues(new Uint8Array(40)));
  root = key;
  await db.batch(
    bootstrapStatements({
      ids,
      platform_domain: 'agents.example',
      system: { name: 'Pylota Mail', local_part: 'no-reply', owner_email: 'ops@example.com' },
      domain_state: 'healthy',
      key: { lookup, hash: await hashKey(config(env).key_pepper, key), permissions: ALL, expires_at: null },
      now,
    }),
  );
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const system = () => ({ params: { identity_id: ids.identity } });

describe('the cron that makes objects', () => {
  test('gives the rows of the setup theirs, once, whoever runs it how often', async () => {
    expect(await refusal(root, 'messages.list', system())).toEqual({ code: 'unavailable', step: 'mailbox' });
    expect(await refusal(root, 'usage.get', { query: { tenant_id: ids.tenant } })).toEqual({
      code: 'unavailable',
      step: 'quota',
    });
    await Promise.all([cron(MINUTE), cron(MINUTE), cron(MINUTE)]);
    await cron(MINUTE);
    const objects = async () => [
      ...(await sql('SELECT quota_do_id AS id FROM tenants')),
      ...(await sql('SELECT mailbox_do_id AS id FROM identities')),
    ];
    const made = await objects();
    expect(made).toHaveLength(2);
    for (const { id } of made) expect(id).toMatch(/^[0-9a-f]{64}$/);
    await cron(MINUTE);
    expect(await objects()).toEqual(made);
    expect((await call(root, 'messages.list', system())).data).toEqual([]);
    await call(root, 'usage.get', { query: { tenant_id: ids.tenant } });
    lab = await makeLab(root);
  });

  test('lets the system identity send like any other', async () => {
    await sql("UPDATE tenants SET mode = 'test' WHERE id = ?", ids.tenant);
    const { id } = await accepted(root, ids.identity, letter({ to: ['ann.lab@agents.example'] }));
    await until(async () => {
      const { data } = await call(lab.key, 'messages.list', { params: { identity_id: lab.ann } });
      expect(data).toMatchObject([{ from: { address: 'no-reply@agents.example', name: 'Pylota Mail' } }]);
    });
    expect((await call(root, 'messages.get', { params: { ...system().params, message_id: id } })).provider).toBe(
      'loopback',
    );
  });

  test('an unknown cron does nothing but say so', async () => {
    const said = vi.spyOn(console, 'error').mockReturnValue();
    await cron('0 0 1 1 *');
    expect(said.mock.calls.join()).toContain('unknown_cron');
  });
});

/** Every method of an object but those that need no owner. */
function methods(object: { prototype: object }): string[] {
  const names = Object.getOwnPropertyNames(object.prototype);
  return names.filter((name) => !['constructor', 'init', 'alarm', 'fetch'].includes(name));
}

type AnyRemote = Record<string, (call: CallContext) => Promise<unknown>>;

/** Calls a method of an object by its name. */
async function invoke(stub: object, name: string, context: CallContext): Promise<unknown> {
  return (stub as AnyRemote)[name]?.(context);
}

describe('an object', () => {
  test('of one identity takes no call for another, nor for the same of another tenant', async () => {
    const { stub, call: own } = await mailboxRemote(lab.ann);
    const names = methods(IdentityMailbox);
    expect(names).toContain('submit');
    for (const name of names) {
      for (const wrong of [{ identity_id: lab.bob }, { tenant_id: ids.tenant }, { identity_id: null }]) {
        await expect(invoke(stub, name, { ...own, ...wrong }), name).rejects.toThrow('another identity');
      }
    }
    await expect(
      (async () =>
        stub.init({ ...own, identity_id: lab.bob }, { quota_do_id: 'x', last_sequence: null, created: null }))(),
    ).rejects.toThrow('another identity');
    expect(await inMailbox(lab.ann, "SELECT v FROM meta WHERE k = 'identity_id'")).toEqual([{ v: lab.ann }]);
  });

  test('without an owner takes nothing but one', async () => {
    const id = newMailboxId(env);
    const stub = mailboxStub(env, id);
    const owner = { v: 1, tenant_id: lab.tenant, identity_id: newId('idn', Date.now()), request_id: 'test' } as const;
    for (const name of methods(IdentityMailbox)) {
      await expect(invoke(stub, name, owner), name).rejects.toThrow('without an owner');
    }
    await expect(
      (async () =>
        stub.init({ ...owner, identity_id: null }, { quota_do_id: '', last_sequence: null, created: null }))(),
    ).rejects.toThrow('needs an identity');
    await stub.init(owner, { quota_do_id: 'q', last_sequence: null, created: null });
    await stub.init(owner, { quota_do_id: 'q', last_sequence: null, created: null });
    expect(await stub.listMessages(owner, {}, 1, null, false)).toEqual({ items: [], next: null });
    const other = { ...owner, identity_id: lab.ann };
    await expect(
      (async () => stub.init(other, { quota_do_id: 'q', last_sequence: null, created: null }))(),
    ).rejects.toThrow('another identity');
  });

  test('of a tenant takes no call for another, and keeps its first owner', async () => {
    const { stub, call: own } = await quotaRemote(lab.tenant);
    const names = methods(TenantQuota);
    expect(names).toContain('reserve');
    const nobody = quotaStub(env, newQuotaId(env));
    for (const name of names) {
      const wrong = { ...own, tenant_id: ids.tenant };
      await expect(invoke(stub, name, wrong), name).rejects.toThrow('another tenant');
      await expect(invoke(nobody, name, own), name).rejects.toThrow('another tenant');
    }
    await stub.init(ids.tenant);
    expect(await stub.usage(own)).toMatchObject({ billing: 'disabled' });
  });
});

const alarmOf = async (id: string) =>
  runInDurableObject(await mailboxObject(id), (_mailbox, { storage }) => storage.getAlarm());

let people = 0;
const somebody = () => person(root, lab.tenant, `p${++people}`);

/** Somebody with a message that its queue has lost, and the alarm that would bring it back deleted. */
async function forgotten(): Promise<{ from: string; id: string }> {
  const from = await somebody();
  await atRest(from);
  const { id } = await waiting(lab.key, from, letter({ to: ['reject@simulator.invalid'] }));
  await runInDurableObject(await mailboxObject(from), (_mailbox, { storage }) => storage.deleteAlarm());
  expect(await alarmOf(from)).toBeNull();
  return { from, id };
}

const statusOf = async (identity_id: string, message_id: string) =>
  (await call(lab.key, 'messages.get', { params: { identity_id, message_id } })).status;

/** Runs what is due in a mailbox when the wait for a lost pointer is over: the message is queued again. */
async function queuedAgain({ from, id }: { from: string; id: string }): Promise<void> {
  const queue = vi.spyOn(env.Q_OUTBOUND, 'send');
  vi.setSystemTime(Date.now() + LIMITS.dispatch_after_ms + 1);
  expect(await runDurableObjectAlarm(await mailboxObject(from))).toBe(true);
  vi.useRealTimers();
  const jobs = queue.mock.calls.map(([job]) => job as { message_id?: string });
  expect(jobs.filter(({ message_id }) => message_id === id)).toHaveLength(1);
}

/** The same, and the queue brings the message to its end. */
async function broughtBack({ from, id }: { from: string; id: string }): Promise<void> {
  await queuedAgain({ from, id });
  await until(async () => expect(await statusOf(from, id)).toBe('rejected'));
  expect(await inMailbox(from, 'SELECT COUNT(*) AS n FROM attempts')).toEqual([{ n: 1 }]);
}

describe('an alarm that the platform lost', () => {
  test('is set again by a new instance of the object', async () => {
    const lost = await forgotten();
    await evictDurableObject(await mailboxObject(lost.from));
    const [due] = await inMailbox(lost.from, "SELECT MIN(CAST(v AS INTEGER)) AS at FROM meta WHERE k LIKE 'alarm:%'");
    expect(await alarmOf(lost.from)).toBe(due?.['at']);
    await queuedAgain(lost);
  });

  test('is set again by the next request once it is overdue', async () => {
    const lost = await forgotten();
    vi.setSystemTime(Date.now() + LIMITS.dispatch_after_ms + 61_000);
    await statusOf(lost.from, lost.id);
    expect(await alarmOf(lost.from)).not.toBeNull();
    vi.useRealTimers();
    await queuedAgain(lost);
  });

  test('is found by the cron in a mailbox that nobody asks for anything', async () => {
    const lost = await forgotten();
    expect(await sql('SELECT * FROM mailbox_work WHERE identity_id = ?', lost.from)).toHaveLength(1);
    await cron(MINUTE);
    expect(await alarmOf(lost.from)).toBeNull();
    vi.setSystemTime(Date.now() + LIMITS.dispatch_after_ms + 61_000);
    await cron(MINUTE);
    expect(await alarmOf(lost.from)).not.toBeNull();
    vi.useRealTimers();
    await broughtBack(lost);
    await atRest(lost.from);
    vi.setSystemTime(Date.now() + 2 * LIMITS.dispatch_after_ms + 122_000);
    await cron(MINUTE);
    expect(await sql('SELECT * FROM mailbox_work WHERE identity_id = ?', lost.from)).toEqual([]);
  });

  test('of one mailbox that is broken does not keep the cron from the others', async () => {
    const [broken, fine] = [await somebody(), await forgotten()];
    await sql("UPDATE identities SET mailbox_do_id = 'nonsense' WHERE id = ?", broken);
    await sql('INSERT OR REPLACE INTO mailbox_work (identity_id, since, poked_at) VALUES (?, 0, 0)', broken);
    vi.setSystemTime(Date.now() + LIMITS.dispatch_after_ms + 61_000);
    await cron(MINUTE);
    expect(await alarmOf(fine.from)).not.toBeNull();
    vi.useRealTimers();
    await sql('DELETE FROM mailbox_work WHERE identity_id = ?', broken);
    await sql('DELETE FROM addresses WHERE identity_id = ?', broken);
    await sql('DELETE FROM identities WHERE id = ?', broken);
    await queuedAgain(fine);
  });
});

const held = async (tenantId: string): Promise<number> => {
  const { stub, call: context } = await quotaRemote(tenantId);
  return (await stub.usage(context)).features.find(({ feature }) => feature === 'sends')?.held ?? 0;
};

const messagesOf = (id: string) => inMailbox(id, 'SELECT id, status FROM messages');

describe('an object that dies in the middle of a send', () => {
  test('before the commit has stored nothing; the repeat is the first, and the hold goes back in time', async () => {
    vi.spyOn(console, 'error').mockReturnValue();
    const own = await makeLab(root, 'mortal');
    const from = own.ann;
    await atRest(from);
    await runInDurableObject(await mailboxObject(from), (_mailbox, state) => {
      const commit = state.storage.transactionSync.bind(state.storage);
      // Dies inside the transaction that has written the message.
      state.storage.transactionSync = (run) =>
        commit(() => {
          const result = run();
          if ([...state.storage.sql.exec('SELECT 1 FROM messages')].length > 0) state.abort('killed');
          return result;
        });
    });
    expect((await post(own.key, from, letter(), 'k')).status).toBe(500);
    expect(await messagesOf(from)).toEqual([]);
    expect(await inMailbox(from, 'SELECT * FROM idempotency')).toEqual([]);
    expect(await held(own.tenant)).toBe(1);
    const sent = await accepted(own.key, from, letter(), 'k');
    expect(sent.deduplicated).toBe(false);
    expect(await messagesOf(from)).toMatchObject([{ id: sent.id }]);
    expect(await held(own.tenant)).toBe(2);
    await call(own.key, 'messages.cancel', { params: { identity_id: from, message_id: sent.id } });
    await atRest(from);
    vi.setSystemTime(Date.now() + LIMITS.hold_ttl_ms + 1);
    await runDurableObjectAlarm(await quotaObject(own.tenant));
    expect(await held(own.tenant)).toBe(0);
  });

  test('after the commit has lost only its answer; the repeat finds the message, and the alarm sends it', async () => {
    vi.spyOn(console, 'error').mockReturnValue();
    const from = await somebody();
    await atRest(from);
    const queue = env.Q_OUTBOUND.send.bind(env.Q_OUTBOUND);
    vi.spyOn(env.Q_OUTBOUND, 'send').mockImplementation(async (job, options) => {
      if (job.kind === 'send' && job.identity_id === from) throw new Error('the queue is away');
      return queue(job, options);
    });
    const submit = Reflect.get<IdentityMailbox, 'submit'>(IdentityMailbox.prototype, 'submit');
    const dying = vi.spyOn(IdentityMailbox.prototype, 'submit').mockImplementation(async function (
      this: IdentityMailbox,
      ...request
    ) {
      const answer = await submit.apply(this, request);
      const { ctx } = this as unknown as { ctx: DurableObjectState };
      await ctx.storage.sync();
      ctx.abort('killed');
      return answer;
    });
    const body = letter({ to: ['reject@simulator.invalid'] });
    expect((await post(lab.key, from, body, 'k')).status).toBe(500);
    dying.mockRestore();
    const [stored] = await messagesOf(from);
    expect(stored).toMatchObject({ status: 'queued' });
    const again = await accepted(lab.key, from, body, 'k');
    expect(again).toMatchObject({ id: stored?.['id'], deduplicated: true });
    vi.restoreAllMocks();
    await broughtBack({ from, id: again.id });
    expect(await eventTypes(from)).toEqual(['identity.created', 'message.rejected']);
  });
});

describe('the roll-up of usage', () => {
  test('writes what the quotas have counted, again and again, and passes over one that fails', async () => {
    const other = await makeLab(root, 'other');
    await accepted(other.key, other.ann, letter({ to: ['bob.other@agents.example', 'deferred@simulator.invalid'] }));
    await until(async () => {
      const { data } = await call(other.key, 'messages.list', { params: { identity_id: other.bob } });
      expect(data).toHaveLength(1);
    });
    await atRest(other.ann, other.bob);
    const usage = async () =>
      (await sql('SELECT metric, value FROM usage_daily WHERE tenant_id = ? ORDER BY metric', other.tenant)).map(
        ({ metric, value }) => `${String(metric)} ${String(value)}`,
      );
    const days = Reflect.get<TenantQuota, 'usageDays'>(TenantQuota.prototype, 'usageDays');
    vi.spyOn(TenantQuota.prototype, 'usageDays').mockImplementation(function (this: TenantQuota, ...args) {
      if (args[0].tenant_id === lab.tenant) throw new Error('away');
      return days.apply(this, args);
    });
    await until(async () => {
      await cron(QUARTER);
      expect(await usage()).toEqual(['inbound 1', 'outbound 1', 'sends 2']);
    });
    expect(await sql('SELECT * FROM usage_daily WHERE tenant_id = ?', lab.tenant)).toEqual([]);
    vi.restoreAllMocks();
    await arrive(other.ann, 'From: a@example.org\nSubject: More\n\nx');
    await atRest(other.ann);
    await cron(QUARTER);
    expect(await usage()).toEqual(['inbound 2', 'outbound 1', 'sends 2']);
    const { data } = await call(other.key, 'usage.daily', { query: {} });
    expect(data.at(-1)).toMatchObject({ inbound: 2, outbound: 1, sends: 2 });
  });
});
