import type { RouteId } from '@pmail/contracts/routes.ts';
import { statement } from '@pmail/engine/sql.ts';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { newId } from '../src/ports/random.ts';
import { accepted, arrive, atRest, inMailbox, type Lab, letter, makeLab, person, until, waiting } from './mail.ts';
import { keepStorage } from './storage.ts';
import { call, db, deploy, makeKey, paths, refusal, send, sql } from './support.ts';

/** Lists of messages, threads and events: what a filter leaves, and that pages hold everything once. */

keepStorage();

let root: string;
let lab: Lab;
/** Has seven messages that were sent in the same millisecond, in as many threads. */
let twin: string;
/** Has mail of every kind. */
let desk: string;
const ids: Record<string, string> = {};

beforeAll(async () => {
  root = await deploy();
  lab = await makeLab(root);
  twin = await person(root, lab.tenant, 'twin');
  desk = await person(root, lab.tenant, 'desk');
  await atRest(twin, desk);
  vi.setSystemTime(Date.now());
  for (let n = 0; n < 7; n++)
    await accepted(lab.key, twin, letter({ to: ['reject@simulator.invalid'], subject: `N${n}`, text: `number ${n}` }));
  vi.useRealTimers();
  const mail = (name: string, subject: string, text: string) =>
    arrive(
      desk,
      `From: ${name} <${name}@example.org>\nMessage-ID: <${name}@example.org>\nSubject: ${subject}\n\n${text}`,
    );
  ids['lamp'] = await mail('lara', 'Broken lamp', 'The lamp in room five does not work.');
  ids['sofa'] = await mail('sven', 'Sofa', 'Is the SOFA still for sale? Größe?');
  const read = await get(ids['lamp']);
  ids['lampThread'] = read.thread_id;
  ids['sofaThread'] = (await get(ids['sofa'])).thread_id;
  ids['answer'] = (
    await waiting(
      lab.key,
      desk,
      letter({ thread_id: ids['lampThread'], subject: 'Re', text: 'Fixed', labels: ['done'] }),
    )
  ).id;
  await call(lab.key, 'messages.cancel', { params: { identity_id: desk, message_id: ids['answer'] } });
  await call(lab.key, 'messages.update', {
    params: { identity_id: desk, message_id: ids['lamp'] },
    body: { read: true, labels_add: ['repairs'] },
  });
  await until(async () => {
    const { data } = await call(lab.key, 'messages.list', { params: { identity_id: twin } });
    expect(new Set(data.map(({ status }) => status))).toEqual(new Set(['rejected']));
  });
  await atRest(twin, desk);
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const get = (message_id: string) => call(lab.key, 'messages.get', { params: { identity_id: desk, message_id } });

const listed = async (query: Record<string, string>, identity_id = desk): Promise<string[]> =>
  (await call(lab.key, 'messages.list', { params: { identity_id }, query })).data.map(({ id }) => id);

type Paged = 'messages.list' | 'threads.list' | 'events.list';

/** The ids of every page of a list, each page of `limit`. */
async function pages(route: Paged, limit: number, query: Record<string, string> = {}): Promise<string[][]> {
  const found: string[][] = [];
  let cursor: string | null = null;
  do {
    const page: { data: { id: string }[]; next_cursor: string | null } = await call(lab.key, route, {
      params: { identity_id: twin },
      query: { ...query, limit: String(limit), ...(cursor === null ? {} : { cursor }) },
    });
    found.push(page.data.map(({ id }) => id));
    cursor = page.next_cursor;
  } while (cursor !== null);
  return found;
}

describe('pages', () => {
  const lists: [Paged, Record<string, string>][] = [
    ['messages.list', {}],
    ['threads.list', {}],
    ['events.list', {}],
  ];

  test.each(lists)('of %s hold everything once and in order, whatever their size', async (route, query) => {
    const filter = route === 'events.list' ? { ...query, identity_id: twin, type: 'message.rejected' } : query;
    const [all = []] = await pages(route, 100, filter);
    expect(all).toHaveLength(7);
    expect(all).toEqual([...all].sort().reverse());
    for (const limit of [1, 2, 3, 6, 7]) {
      const found = await pages(route, limit, filter);
      expect(found.flat()).toEqual(all);
      expect(found.map((page) => page.length)).toEqual(
        Array.from({ length: Math.ceil(7 / limit) }, (_, n) => Math.min(limit, 7 - n * limit)),
      );
    }
  });

  test('have 25 members unless said otherwise', async () => {
    const many = await person(root, lab.tenant, 'many');
    await Promise.all(Array.from({ length: 26 }, () => accepted(lab.key, many)));
    for (const route of ['messages.list', 'threads.list'] as const) {
      const { data, next_cursor } = await call(lab.key, route, { params: { identity_id: many } });
      expect([data.length, next_cursor === null]).toEqual([25, false]);
    }
  });

  test('go on from where they were when something new came in between', async () => {
    const own = await person(root, lab.tenant, 'moving');
    for (const subject of ['a', 'b', 'c']) await accepted(lab.key, own, letter({ subject }));
    const params = { identity_id: own };
    const first = await call(lab.key, 'messages.list', { params, query: { limit: '2' } });
    await accepted(lab.key, own, letter({ subject: 'd' }));
    const query = { limit: '2', cursor: first.next_cursor ?? '' };
    const rest = await call(lab.key, 'messages.list', { params, query });
    expect([...first.data, ...rest.data].map(({ subject }) => subject)).toEqual(['c', 'b', 'a']);
  });

  test('of a thread go from the oldest message on, and may change their size', async () => {
    const own = await person(root, lab.tenant, 'talker');
    const thread = await arrive(own, 'From: a@example.org\nMessage-ID: <0@x.example>\nSubject: T\n\n0');
    for (const n of [1, 2, 3, 4]) {
      await arrive(
        own,
        `From: a@example.org\nMessage-ID: <${n}@x.example>\nIn-Reply-To: <0@x.example>\nSubject: T\n\n${n}`,
      );
    }
    const message = await call(lab.key, 'messages.get', { params: { identity_id: own, message_id: thread } });
    const params = { identity_id: own, thread_id: message.thread_id };
    const read = (query: Record<string, string>) => call(lab.key, 'threads.get', { params, query });
    const first = await read({ messages_limit: '2' });
    expect(first).toMatchObject({ message_count: 5, unread_count: 5, subject: 'T' });
    const rest = await read({ messages_limit: '3', cursor: first.next_cursor ?? '' });
    const texts = [...first.messages, ...rest.messages].map(({ extracted_text }) => extracted_text?.trim());
    expect(texts).toEqual(['0', '1', '2', '3', '4']);
    expect(rest.next_cursor).toBeNull();
    expect((await read({})).messages).toHaveLength(5);
  });
});

describe('a cursor', () => {
  const query = { limit: '2' };
  const first = async (route: Paged): Promise<string> =>
    (await call(lab.key, route, { params: { identity_id: twin }, query })).next_cursor ?? '';
  const use = (key: string, route: RouteId, cursor: string, more: Record<string, string> = {}, identity_id = twin) =>
    refusal(key, route, { params: { identity_id }, query: { ...query, ...more, cursor } });

  test.each<Paged>(['messages.list', 'threads.list', 'events.list'])(
    "of %s is no other list's and nobody else's",
    async (route) => {
      const cursor = await first(route);
      const other = await makeKey(root, { level: 'tenant', tenant_id: lab.tenant });
      const wrong = [
        await use(other, route, cursor),
        await use(root, route, cursor),
        await use(lab.key, route === 'threads.list' ? 'messages.list' : 'threads.list', cursor),
        await use(lab.key, route, cursor, { before: '2030-01-01T00:00:00Z' }),
        ...(route === 'events.list' ? [] : [await use(lab.key, route, cursor, {}, desk)]),
      ];
      for (const answer of wrong) expect([answer.code, paths(answer)]).toEqual(['invalid_request', ['cursor']]);
    },
  );

  test('is refused when any of its characters was changed', async () => {
    const cursor = await first('messages.list');
    const positions = [0, 1, 2, 3, 10, Math.floor(cursor.length / 2), cursor.length - 8];
    const changed = positions.map(
      (at) => cursor.slice(0, at) + (cursor[at] === 'A' ? 'B' : 'A') + cursor.slice(at + 1),
    );
    for (const text of [
      ...changed,
      cursor.slice(0, -4),
      `${cursor}AAAA`,
      cursor.slice(2),
      'c_',
      'c_0',
      'x',
      '%00',
      cursor.toUpperCase(),
    ]) {
      const answer = await use(lab.key, 'messages.list', text);
      expect([answer.code, paths(answer)], text).toEqual(['invalid_request', ['cursor']]);
    }
    expect(
      (await send(lab.key, 'messages.list', { params: { identity_id: twin }, query: { ...query, cursor } })).status,
    ).toBe(200);
  });

  test('says nothing about the messages in the clear', async () => {
    const cursor = await first('messages.list');
    expect(cursor).toMatch(/^c_[0-9a-z][A-Za-z0-9_-]+$/);
  });
});

describe('messages', () => {
  test('by direction, status, label and thread', async () => {
    const { lamp = '', sofa = '', answer = '' } = ids;
    expect(await listed({})).toEqual([answer, sofa, lamp]);
    expect(await listed({ direction: 'inbound' })).toEqual([sofa, lamp]);
    expect(await listed({ direction: 'outbound' })).toEqual([answer]);
    expect(await listed({ status: 'canceled' })).toEqual([answer]);
    expect(await listed({ status: 'received', label: 'repairs' })).toEqual([lamp]);
    expect(await listed({ label: 'done' })).toEqual([answer]);
    expect(await listed({ label: 'none' })).toEqual([]);
    expect(await listed({ thread_id: ids['lampThread'] ?? '' })).toEqual([answer, lamp]);
    expect(await listed({ thread_id: ids['sofaThread'] ?? '', direction: 'outbound' })).toEqual([]);
    for (const thread_id of ['nonsense', 'thr_01JABCDEFGHJKMNPQRSTVWXYZ0'])
      expect(await listed({ thread_id })).toEqual([]);
  });

  test('by time, both ends exclusive, with any offset', async () => {
    const { received_at: at } = await get(ids['sofa'] ?? '');
    expect(await listed({ after: at })).toEqual([ids['answer']]);
    expect(await listed({ before: at })).toEqual([ids['lamp']]);
    const shifted = `${new Date(Date.parse(at) + 3_600_000 - 1).toISOString().slice(0, -1)}+01:00`;
    expect(await listed({ after: shifted, direction: 'inbound' })).toEqual([ids['sofa']]);
  });

  test('by words that must all occur, in any case, as words and never as a query', async () => {
    expect(await listed({ q: 'LAMP room' })).toEqual([ids['lamp']]);
    expect(await listed({ q: 'lamp sofa' })).toEqual([]);
    expect(await listed({ q: 'grosse' })).toEqual([]);
    expect(await listed({ q: 'große' })).toEqual([ids['sofa']]);
    expect(await listed({ q: 'GROSSE OR sofa' })).toEqual([]);
    expect(await listed({ q: 'sven' })).toEqual([ids['sofa']]);
    for (const q of ['"', '*', 'NEAR(', 'subject:lamp AND', "'; DROP TABLE messages", ')(', '-lamp', '^']) {
      const response = await send(lab.key, 'messages.list', { params: { identity_id: desk }, query: { q } });
      expect(response.status, q).toBe(200);
    }
    expect(await listed({ q: 'number', limit: '100' }, twin)).toHaveLength(7);
  });
});

describe('threads', () => {
  const threads = async (query: Record<string, string>): Promise<string[]> =>
    (await call(lab.key, 'threads.list', { params: { identity_id: desk }, query })).data.map(({ id }) => id);

  test('by what is in them', async () => {
    const [lamp, sofa] = [ids['lampThread'], ids['sofaThread']];
    expect(await threads({})).toEqual([lamp, sofa]);
    expect(await threads({ is_unread: 'true' })).toEqual([sofa]);
    expect(await threads({ is_unread: 'false' })).toEqual([lamp]);
    expect(await threads({ direction: 'outbound' })).toEqual([lamp]);
    expect(await threads({ direction: 'inbound' })).toEqual([sofa]);
    expect(await threads({ label: 'repairs' })).toEqual([lamp]);
    expect(await threads({ archived: 'true' })).toEqual([]);
    const { received_at } = await get(ids['answer'] ?? '');
    expect(await threads({ before: received_at })).toEqual([sofa]);
    expect(await threads({ after: received_at })).toEqual([]);
  });

  test('that hold only mail held back are not there', async () => {
    const own = await person(root, lab.tenant, 'spammed');
    const id = await arrive(own, 'From: a@example.org\nSubject: S\n\nx');
    const { thread_id } = await call(lab.key, 'messages.get', { params: { identity_id: own, message_id: id } });
    await inMailbox(own, "UPDATE messages SET status = 'hidden'");
    await inMailbox(own, 'UPDATE threads SET message_count = 0, unread_count = 0');
    expect((await call(lab.key, 'threads.list', { params: { identity_id: own } })).data).toEqual([]);
    const params = { identity_id: own, thread_id };
    expect(await refusal(lab.key, 'threads.get', { params })).toEqual({ code: 'thread_not_found' });
  });
});

describe('events', () => {
  const events = async (key: string, query: Record<string, string> = {}) =>
    (await call(key, 'events.list', { query: { limit: '100', ...query } })).data;

  test('by identity, type and time; with their data where it is asked for, as they were told', async () => {
    const [told] = await events(lab.key, { identity_id: desk, type: 'message.canceled' });
    expect(told).toMatchObject({ type: 'message.canceled', identity_id: desk, tenant_id: lab.tenant });
    expect(told).not.toHaveProperty('data');
    const [full] = await events(lab.key, { identity_id: desk, type: 'message.canceled', include: 'data' });
    expect(full).toEqual({ ...told, data: { message_id: ids['answer'] } });
    const event_id = told?.id ?? '';
    expect(await call(lab.key, 'events.get', { params: { event_id } })).toEqual(full);
    const [row] = await inMailbox(desk, 'SELECT payload_json FROM outbox WHERE event_id = ?', event_id);
    expect(JSON.parse(row?.['payload_json'] as string)).toEqual(full);
    const types = (await events(lab.key, { identity_id: desk, type: 'message.received,identity.created' })).map(
      ({ type }) => type,
    );
    expect(types).toEqual(['message.received', 'message.received', 'identity.created']);
    const at = told?.occurred_at ?? '';
    expect(await events(lab.key, { identity_id: desk, after: at })).toEqual([]);
    const before = await events(lab.key, { identity_id: desk, before: at });
    expect(before.map(({ id }) => id)).not.toContain(event_id);
    const sequences = (await events(lab.key, { identity_id: desk })).map(({ sequence }) => sequence ?? 0);
    expect(sequences).toEqual([...sequences].sort((a, b) => b - a));
  });

  test('each key sees its own: everything, its tenant, its identity, and of mail only with the permission', async () => {
    const other = await makeLab(root, 'other');
    await atRest(other.ann);
    const own = await makeKey(root, { level: 'identity', identity_id: desk });
    const seen = async (key: string) => new Set((await events(key)).map(({ identity_id }) => identity_id));
    expect(await seen(own)).toEqual(new Set([desk]));
    expect((await seen(lab.key)).has(other.ann)).toBe(false);
    expect((await seen(root)).has(other.ann)).toBe(true);
    expect((await events(root, { tenant_id: other.tenant })).every(({ tenant_id }) => tenant_id === other.tenant)).toBe(
      true,
    );
    for (const tenant_id of ['ten_01JABCDEFGHJKMNPQRSTVWXYZ0', 'x'])
      expect(await refusal(root, 'events.list', { query: { tenant_id } })).toEqual({ code: 'tenant_not_found' });
    const blind = await makeKey(root, { level: 'tenant', tenant_id: lab.tenant, permissions: ['webhooks:manage'] });
    expect(new Set((await events(blind, { identity_id: desk })).map(({ type }) => type))).toEqual(
      new Set(['identity.created']),
    );
  });

  test('of held mail need the permission to review; those of the platform hold their bytes in the directory', async () => {
    const at = Date.now();
    const row = (id: string, type: string, owner: string, payload: string | null) =>
      statement(
        `INSERT INTO event_index (id, tenant_id, identity_id, type, owner_kind, owner_id, payload_json, occurred_at)
         VALUES (?, ?, NULL, ?, ?, '', ?, ?)`,
        id,
        lab.tenant,
        type,
        owner,
        payload,
        at,
      );
    const [held, policy] = [newId('evt', at), newId('evt', at)];
    const envelope = {
      api_version: '2026-10-01',
      occurred_at: new Date(at).toISOString(),
      tenant_id: lab.tenant,
      identity_id: null,
      sequence: null,
    };
    const told = { id: policy, type: 'tenant.policy_updated', ...envelope, data: { fields: ['max_recipients'] } };
    await db.batch([
      row(
        held,
        'message.quarantined',
        'platform',
        JSON.stringify({ id: held, type: 'message.quarantined', ...envelope, data: {} }),
      ),
      row(policy, 'tenant.policy_updated', 'platform', JSON.stringify(told)),
    ]);
    expect(await call(lab.key, 'events.get', { params: { event_id: policy } })).toEqual(told);
    const blind = await makeKey(root, {
      level: 'tenant',
      tenant_id: lab.tenant,
      permissions: ['webhooks:read', 'messages:read'],
    });
    expect((await events(lab.key, { type: 'message.quarantined' })).map(({ id }) => id)).toEqual([held]);
    expect(await events(blind, { type: 'message.quarantined' })).toEqual([]);
    expect(await refusal(blind, 'events.get', { params: { event_id: held } })).toEqual({ code: 'event_not_found' });
    const [narrow] = await events(await makeKey(root, { level: 'identity', identity_id: desk }), {
      type: 'tenant.policy_updated',
    });
    expect(narrow).toBeUndefined();
  });

  test('whose mailbox has let them go are left out of a list with data', async () => {
    const own = await person(root, lab.tenant, 'forgetful');
    await atRest(own);
    const [event] = await events(lab.key, { identity_id: own });
    await inMailbox(own, 'DELETE FROM outbox');
    expect(await events(lab.key, { identity_id: own, include: 'data' })).toEqual([]);
    expect(await refusal(lab.key, 'events.get', { params: { event_id: event?.id ?? '' } })).toEqual({
      code: 'event_not_found',
    });
    await sql('DELETE FROM event_index WHERE identity_id = ?', own);
  });

  test('of the system identity show to platform keys alone', async () => {
    const system = await person(root, lab.tenant, 'house');
    await atRest(system);
    await sql('UPDATE identities SET is_system = 1 WHERE id = ?', system);
    const [event] = await events(root, { identity_id: system });
    expect(event?.type).toBe('identity.created');
    const created = await events(lab.key, { type: 'identity.created' });
    expect(created.map(({ identity_id: id }) => id)).toContain(desk);
    expect(created.map(({ identity_id: id }) => id)).not.toContain(system);
    const params = { event_id: event?.id ?? '' };
    expect(await refusal(lab.key, 'events.get', { params })).toEqual({ code: 'event_not_found' });
    expect((await call(root, 'events.get', { params })).id).toBe(event?.id);
    await sql('UPDATE identities SET is_system = 0 WHERE id = ?', system);
  });
});
