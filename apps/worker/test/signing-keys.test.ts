import { env } from 'cloudflare:workers';
import type { RouteAnswer } from '@pmail/contracts/routes.ts';
import { SIGNING_KIDS, SIGNING_PURPOSES, VERIFY_MS } from '@pmail/core/keys/signing.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { statement } from '@pmail/engine/sql.ts';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { runCron } from '../src/crons/index.ts';
import { config } from '../src/env.ts';
import { type KeyringWorld, signingKeys } from '../src/ports/keyring.ts';
import { newId } from '../src/ports/random.ts';
import { keyed, type Lab, makeLab } from './mail.ts';
import { keepStorage } from './storage.ts';
import {
  allOf,
  call,
  db,
  deploy,
  makeKey,
  paths,
  plantKey,
  platformKey,
  refusal,
  send,
  sql,
  statuses,
} from './support.ts';

/** Keys that sign thread tokens, links and cursors are replaced by the operator: one is in use, older ones verify. */

keepStorage();

let root: string;
let lab: Lab;

beforeAll(async () => {
  root = await deploy();
  lab = await makeLab(root);
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

type Rotated = RouteAnswer<'platform.keys.rotate'>['body'];

const rotate = (purpose: string, query: Record<string, string> = {}, headers = {}): Promise<Rotated> =>
  call(root, 'platform.keys.rotate', { params: { purpose }, query, headers });
const revoke = (purpose: string): Promise<Rotated> => rotate(purpose, { revoke_previous: 'true' });

const keysOf = (purpose: string) =>
  sql('SELECT kid, created_at, verify_until FROM signing_keys WHERE purpose = ? ORDER BY created_at, kid', purpose);
const inUse = async (purpose: string): Promise<unknown[]> =>
  (await keysOf(purpose)).filter(({ verify_until: until }) => until === null).map(({ kid }) => kid);

describe('a rotation', () => {
  test.each(SIGNING_PURPOSES)(
    'of %s keys puts a new one in use and says until when the one before verifies',
    async (purpose) => {
      await rotate(purpose);
      const [before] = await inUse(purpose);
      const made = await rotate(purpose);
      expect(made).toEqual({
        purpose,
        kid: expect.stringMatching(/^[0-9a-hjkmnp-tv-z]$/) as string,
        created_at: expect.stringMatching(/Z$/) as string,
        previous: {
          kid: before,
          verify_until: new Date(Date.parse(made.created_at) + VERIFY_MS[purpose]).toISOString(),
          revoked: false,
        },
      });
      expect(made.kid).not.toBe(before);
      expect(await inUse(purpose)).toEqual([made.kid]);
      const ended = await revoke(purpose);
      expect(ended.previous).toEqual({ kid: made.kid, verify_until: ended.created_at, revoked: true });
      const rows = await keysOf(purpose);
      // With the one that is ended every older one ends.
      for (const ofKey of [made.kid, before]) {
        expect(rows.find(({ kid }) => kid === ofKey)?.['verify_until']).toBe(Date.parse(ended.created_at));
      }
    },
  );

  test('is in the audit log, and shows no key there or anywhere', async () => {
    const made = await rotate('cursor');
    const [entry] = await sql("SELECT * FROM audit_log WHERE action = 'signing_key.rotate' ORDER BY id DESC LIMIT 1");
    expect(entry).toMatchObject({ tenant_id: null, target_type: 'signing_key', target_id: 'cursor' });
    expect(JSON.parse(String(entry?.['details_json']))).toEqual({
      kid: made.kid,
      previous: made.previous?.kid,
      revoked: false,
    });
    expect(entry?.['actor_key_id']).toBe((await call(root, 'me.get')).key_id);
    expect(entry?.['request_id']).toMatch(/^req_/);
    const [row] = await sql("SELECT ciphertext FROM signing_keys WHERE purpose = 'cursor' AND kid = ?", made.kid);
    expect(row?.['ciphertext']).toMatch(/^pm1\./);
  });

  test('where there is no key yet makes the first', async () => {
    await sql("DELETE FROM signing_keys WHERE purpose = 'thread'");
    expect(await rotate('thread')).toMatchObject({ kid: '0', previous: null });
    expect(await inUse('thread')).toEqual(['0']);
  });

  test('at the same time as others leaves one key in use, whoever wins', async () => {
    for (const count of [2, 2, 2, 6]) {
      const before = await keysOf('link');
      const answers = await Promise.all(
        Array.from({ length: count }, () => send(root, 'platform.keys.rotate', { params: { purpose: 'link' } })),
      );
      for (const status of statuses(answers)) expect([200, 503]).toContain(status);
      if (count === 2) expect(statuses(answers)).toEqual([200, 200]);
      const made = await Promise.all(answers.filter(({ ok }) => ok).map((answer) => answer.json<Rotated>()));
      expect(new Set(made.map(({ kid }) => kid)).size).toBe(made.length);
      expect(await keysOf('link')).toHaveLength(before.length + made.length);
      const [kid, ...more] = await inUse('link');
      expect(more).toEqual([]);
      expect(made.map((entry) => entry.kid)).toContain(kid);
    }
  });
});

describe('who may', () => {
  test('only platform keys with platform:ops', async () => {
    const call = { params: { purpose: 'link' } };
    for (const level of ['tenant', 'identity'] as const) {
      const owner = { tenant_id: lab.tenant, ...(level === 'identity' ? { identity_id: lab.ann } : {}) };
      const own = await makeKey(root, { level, ...owner, permissions: allOf(level) });
      expect(await refusal(own, 'platform.keys.rotate', call)).toEqual({
        code: 'permission_denied',
        required: 'platform:ops',
      });
      expect(await refusal(await plantKey({ level, ...owner }), 'platform.keys.rotate', call)).toEqual({
        code: 'scope_denied',
      });
    }
    expect(await refusal(await platformKey(['tenants:manage']), 'platform.keys.rotate', call)).toEqual({
      code: 'permission_denied',
      required: 'platform:ops',
    });
    expect(await refusal(null, 'platform.keys.rotate', call)).toEqual({ code: 'unauthenticated' });
  });

  test('a purpose that there is not is no route', async () => {
    const before = await sql('SELECT * FROM signing_keys');
    for (const purpose of ['webhook', 'Link', 'link ', 'constructor', '%00']) {
      expect(await refusal(root, 'platform.keys.rotate', { params: { purpose } })).toEqual({ code: 'route_not_found' });
    }
    expect(await sql('SELECT * FROM signing_keys')).toEqual(before);
  });

  test.each([['yes'], ['1'], ['TRUE'], ['']])('revoke_previous=%s is neither true nor false', async (value) => {
    const input = { params: { purpose: 'link' }, query: { revoke_previous: value } };
    expect(paths(await refusal(root, 'platform.keys.rotate', input))).toEqual(['revoke_previous']);
  });
});

describe('ids', () => {
  const MARGIN = 2 * LIMITS.keyring_cache_ms;

  // Those put in place here are no keys that could sign.
  afterAll(() => rotate('thread'));

  /** Puts keys of these ids in place that end at `until`, and one in use. */
  async function plant(inUseKid: string, kids: string, until: number): Promise<void> {
    const insert = (kid: string, end: number | null) =>
      statement(
        "INSERT INTO signing_keys (purpose, kid, ciphertext, created_at, verify_until) VALUES ('thread', ?, 'x', 0, ?)",
        kid,
        end,
      );
    await db.batch([
      statement("DELETE FROM signing_keys WHERE purpose = 'thread'"),
      ...Array.from(kids)
        .filter((kid) => kid !== inUseKid)
        .map((kid) => insert(kid, until)),
      insert(inUseKid, null),
    ]);
  }

  test('go round, and none is used again that still verifies or may be remembered', async () => {
    await plant('y', 'z01', Date.now() + 60_000);
    expect((await rotate('thread')).kid).toBe('2');
    await plant('y', 'z01', Date.now() - MARGIN + 60_000);
    expect((await rotate('thread')).kid).toBe('2');
    await plant('y', 'z01', Date.now() - MARGIN - 1);
    expect((await rotate('thread')).kid).toBe('z');
    expect(await inUse('thread')).toEqual(['z']);
  });

  test('key_limit_reached when each is taken, and nothing changes', async () => {
    await plant('5', SIGNING_KIDS.join(''), Date.now() + 60_000);
    const before = await keysOf('thread');
    expect(await refusal(root, 'platform.keys.rotate', { params: { purpose: 'thread' } })).toEqual({
      code: 'key_limit_reached',
      limit: 32,
    });
    expect(await keysOf('thread')).toEqual(before);
    await sql("UPDATE signing_keys SET verify_until = ? WHERE purpose = 'thread' AND kid = 'q'", Date.now() - MARGIN);
    expect((await rotate('thread')).kid).toBe('q');
  });

  test('of keys that are over are free once the cron has passed', async () => {
    await plant('5', '34', Date.now() - MARGIN - 1);
    await runCron('*/15 * * * *', env);
    expect((await keysOf('thread')).map(({ kid }) => kid)).toEqual(['5']);
  });
});

describe('an isolate that was not told', () => {
  /** Another isolate: it remembers keys by an object of its own. Counts its reads of the directory. */
  function isolate() {
    const reads = { count: 0 };
    const counting = {
      batch: (statements: Parameters<typeof db.batch>[0]) => {
        reads.count++;
        return db.batch(statements);
      },
    };
    const ring: KeyringWorld = {
      db: counting,
      master_key: config(env).master_key,
      now: () => Date.now(),
      cacheKey: {},
    };
    return { ring, reads };
  }

  test('signs with the key it remembers, and that verifies', async () => {
    const { ring } = isolate();
    const [remembered] = await signingKeys(ring, 'thread');
    await rotate('thread');
    const [still] = await signingKeys(ring, 'thread');
    expect(still?.kid).toBe(remembered?.kid);
    const here = await signingKeys(isolate().ring, 'thread', still?.kid);
    expect(here.map(({ kid, secret }) => [kid, secret])).toContainEqual([still?.kid, still?.secret]);
    vi.setSystemTime(Date.now() + LIMITS.keyring_cache_ms + 1);
    expect((await signingKeys(ring, 'thread'))[0]?.kid).toBe((await inUse('thread'))[0]);
  });

  test('looks for a key it does not know, at most once a minute', async () => {
    const { ring, reads } = isolate();
    await signingKeys(ring, 'link');
    const { kid } = await rotate('link');
    const read = reads.count;
    const unknown = '?';
    expect((await signingKeys(ring, 'link', kid)).map((key) => key.kid)).toContain(kid);
    expect(reads.count).toBe(read + 1);
    await Promise.all(Array.from({ length: 20 }, () => signingKeys(ring, 'link', unknown)));
    for (const made of ['!', 'é', '']) await signingKeys(ring, 'link', made);
    expect(reads.count).toBe(read + 1);
    vi.setSystemTime(Date.now() + LIMITS.keyring_reread_ms + 1);
    await Promise.all(Array.from({ length: 20 }, () => signingKeys(ring, 'link', unknown)));
    await signingKeys(ring, 'link', '!');
    expect(reads.count).toBe(read + 2);
    // What it does know it does not look for.
    vi.setSystemTime(Date.now() + LIMITS.keyring_reread_ms + 1);
    await signingKeys(ring, 'link', kid);
    await signingKeys(ring, 'link');
    expect(reads.count).toBe(read + 2);
  });

  test('makes no key when it only has to verify', async () => {
    await sql("DELETE FROM signing_keys WHERE purpose = 'link'");
    const { ring } = isolate();
    expect(await signingKeys(ring, 'link', '0')).toEqual([]);
    expect(await keysOf('link')).toEqual([]);
    const [made] = await signingKeys(ring, 'link');
    expect((await keysOf('link')).map(({ kid }) => kid)).toEqual([made?.kid]);
  });

  test('whose clock had run ahead reads anew', async () => {
    const { ring } = isolate();
    vi.setSystemTime(Date.now() + 3_600_000);
    await signingKeys(ring, 'link');
    vi.useRealTimers();
    const { kid } = await rotate('link');
    expect((await signingKeys(ring, 'link'))[0]?.kid).toBe(kid);
  });
});

describe('under an Idempotency-Key', () => {
  test('happens once, and is answered again', async () => {
    const headers = keyed();
    const first = await rotate('link', {}, headers);
    const before = await keysOf('link');
    const again = await send(root, 'platform.keys.rotate', { params: { purpose: 'link' }, headers });
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(await again.json()).toEqual(first);
    expect(await keysOf('link')).toEqual(before);
  });

  test('with another purpose, or revoking now, is another request', async () => {
    const headers = keyed();
    await rotate('link', {}, headers);
    const before = await sql('SELECT * FROM signing_keys ORDER BY purpose, kid');
    for (const input of [
      { params: { purpose: 'cursor' } },
      { params: { purpose: 'link' }, query: { revoke_previous: 'true' } },
      { params: { purpose: 'link' }, query: { revoke_previous: 'false' } },
    ]) {
      expect(await refusal(root, 'platform.keys.rotate', { ...input, headers })).toMatchObject({
        code: 'idempotency_conflict',
      });
    }
    expect(await sql('SELECT * FROM signing_keys ORDER BY purpose, kid')).toEqual(before);
  });

  test('by many at once happens once', async () => {
    const headers = keyed();
    const before = await keysOf('link');
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => send(root, 'platform.keys.rotate', { params: { purpose: 'link' }, headers })),
    );
    for (const status of statuses(answers)) expect([200, 409]).toContain(status);
    expect(statuses(answers)[0]).toBe(200);
    expect(await keysOf('link')).toHaveLength(before.length + 1);
  });

  test('is in progress for a minute, then taken over', async () => {
    const id = newId('key', Date.now());
    const key = await plantKey({ id });
    const headers = keyed();
    const input = { params: { purpose: 'link' }, headers };
    await call(key, 'platform.keys.rotate', input);
    const running =
      "UPDATE idempotency_records SET status = 'in_progress', response_body = NULL, created_at = ? WHERE key_id = ?";
    await sql(running, Date.now() - 59_000, id);
    expect(await refusal(key, 'platform.keys.rotate', input)).toMatchObject({ code: 'request_in_progress' });
    await sql(running, Date.now() - 60_000, id);
    const before = await keysOf('link');
    const taken = await send(key, 'platform.keys.rotate', input);
    expect([taken.status, taken.headers.get('idempotent-replayed')]).toEqual([200, null]);
    expect(await keysOf('link')).toHaveLength(before.length + 1);
    const [record] = await sql('SELECT status, response_body FROM idempotency_records WHERE key_id = ?', id);
    expect(record?.['status']).toBe('completed');
    expect(Object.keys(JSON.parse(String(record?.['response_body'])) as object).sort()).toEqual([
      'created_at',
      'kid',
      'previous',
      'purpose',
    ]);
  });

  test('is free again after a refusal', async () => {
    const headers = keyed();
    const { ok } = await send(root, 'platform.keys.rotate', {
      params: { purpose: 'link' },
      query: { revoke_previous: 'x' },
      headers,
    });
    expect(ok).toBe(false);
    await rotate('link', {}, headers);
  });
});
