import { env } from 'cloudflare:workers';
import { beforeEach, describe, expect, test } from 'vitest';
import { config } from '../src/env.ts';
import { hashAddress } from '../src/ports/secrets.ts';
import { call, deploy, makeKey, paths, refusal, send, sql, statuses, tenant } from './support.ts';

/** The allow and block lists of a tenant over HTTP. */

let key: string;
let root: string;
let id: string;

beforeEach(async () => {
  root = await deploy();
  id = (await tenant(root, 'acme')).id;
  key = await makeKey(root, { level: 'tenant', tenant_id: id });
});

const at = (entry?: string, direction = 'send', kind = 'block'): Record<string, string> => ({
  tenant_id: id,
  direction,
  kind,
  ...(entry === undefined ? {} : { entry }),
});
const put = (entry: string, body?: object, status?: number) =>
  call(key, 'lists.put', {
    params: at(entry),
    ...(body === undefined ? {} : { body }),
    ...(status === undefined ? {} : { status }),
  });
const listed = async (direction = 'send', kind = 'block') =>
  (await call(key, 'lists.list', { params: at(undefined, direction, kind) })).data;

describe('an entry', () => {
  test('is new once; putting it again changes its note and nothing else', async () => {
    const made = await put('jo@example.net', { note: 'rude' }, 201);
    expect(made).toEqual({
      direction: 'send',
      kind: 'block',
      entry: 'jo@example.net',
      note: 'rude',
      created_at: expect.stringMatching(/Z$/) as string,
    });
    expect(await put('jo@example.net', { note: 'very rude' }, 200)).toEqual({ ...made, note: 'very rude' });
    expect(await put('jo@example.net', undefined, 200)).toEqual({ ...made, note: null });
    expect(await put('jo@example.net', { note: null }, 200)).toEqual({ ...made, note: null });
    expect(await listed()).toHaveLength(1);
  });

  test.each([
    ['jo@example.net', ['JO@Example.NET', ' jo@example.net. ', '"jo"@example.net']],
    ['@example.net', ['@EXAMPLE.net', '@example.net.']],
    ['jo@xn--bcher-kva.example', ['JO@BÜCHER.example', 'jo@XN--bcher-kva.example']],
    ['@xn--bcher-kva.example', ['@bücher.example', '@BÜCHER.EXAMPLE']],
    ['a/b?c#d%e@example.net', ['A/B?C#D%E@example.net']],
  ])('%s is the same in every spelling', async (entry, spellings) => {
    expect(await put(spellings[0] ?? '', {}, 201)).toMatchObject({ entry });
    for (const spelling of [entry, ...spellings]) {
      await put(spelling, {}, 200);
      expect(await call(key, 'lists.get', { params: at(spelling) })).toMatchObject({ entry });
    }
    await call(key, 'lists.delete', { params: at(spellings.at(-1)) });
    expect(await listed()).toEqual([]);
  });

  test.each([
    'nonsense',
    '@',
    '@@example.net',
    'jo@',
    '@localhost',
    '@*.example.net',
    '@192.0.2.1',
    'Jo <jo@example.net>',
    'josé@example.net',
    'jo@example.net,ann@example.net',
    '%',
    '%E0%A4%A',
    '\0',
    `@${'a'.repeat(300)}.example`,
  ])('%j is none', async (entry) => {
    const answer = await refusal(key, 'lists.put', { params: at(entry) });
    expect([answer.code, paths(answer)]).toEqual(['invalid_request', ['entry']]);
    for (const route of ['lists.get', 'lists.delete'] as const) {
      expect(await refusal(key, route, { params: at(entry) })).toEqual({ code: 'list_entry_not_found' });
    }
    expect(await listed()).toEqual([]);
  });

  test.each<[object, string]>([
    [{ note: '' }, 'note'],
    [{ note: 5 }, 'note'],
    [{ note: 'a\nb' }, 'note'],
    [{ note: 'x'.repeat(501) }, 'note'],
    [{ entry: '@example.org' }, 'entry'],
  ])('is not put with %j', async (body, path) => {
    const answer = await refusal(key, 'lists.put', { params: at('jo@example.net'), body });
    expect([answer.code, paths(answer)]).toEqual(['invalid_request', [path]]);
    expect(await listed()).toEqual([]);
  });

  test('that is not there is found nowhere, and its removal is no event', async () => {
    for (const entry of ['jo@example.net', '@example.net']) {
      for (const route of ['lists.get', 'lists.delete'] as const) {
        expect(await refusal(key, route, { params: at(entry) })).toEqual({ code: 'list_entry_not_found' });
      }
    }
    expect(await sql("SELECT * FROM audit_log WHERE target_type = 'list_entry'")).toEqual([]);
  });

  test('is in the log with what was done, but not by its name', async () => {
    await put('jo@example.net', { note: 'rude' });
    await put('jo@example.net');
    await call(key, 'lists.delete', { params: at('JO@example.net') });
    const rows = await sql("SELECT * FROM audit_log WHERE target_type = 'list_entry' ORDER BY created_at, id");
    expect(rows.map(({ action }) => action)).toEqual(['list_entry.put', 'list_entry.put', 'list_entry.delete']);
    const hash = await hashAddress(config(env).hash_key, 'jo@example.net');
    for (const row of rows) {
      expect(row).toMatchObject({
        tenant_id: id,
        target_id: `ph_${hash.slice(0, 16)}`,
        details_json: JSON.stringify({ direction: 'send', kind: 'block' }),
      });
    }
    expect(JSON.stringify(rows)).not.toMatch(/jo@|rude/);
  });
});

