import { env } from 'cloudflare:workers';
import type { EventEnvelope } from '@pmail/core/events/types.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { config } from '../src/env.ts';
import { hashAddress } from '../src/ports/secrets.ts';
import { keyed, type Lab, letter, makeLab, suppressAddress } from './mail.ts';
import { call, deploy, makeKey, paths, refusal, send, sql, statuses, tenant } from './support.ts';

/** The suppression list of a tenant over HTTP: what it takes, shows, tells and writes down. */

let root: string;
let lab: Lab;

beforeEach(async () => {
  root = await deploy();
  lab = await makeLab(root);
});

const params = (address?: string): Record<string, string> => ({
  tenant_id: lab.tenant,
  ...(address === undefined ? {} : { address }),
});
const add = (body: object, status?: number) =>
  call(lab.key, 'suppressions.create', { params: params(), body, ...(status === undefined ? {} : { status }) });
const remove = (address: string, body?: object) =>
  call(lab.key, 'suppressions.delete', { params: params(address), ...(body === undefined ? {} : { body }) });
const listed = async (query: Record<string, string> = {}) =>
  (await call(lab.key, 'suppressions.list', { params: params(), query })).data;

async function told(): Promise<EventEnvelope[]> {
  const rows = await sql("SELECT payload_json FROM event_index WHERE type = 'suppression.created' ORDER BY id");
  return rows.map(({ payload_json: text }) => JSON.parse(String(text)) as EventEnvelope);
}

async function audits(): Promise<Record<string, unknown>[]> {
  return sql("SELECT * FROM audit_log WHERE target_type = 'suppression' ORDER BY created_at, id");
}

const nameOf = async (address: string): Promise<string> =>
  `ph_${(await hashAddress(config(env).hash_key, address)).slice(0, 16)}`;

