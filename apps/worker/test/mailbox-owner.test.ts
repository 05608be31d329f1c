import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { runCron } from '../src/crons/index.ts';
import { IdentityMailbox } from '../src/index.ts';
import { accepted, atRest, letter, mailboxObject, OWNER, until } from './mail.ts';
import { audited, call, deploy, eventTypes, makeKey, refusal, send, sql, tenant } from './support.ts';

/** The call that gives a new mailbox its owner is lost. The identity stands by then, and has to work all the same. */

const MINUTE = '* * * * *';
const body = { username: 'ann', display_name: 'Ann', owner: OWNER };

let root: string;
let lab: string;
let key: string;

beforeEach(async () => {
  vi.spyOn(console, 'error').mockReturnValue();
  vi.spyOn(console, 'warn').mockReturnValue();
  root = await deploy();
  lab = (await tenant(root, 'lab', { mode: 'test' })).id;
  key = await makeKey(root, { level: 'tenant', tenant_id: lab });
});

afterEach(() => {
  vi.restoreAllMocks();
});

const create = () => call(key, 'identities.create', { params: { tenant_id: lab }, body, status: 201 });

/** An identity whose mailbox was never reached. */
async function unreached() {
  const broken = vi.spyOn(IdentityMailbox.prototype, 'init').mockRejectedValue(new Error('away'));
  const made = await create();
  broken.mockRestore();
  return made;
}

/** The next minute in which the cron pokes mailboxes that were marked now, or poked `rounds` times before. */
async function pokes(rounds = 0): Promise<void> {
  const clock = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + (rounds + 1) * 6 * 60_000);
  await runCron(MINUTE, env);
  clock.mockRestore();
}

const workRows = () => sql('SELECT identity_id FROM mailbox_work');

describe('an identity that no repeat could finish', () => {
  test('is answered as made, once, and every route of its mailbox answers', async () => {
    const made = await unreached();
    expect(await audited(made.id)).toEqual(['identity.create']);
    const params = { identity_id: made.id };
    expect((await call(key, 'messages.list', { params })).data).toEqual([]);
    expect((await call(key, 'threads.list', { params })).data).toEqual([]);
    expect(await eventTypes(made.id)).toEqual(['identity.created']);
    const again = { params: { tenant_id: lab }, body };
    expect(await refusal(key, 'identities.create', again)).toEqual({ code: 'username_taken' });
  });

  test('sends, first of all', async () => {
    const { id } = await unreached();
    const sent = await accepted(key, id);
    await until(async () => {
      const params = { identity_id: id, message_id: sent.id };
      expect((await call(key, 'messages.get', { params })).status).toBe('delivered');
    });
    expect((await eventTypes(id))[0]).toBe('identity.created');
  });

  test('gets mail that arrives before anybody has called', async () => {
    const { id } = await unreached();
    const sender = await call(key, 'identities.create', {
      params: { tenant_id: lab },
      body: { ...body, username: 'bob' },
      status: 201,
    });
    await accepted(key, sender.id, letter({ to: ['ann.lab@agents.example'] }));
    await until(async () => {
      expect((await call(key, 'messages.list', { params: { identity_id: id } })).data).toHaveLength(1);
    });
  });

  test('is told of by the cron when nobody calls', async () => {
    const { id } = await unreached();
    expect(await workRows()).toEqual([{ identity_id: id }]);
    await pokes();
    expect(await eventTypes(id)).toEqual(['identity.created']);
  });

  test('whose mailbox still cannot be reached is unavailable, and no fault of ours', async () => {
    const { id } = await unreached();
    const broken = vi.spyOn(IdentityMailbox.prototype, 'init').mockRejectedValue(new Error('away'));
    const params = { identity_id: id };
    const unavailable = { code: 'unavailable', step: 'mailbox' };
    expect(await refusal(key, 'messages.list', { params })).toEqual(unavailable);
    broken.mockRestore();
    expect((await call(key, 'messages.list', { params })).data).toEqual([]);
  });

  test('and is on its way out does not bring its mailbox back', async () => {
    const { id } = await unreached();
    await sql("UPDATE identities SET status = 'deleting' WHERE id = ?", id);
    const init = vi.spyOn(IdentityMailbox.prototype, 'init');
    const params = { identity_id: id };
    expect(await refusal(key, 'messages.list', { params })).toEqual({ code: 'identity_not_found' });
    expect(init).not.toHaveBeenCalled();
  });
});

test('a mailbox that has its owner and could not tell of its creation tells later', async () => {
  const broken = vi.spyOn(IdentityMailbox.prototype, 'init').mockImplementation(async function (
    this: IdentityMailbox,
    ...args
  ) {
    broken.mockRestore();
    const batch = vi.spyOn(env.DB, 'batch').mockRejectedValue(new Error('D1_ERROR: Network connection lost.'));
    await this.init(...args).finally(() => batch.mockRestore());
  });
  const { id } = await create();
  expect(await eventTypes(id)).toEqual([]);
  expect((await call(key, 'messages.list', { params: { identity_id: id } })).data).toEqual([]);
  await pokes();
  expect(await eventTypes(id)).toEqual(['identity.created']);
  const left = await runInDurableObject(await mailboxObject(id), (_mailbox, { storage }) => storage.get('untold'));
  expect(left).toBeUndefined();
});

test('the answer 503 stays where a repeat finishes what was made', async () => {
  const broken = vi.spyOn(IdentityMailbox.prototype, 'init').mockRejectedValue(new Error('away'));
  const input = { params: { tenant_id: lab }, body: { ...body, client_id: 'c-1' } };
  expect(await refusal(key, 'identities.create', input)).toEqual({ code: 'unavailable', step: 'mailbox' });
  broken.mockRestore();
  expect((await send(key, 'identities.create', input)).status).toBe(200);
});

test('a mailbox that was reached leaves the registry of work as before', async () => {
  const { id } = await create();
  await atRest(id);
  await pokes();
  expect(await workRows()).toEqual([]);
  expect(await eventTypes(id)).toEqual(['identity.created']);
});