describe('a list', () => {
  test('is one of four, each with entries of its own', async () => {
    const lists: [string, string][] = [
      ['send', 'allow'],
      ['send', 'block'],
      ['receive', 'allow'],
      ['receive', 'block'],
    ];
    for (const [direction, kind] of lists) {
      const params = at(`${direction}@${kind}.example`, direction, kind);
      await call(key, 'lists.put', { params, status: 201 });
    }
    for (const [direction, kind] of lists) {
      expect(await listed(direction, kind)).toMatchObject([{ direction, kind, entry: `${direction}@${kind}.example` }]);
    }
  });

  test.each([
    ['Send', 'block'],
    ['sending', 'block'],
    ['send', 'deny'],
    ['allow', 'send'],
    ['%73end', 'block '],
  ])('%s/%s is no route', async (direction, kind) => {
    for (const route of ['lists.list', 'lists.get', 'lists.put', 'lists.delete'] as const) {
      const params = at('jo@example.net', direction, kind);
      expect(await refusal(key, route, { params })).toEqual({ code: 'route_not_found' });
    }
  });

  test('has pages that hold everything once, newest first', async () => {
    for (let n = 0; n < 6; n++) await put(`r${n}@example.net`);
    await sql('UPDATE sender_lists SET created_at = 5');
    await put('@example.org');
    const all = (await listed()).map(({ entry }) => entry);
    expect(all).toEqual(['@example.org', ...[5, 4, 3, 2, 1, 0].map((n) => `r${n}@example.net`)]);
    for (const limit of ['1', '2', '7']) {
      const found: string[] = [];
      let cursor: string | null = null;
      do {
        const query: Record<string, string> = { limit, ...(cursor === null ? {} : { cursor }) };
        const page: { data: { entry: string }[]; next_cursor: string | null } = await call(key, 'lists.list', {
          params: at(),
          query,
        });
        found.push(...page.data.map(({ entry }) => entry));
        cursor = page.next_cursor;
      } while (cursor !== null);
      expect(found).toEqual(all);
    }
    const { next_cursor: cursor } = await call(key, 'lists.list', { params: at(), query: { limit: '1' } });
    const other = { params: at(undefined, 'send', 'allow'), query: { cursor: cursor ?? '' } };
    expect(paths(await refusal(key, 'lists.list', other))).toEqual(['cursor']);
  });

  test("is nobody else's, and needs the permission", async () => {
    await put('jo@example.net');
    const other = await tenant(root, 'other');
    const theirs = await makeKey(root, { level: 'tenant', tenant_id: other.id });
    for (const route of ['lists.list', 'lists.get', 'lists.put', 'lists.delete'] as const) {
      const params = at('jo@example.net');
      expect(await refusal(theirs, route, { params })).toEqual({ code: 'tenant_not_found' });
    }
    const own = { tenant_id: other.id, direction: 'send', kind: 'block', entry: 'jo@example.net' };
    expect(await refusal(theirs, 'lists.get', { params: own })).toEqual({ code: 'list_entry_not_found' });
    expect((await call(root, 'lists.list', { params: at() })).data).toHaveLength(1);
    const weak = await makeKey(root, { level: 'tenant', tenant_id: id, permissions: ['policy:write'] });
    expect(await refusal(weak, 'lists.list', { params: at() })).toMatchObject({ code: 'permission_denied' });
  });

  test('takes one entry from many requests at once', async () => {
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => send(key, 'lists.put', { params: at('jo@example.net') })),
    );
    expect(statuses(answers)).toEqual([...Array.from({ length: 7 }, () => 200), 201]);
    expect(await listed()).toHaveLength(1);
  });
});