describe('an address that is put on the list', () => {
  test('is shown as a hint, with its reason and note', async () => {
    const made = await add({ address: 'Jo.Reed@Example.net', reason: 'manual', note: 'asked by phone' }, 201);
    expect(made).toEqual({
      address_hint: 'j***@example.net',
      reason: 'manual',
      note: 'asked by phone',
      source_message_id: null,
      created_at: expect.stringMatching(/^\d{4}-.*Z$/) as string,
      expires_at: null,
    });
    expect(await listed()).toEqual([made]);
  });

  test('stays as it is when it is there already, in whichever spelling', async () => {
    const made = await add({ address: 'jo@bücher.example', reason: 'unsubscribe', note: 'first' }, 201);
    for (const address of ['JO@BÜCHER.example', 'jo@xn--bcher-kva.example', ' Jo@XN--Bcher-KVA.example. ']) {
      expect(await add({ address, reason: 'manual', note: 'second' }, 200)).toEqual(made);
    }
    expect(await listed()).toHaveLength(1);
    expect(await told()).toHaveLength(1);
    expect(await audits()).toHaveLength(1);
  });

  test('takes the place of an entry that would end by itself', async () => {
    await suppressAddress(lab.tenant, 'jo@example.net', 'provider');
    await sql('UPDATE suppressions SET expires_at = ?', Date.now() + 86_400_000);
    const made = await add({ address: 'jo@example.net', reason: 'unsubscribe' }, 201);
    expect(made).toMatchObject({ reason: 'unsubscribe', expires_at: null });
    expect(await add({ address: 'jo@example.net', reason: 'manual' }, 200)).toEqual(made);
    expect(await listed()).toEqual([made]);
    expect([(await told()).length, (await audits()).length]).toEqual([1, 1]);
  });

  test('is told once, as an event of the tenant that no mailbox owns, and written in the log', async () => {
    const made = await add({ address: 'jo@example.net', reason: 'manual' }, 201);
    const [event, ...more] = await told();
    expect(more).toEqual([]);
    expect(event).toEqual({
      id: expect.stringMatching(/^evt_/) as string,
      type: 'suppression.created',
      api_version: '2026-10-01',
      occurred_at: made?.created_at,
      tenant_id: lab.tenant,
      identity_id: null,
      sequence: null,
      data: { address_hint: 'j***@example.net', reason: 'manual', source_message_id: null },
    });
    const seen = await call(lab.key, 'events.get', { params: { event_id: event?.id ?? '' } });
    expect(seen).toEqual(event);
    expect(await audits()).toMatchObject([
      {
        tenant_id: lab.tenant,
        action: 'suppression.create',
        target_id: await nameOf('jo@example.net'),
        details_json: JSON.stringify({ reason: 'manual' }),
      },
    ]);
  });

  test('by many requests at once is new to one of them', async () => {
    const body = { address: 'jo@example.net', reason: 'manual' };
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => send(lab.key, 'suppressions.create', { params: params(), body })),
    );
    expect(statuses(answers)).toEqual([...Array.from({ length: 9 }, () => 200), 201]);
    expect([(await told()).length, (await audits()).length, (await listed()).length]).toEqual([1, 1, 1]);
  });

  test('under an Idempotency-Key is told as new to every repeat', async () => {
    const input = { params: params(), body: { address: 'jo@example.net', reason: 'manual' }, headers: keyed('once') };
    const first = await send(lab.key, 'suppressions.create', input);
    const again = await send(lab.key, 'suppressions.create', input);
    expect([first.status, again.status, again.headers.get('idempotent-replayed')]).toEqual([201, 201, 'true']);
    expect(await again.text()).toBe(await first.text());
    const other = { ...input, body: { ...input.body, reason: 'unsubscribe' } };
    expect(await refusal(lab.key, 'suppressions.create', other)).toMatchObject({ code: 'idempotency_conflict' });
  });

  test('is stored nowhere in a form that can be read', async () => {
    const address = 'confidential.person@example.net';
    const input = { params: params(), body: { address, reason: 'manual', note: 'x' }, headers: keyed() };
    await call(lab.key, 'suppressions.create', input);
    await listed({ address });
    await remove(address);
    const tables = await sql(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '\\_%' ESCAPE '\\'",
    );
    for (const { name } of tables) {
      const text = JSON.stringify(await sql(`SELECT * FROM ${String(name)}`));
      expect(text.toLowerCase(), String(name)).not.toContain('confidential');
    }
    expect((await sql('SELECT 1 FROM idempotency_records')).length).toBe(1);
  });

  test.each<[object, ...string[]]>([
    [{}, 'address', 'reason'],
    [{ address: 'jo@example.net' }, 'reason'],
    [{ address: 'jo@example.net', reason: 'hard_bounce' }, 'reason'],
    [{ address: 'jo@example.net', reason: 'complaint' }, 'reason'],
    [{ address: 'jo', reason: 'manual' }, 'address'],
    [{ address: '', reason: 'manual' }, 'address'],
    [{ address: '@example.net', reason: 'manual' }, 'address'],
    [{ address: 'Jo <jo@example.net>', reason: 'manual' }, 'address'],
    [{ address: 'jo@example.net,ann@example.net', reason: 'manual' }, 'address'],
    [{ address: 'josé@example.net', reason: 'manual' }, 'address'],
    [{ address: ['jo@example.net'], reason: 'manual' }, 'address'],
    [{ address: null, reason: 'manual' }, 'address'],
    [{ address: `${'a'.repeat(65)}@example.net`, reason: 'manual' }, 'address'],
    [{ address: 'jo\ud800@example.net', reason: 'manual' }, 'address'],
    [{ address: 'jo@example.net', reason: 'manual', note: '' }, 'note'],
    [{ address: 'jo@example.net', reason: 'manual', note: 'x'.repeat(501) }, 'note'],
    [{ address: 'jo@example.net', reason: 'manual', note: 'a\0b' }, 'note'],
    [{ address: 'jo@example.net', reason: 'manual', expires_at: '2030-01-01T00:00:00Z' }, 'expires_at'],
  ])('%j is refused', async (body, ...expected) => {
    const answer = await refusal(lab.key, 'suppressions.create', { params: params(), body });
    expect([answer.code, paths(answer)]).toEqual(['invalid_request', expected]);
    expect([(await listed()).length, (await told()).length, (await audits()).length]).toEqual([0, 0, 0]);
  });
});

