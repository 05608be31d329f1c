import { createExecutionContext, createMessageBatch, getQueueResult } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import type { IdentityId, TenantId } from '@pmail/core/ids.ts';
import { statement } from '@pmail/engine/sql.ts';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { TellJob } from '../src/consumers/tell.ts';
import worker, { IdentityMailbox } from '../src/index.ts';
import { newMailboxId } from '../src/objects/new-id.ts';
import { newId } from '../src/ports/random.ts';
import { until } from './mail.ts';
import { call, db, deploy, eventsOf, eventTypes, identity, sql, tenant } from './support.ts';

/** Every identity is told of its tenant's suspension, and of the end of it, however many there are. */

let root: string;
let acme: TenantId;

beforeEach(async () => {
  vi.spyOn(console, 'warn').mockReturnValue();
  root = await deploy();
  acme = (await tenant(root, 'acme')).id;
});

afterEach(() => {
  vi.restoreAllMocks();
});

const update = (status: 'suspended' | 'active') =>
  call(root, 'tenants.update', { params: { tenant_id: acme }, body: { status }, status: 200 });

/** Rows of identities, without the work that their creation is. Their mailboxes are told whose they are when called. */
async function crowd(count: number): Promise<IdentityId[]> {
  const ids = Array.from({ length: count }, () => newId('idn', Date.now()));
  await db.batch(
    ids.map((id, n) =>
      statement(
        `INSERT INTO identities (id, tenant_id, username, username_fold, display_name, mailbox_do_id, created_at, updated_at)
         VALUES (?1, ?2, ?3, ?3, 'x', ?4, ?5, ?5)`,
        id,
        acme,
        `p${n}`,
        newMailboxId(env),
        Date.now(),
      ),
    ),
  );
  return ids;
}

describe('a tenant with more identities than a request can tell', () => {
  test('is suspended and resumed by one request each, and all are told once', async () => {
    const everybody = await crowd(125);
    const emit = vi.spyOn(IdentityMailbox.prototype, 'emitEvent');
    const queue = vi.spyOn(env.Q_OUTBOUND, 'sendBatch');
    const queued = () => queue.mock.calls.flatMap(([jobs]) => [...jobs].map(({ body }) => body as TellJob));
    for (const status of ['suspended', 'active'] as const) {
      emit.mockClear();
      queue.mockClear();
      await update(status);
      const type = status === 'suspended' ? 'identity.paused' : 'identity.resumed';
      expect(queued().map(({ identities }) => identities.length)).toEqual([20, 5]);
      await until(() => expect(new Set(emit.mock.calls.map(([{ identity_id: id }]) => id)).size).toBe(125));
      expect(new Set(emit.mock.calls.map(([, told]) => told))).toEqual(new Set([type]));
    }
    for (const id of [everybody[0], everybody[60], ...everybody.slice(-3)]) {
      expect(await eventTypes(id ?? '')).toEqual(['identity.created', 'identity.paused', 'identity.resumed']);
    }
    // 125 mailboxes are made and told three times.
  }, 60_000);
});

test('a mailbox that cannot be reached is left to the queue, and the request ends', async () => {
  const { id } = await identity(root, acme, 'ann');
  const emit = vi.spyOn(IdentityMailbox.prototype, 'emitEvent').mockImplementationOnce(() => {
    throw new Error('away');
  });
  expect(await update('suspended')).toMatchObject({ status: 'suspended' });
  await until(async () => expect(await eventTypes(id)).toEqual(['identity.created', 'identity.paused']));
  expect(emit).toHaveBeenCalledTimes(2);
  const [paused] = (await eventsOf(id)).slice(-1);
  expect(paused?.data).toEqual({ identity_id: id, reason: 'tenant_suspended' });
});

describe('a job of the queue', () => {
  let ann: IdentityId;

  beforeEach(async () => {
    ann = (await identity(root, acme, 'ann')).id;
  });

  async function consume(type: TellJob['type'], at: number) {
    const request_id = newId('req', Date.now());
    const body: TellJob = {
      v: 1,
      kind: 'tenant_status',
      type,
      at,
      tenant_id: acme,
      identities: [ann],
      request_id,
    };
    const batch = createMessageBatch('pm-outbound', [{ id: 'tell', timestamp: new Date(), attempts: 1, body }]);
    await worker.queue(batch, env);
    return getQueueResult(batch, createExecutionContext());
  }

  const at = async (): Promise<number> =>
    Number((await sql('SELECT updated_at FROM tenants WHERE id = ?', acme))[0]?.['updated_at']);

  test('comes again until everybody in it was told', async () => {
    await sql("UPDATE tenants SET status = 'suspended', suspended_at = 5 WHERE id = ?", acme);
    await sql("UPDATE identities SET status = 'paused', pause_reason = 'tenant_suspended' WHERE id = ?", ann);
    vi.spyOn(IdentityMailbox.prototype, 'emitEvent').mockImplementationOnce(() => {
      throw new Error('away');
    });
    expect((await consume('identity.paused', 5)).retryMessages).toHaveLength(1);
    for (let n = 0; n < 2; n++) expect((await consume('identity.paused', 5)).explicitAcks).toHaveLength(1);
    expect(await eventTypes(ann)).toEqual(['identity.created', 'identity.paused']);
  });

  test.each([
    ['identity.paused', 'suspended', 'active', 'identity.resumed'],
    ['identity.resumed', 'active', 'suspended', 'identity.paused'],
  ] as const)('%s that comes after the opposite tells nobody any more', async (type, status, opposite, last) => {
    if (status === 'active') await update('suspended');
    // Nobody is told, and the job for it is late.
    const away = vi.spyOn(IdentityMailbox.prototype, 'emitEvent').mockImplementation(() => {
      throw new Error('away');
    });
    const late = vi.spyOn(env.Q_OUTBOUND, 'sendBatch').mockResolvedValue(undefined as never);
    await update(status);
    const then = await at();
    away.mockRestore();
    late.mockRestore();
    await update(opposite);
    expect((await consume(type, then)).explicitAcks).toHaveLength(1);
    const told = await eventTypes(ann);
    expect(told.at(-1)).toBe(last);
    expect(told.filter((name) => name === type)).toEqual([]);
  });

  test('of a resumption does not tell who was paused on his own since, nor who is no more', async () => {
    for (const status of ['paused', 'deleted']) {
      await sql('UPDATE identities SET status = ?, pause_reason = NULL WHERE id = ?', status, ann);
      expect((await consume('identity.resumed', await at())).explicitAcks).toHaveLength(1);
    }
    expect(await eventTypes(ann)).toEqual(['identity.created']);
  });

  test('of a suspension before the last tells nobody any more', async () => {
    const late = vi.spyOn(env.Q_OUTBOUND, 'sendBatch').mockResolvedValue(undefined as never);
    vi.spyOn(IdentityMailbox.prototype, 'emitEvent').mockImplementationOnce(() => {
      throw new Error('away');
    });
    await update('suspended');
    expect(late).toHaveBeenCalledOnce();
    const first = await at();
    await update('active');
    await update('suspended');
    expect((await consume('identity.paused', first)).explicitAcks).toHaveLength(1);
    expect((await eventTypes(ann)).slice(1)).toEqual(['identity.resumed', 'identity.paused']);
  });
});