describe('the list', () => {
  test('finds one address in any spelling, by its reason, or both', async () => {
    await suppressAddress(lab.tenant, 'reader@example.net', 'hard_bounce');
    await suppressAddress(lab.tenant, 'ann@xn--bcher-kva.example', 'complaint');
    await add({ address: 'bob@example.net', reason: 'manual' });
    for (const address of ['reader@example.net', 'READER@Example.net', 'Reader@example.NET', '"reader"@example.net.']) {
      expect(await listed({ address }), address).toMatchObject([{ reason: 'hard_bounce' }]);
    }
    expect(await listed({ address: 'ANN@Bücher.example' })).toMatchObject([{ reason: 'complaint' }]);
    expect(await listed({ address: 'nobody@example.net' })).toEqual([]);
    expect(await listed({ address: 'reader+tag@example.net' })).toEqual([]);
    expect(await listed({ reason: 'manual' })).toMatchObject([{ address_hint: 'b***@example.net' }]);
    expect(await listed({ reason: 'provider' })).toEqual([]);
    expect(await listed({ address: 'bob@example.net', reason: 'complaint' })).toEqual([]);
  });

  test.each([
    [{ address: 'nonsense' }, 'address'],
    [{ address: '' }, 'address'],
    [{ address: '%' }, 'address'],
    [{ reason: 'spam' }, 'reason'],
    [{ reason: '' }, 'reason'],
    [{ address_hash: 'x' }, 'address_hash'],
    [{ limit: '0' }, 'limit'],
  ])('refuses the filter %j', async (query, path) => {
    const answer = await refusal(lab.key, 'suppressions.list', { params: params(), query: { ...query } });
    expect([answer.code, paths(answer)]).toEqual(['invalid_request', [path]]);
  });

  test('has pages that hold everything once, newest first, and cursors that keep to their filters', async () => {
    for (let n = 0; n < 7; n++) await suppressAddress(lab.tenant, `r${n}@example.net`, 'hard_bounce');
    await add({ address: 'late@example.net', reason: 'manual' });
    const all = await listed({ limit: '100' });
    expect(all).toHaveLength(8);
    expect(all[0]?.reason).toBe('manual');
    for (const limit of [1, 3, 8]) {
      const found: unknown[] = [];
      let cursor: string | null = null;
      do {
        const query: Record<string, string> = { limit: String(limit), ...(cursor === null ? {} : { cursor }) };
        const page: { data: unknown[]; next_cursor: string | null } = await call(lab.key, 'suppressions.list', {
          params: params(),
          query,
        });
        found.push(...page.data);
        cursor = page.next_cursor;
      } while (cursor !== null);
      expect(found).toHaveLength(8);
      expect(found).toEqual(all);
    }
    const { next_cursor: cursor } = await call(lab.key, 'suppressions.list', {
      params: params(),
      query: { limit: '1' },
    });
    const other = { params: params(), query: { cursor: cursor ?? '', reason: 'manual' } };
    expect(paths(await refusal(lab.key, 'suppressions.list', other))).toEqual(['cursor']);
  });

  test('is that of one tenant, and needs the permission', async () => {
    const other = await tenant(root, 'other', { mode: 'test' });
    const theirs = await makeKey(root, { level: 'tenant', tenant_id: other.id });
    await add({ address: 'jo@example.net', reason: 'manual' });
    for (const address of ['jo@example.net', 'ann@example.net']) {
      const foreign = { tenant_id: lab.tenant, address };
      expect(await refusal(theirs, 'suppressions.delete', { params: foreign })).toEqual({ code: 'tenant_not_found' });
      const own = { tenant_id: other.id, address };
      expect(await refusal(theirs, 'suppressions.delete', { params: own })).toEqual({ code: 'suppression_not_found' });
    }
    expect((await call(theirs, 'suppressions.list', { params: { tenant_id: other.id } })).data).toEqual([]);
    expect(await listed()).toHaveLength(1);
    const weak = await makeKey(root, { level: 'tenant', tenant_id: lab.tenant, permissions: ['messages:read'] });
    expect(await refusal(weak, 'suppressions.list', { params: params() })).toEqual({
      code: 'permission_denied',
      required: 'suppressions:manage',
    });
  });
});

describe('an address that is taken off the list', () => {
  test('is gone, in whichever spelling it was named, and the log says who did it without saying whose it is', async () => {
    await add({ address: 'jo+news@bücher.example', reason: 'manual' });
    await remove('JO+News@xn--bcher-kva.EXAMPLE');
    expect(await listed()).toEqual([]);
    const [, entry] = await audits();
    expect(entry).toMatchObject({
      action: 'suppression.delete',
      target_id: await nameOf('jo+news@xn--bcher-kva.example'),
      details_json: JSON.stringify({ reason: 'manual' }),
    });
    expect(entry?.['actor_key_id']).toMatch(/^key_/);
    expect(JSON.stringify(await audits())).not.toMatch(/news|b.cher|bcher/);
    expect(await refusal(lab.key, 'suppressions.delete', { params: params('jo+news@bücher.example') })).toEqual({
      code: 'suppression_not_found',
    });
    expect(await audits()).toHaveLength(2);
    await add({ address: 'jo+news@bücher.example', reason: 'manual' }, 201);
    expect(await told()).toHaveLength(2);
  });

  test.each(['nonsense', '@example.net', '%', '%E0%A4%A', 'a/b', 'jo@example.net/x', 'jos\u00e9@example.net', '\0'])(
    '%j was never there',
    async (address) => {
      expect(await refusal(lab.key, 'suppressions.delete', { params: params(address) })).toEqual({
        code: 'suppression_not_found',
      });
    },
  );

  test('may have any character that an address may', async () => {
    for (const address of ["o'neil!#$%&*/=?^_`{|}~-@example.net", '"a b/c?d#e%2f"@example.net']) {
      await add({ address, reason: 'manual' }, 201);
      await remove(address);
      expect(await listed()).toEqual([]);
    }
  });

  test('after a complaint needs the word of the caller', async () => {
    await suppressAddress(lab.tenant, 'cross@example.net', 'complaint');
    for (const body of [undefined, {}, { confirm_complaint_removal: false }]) {
      const input = { params: params('cross@example.net'), ...(body === undefined ? {} : { body }) };
      const answer = await refusal(lab.key, 'suppressions.delete', input);
      expect([answer.code, paths(answer)]).toEqual(['invalid_request', ['confirm_complaint_removal']]);
    }
    const odd = { params: params('cross@example.net'), body: { confirm_complaint_removal: 'true' } };
    expect(paths(await refusal(lab.key, 'suppressions.delete', odd))).toEqual(['confirm_complaint_removal']);
    expect(await listed()).toHaveLength(1);
    expect(await audits()).toEqual([]);
    await remove('cross@example.net', { confirm_complaint_removal: true });
    expect(await listed()).toEqual([]);
    expect(await audits()).toHaveLength(1);
  });

  test('may be one nobody complained about, whatever is confirmed', async () => {
    await add({ address: 'jo@example.net', reason: 'unsubscribe' });
    await remove('jo@example.net', { confirm_complaint_removal: true });
    expect(await listed()).toEqual([]);
  });

  test('by many requests at once is gone once', async () => {
    await add({ address: 'jo@example.net', reason: 'manual' });
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => send(lab.key, 'suppressions.delete', { params: params('jo@example.net') })),
    );
    expect(statuses(answers)).toEqual([204, 404, 404, 404, 404, 404]);
    expect(await audits()).toHaveLength(2);
  });
});

test('an entry that has run out counts as none', async () => {
  const to = ['delivered@simulator.invalid'];
  await suppressAddress(lab.tenant, to[0] ?? '', 'complaint');
  const dry = () =>
    call(lab.key, 'messages.send', {
      params: { identity_id: lab.ann },
      body: letter({ to: [...to, 'anything@simulator.invalid'] }),
      query: { dry_run: 'true' },
    });
  expect(await dry()).toMatchObject({ recipients: [{ status: 'suppressed', reason: 'complaint' }, {}] });
  await sql('UPDATE suppressions SET expires_at = ?', Date.now() - 1);
  expect(await dry()).toMatchObject({ recipients: [{ status: 'queued', reason: null }, {}] });
  expect(await listed()).toEqual([]);
  expect(await listed({ address: to[0] ?? '' })).toEqual([]);
  expect(await refusal(lab.key, 'suppressions.delete', { params: params(to[0]) })).toEqual({
    code: 'suppression_not_found',
  });
  const made = await add({ address: to[0], reason: 'manual', note: 'again' }, 201);
  expect(made).toMatchObject({ reason: 'manual', note: 'again', expires_at: null });
  expect(await listed()).toEqual([made]);
  expect(await told()).toHaveLength(1);
});
