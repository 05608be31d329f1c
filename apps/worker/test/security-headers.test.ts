import { createExecutionContext } from 'cloudflare:test';
import { env, exports } from 'cloudflare:workers';
import { type Handlers, ROUTE_IDS } from '@pmail/contracts/routes.ts';
import type { IdentityId } from '@pmail/core/ids.ts';
import { mintLink } from '@pmail/core/links.ts';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { config } from '../src/env.ts';
import type { RequestContext } from '../src/http/context.ts';
import { createApp } from '../src/http/router.ts';
import { signingKeys } from '../src/ports/keyring.ts';
import { accepted, arrive, keyed, type Lab, letter, makeLab, post, type Sent, until } from './mail.ts';
import { keepStorage } from './storage.ts';
import { call, db, deploy, identity, makeKey, requestOf, send, sendBytes } from './support.ts';

/** What stands around every answer, and what is never said: to other origins, and to the log. */

keepStorage();

let root: string;
let lab: Lab;

beforeAll(async () => {
  root = await deploy();
  lab = await makeLab(root);
});

afterEach(() => {
  vi.restoreAllMocks();
});

const FORGED = { 'request-id': 'req_mine', 'x-request-id': 'req_mine', 'cf-ray': 'mine', traceparent: 'mine' };
const fetchPath = (path: string, init: RequestInit = {}) => exports.default.fetch(`https://api.example${path}`, init);

/** One answer of every kind. */
async function answers(headers: Record<string, string>): Promise<Record<string, Response>> {
  const messages = { params: { identity_id: lab.ann } };
  const broken = createApp(
    Object.fromEntries(
      ROUTE_IDS.map((id) => [id, () => Promise.reject(new Error('x'))]),
    ) as unknown as Handlers<RequestContext>,
  );
  vi.spyOn(console, 'error').mockReturnValue();
  const busy = vi.spyOn(env.RL_API, 'limit').mockResolvedValueOnce({ success: false });
  const limited = await send(lab.key, 'me.get', { headers });
  busy.mockRestore();
  return {
    limited,
    health: await send(null, 'health.get', { headers }),
    openapi: await send(null, 'openapi.get', { headers }),
    me: await send(lab.key, 'me.get', { headers }),
    list: await send(lab.key, 'messages.list', { ...messages, headers }),
    sent: await send(lab.key, 'messages.send', { ...messages, body: letter(), headers: { ...keyed(), ...headers } }),
    revoked: await send(lab.key, 'keys.revoke', { params: { key_id: await spare() }, headers }),
    invalid: await send(lab.key, 'messages.list', { ...messages, query: { limit: 'x' }, headers }),
    anonymous: await send(null, 'me.get', { headers }),
    denied: await send(await weak(), 'messages.list', { ...messages, headers }),
    missing: await send(lab.key, 'messages.list', { params: { identity_id: 'idn_x' }, headers }),
    unknown: await fetchPath('/v1/nothing', { headers }),
    method: await fetchPath('/v1/me', { method: 'DELETE', headers }),
    preflight: await fetchPath('/v1/me', {
      method: 'OPTIONS',
      headers: { ...headers, 'access-control-request-method': 'GET' },
    }),
    large: await sendBytes(lab.key, 'messages.send', ' '.repeat(8 << 20), {
      ...messages,
      headers: { ...keyed(), ...headers },
    }),
    fault: await broken.fetch(requestOf(lab.key, 'me.get', { headers }), env, createExecutionContext()),
  };
}

const weak = () => makeKey(root, { level: 'tenant', tenant_id: lab.tenant, permissions: ['domains:read'] });
const spare = async () => (await call(await weak(), 'me.get')).key_id;

describe('every answer', () => {
  test("has a request id of its own, never the caller's, and an error names it", async () => {
    const seen = new Set<string>();
    for (const [kind, response] of Object.entries(await answers(FORGED))) {
      const id = response.headers.get('request-id') ?? '';
      expect(id, kind).toMatch(/^req_[0-9A-HJKMNP-TV-Z]{26}$/);
      expect(response.headers.get('x-request-id')).toBe(id);
      seen.add(id);
      const text = await response.text();
      if (response.status >= 400) expect(JSON.parse(text)).toMatchObject({ error: { request_id: id } });
      expect(text).not.toContain('req_mine');
    }
    expect(seen.size).toBe(16);
  });

  test('is not to be stored, sniffed, framed or referred from, goes over TLS, and sets no cookie', async () => {
    for (const [kind, { headers }] of Object.entries(await answers({}))) {
      expect(Object.fromEntries(headers), kind).toMatchObject({
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
        'referrer-policy': 'no-referrer',
        'strict-transport-security': 'max-age=63072000; includeSubDomains',
      });
      for (const name of ['set-cookie', 'server', 'x-powered-by'])
        expect(headers.has(name), `${kind} ${name}`).toBe(false);
    }
  });

  test('says nothing to other origins', async () => {
    for (const [kind, response] of Object.entries(await answers({ origin: 'https://evil.example' }))) {
      const told = [...response.headers.keys()].filter((name) => name.startsWith('access-control-') || name === 'vary');
      expect(told, kind).toEqual([]);
      if (kind === 'preflight') expect(response.status).toBe(405);
    }
  });

  test('that is JSON says so, and one without a body has none', async () => {
    for (const [kind, response] of Object.entries(await answers({}))) {
      const text = await response.text();
      if (kind === 'revoked') expect([response.status, text]).toEqual([204, '']);
      else expect(response.headers.get('content-type'), kind).toMatch(/^application\/json(; charset=utf-8)?$/);
      if (text !== '') JSON.parse(text);
    }
  });
});

describe('limits', () => {
  test('the tightest that the request was counted against is shown', async () => {
    const limit = async (response: Promise<Response>) => (await response).headers.get('ratelimit-limit');
    const own = await makeKey(root, { level: 'identity', identity_id: lab.ann });
    for (const key of [root, lab.key, own]) {
      expect(await limit(send(key, 'me.get'))).toBe('600');
      expect(await limit(post(key, lab.ann))).toBe('120');
      expect(await limit(post(key, 'idn_x'))).toBe('600');
      expect(await limit(send(key, 'messages.list', { params: { identity_id: lab.ann }, query: { limit: 'x' } }))).toBe(
        '600',
      );
    }
    expect(await limit(send(null, 'health.get'))).toBeNull();
    // Failed authentications count too, for the address they come from.
    expect(await limit(send(null, 'me.get'))).toBe('600');
    expect(await limit(fetchPath('/v1/nothing'))).toBeNull();
  });

  test('nobody else can use up what an identity may send, or tell by it that there is one', async () => {
    const other = await makeLab(root, 'other');
    const sends = vi.spyOn(env.RL_SEND, 'limit').mockResolvedValue({ success: false });
    for (const identity of [lab.ann, 'idn_01JD9Q3V7M8X2C4N6B5K1R0E9T']) {
      const response = await post(other.key, identity);
      expect(response.status).toBe(404);
      expect(response.headers.get('ratelimit-limit')).toBe('600');
    }
    expect(sends).not.toHaveBeenCalled();
    expect((await post(lab.key, lab.ann)).status).toBe(429);
    expect(sends).toHaveBeenCalledWith({ key: lab.ann });
  });

  test('what a key may not do is counted all the same', async () => {
    const requests = vi.spyOn(env.RL_API, 'limit');
    const reader = await makeKey(root, { level: 'identity', identity_id: lab.ann, permissions: ['messages:read'] });
    requests.mockClear();
    const response = await post(reader, lab.ann);
    expect(response.status).toBe(403);
    expect(response.headers.get('ratelimit-limit')).toBe('600');
    expect(requests).toHaveBeenCalledOnce();
  });

  test.each([
    ['RL_API', 'key', 'me.get', '600'],
    ['RL_TENANT', 'tenant', 'me.get', '600'],
    ['RL_SEND', 'send', 'messages.send', '120'],
  ] as const)('when %s is full the answer says which, and how long to wait', async (binding, bucket, route, limit) => {
    vi.spyOn(env[binding], 'limit').mockResolvedValue({ success: false });
    const body = route === 'messages.send' ? { body: letter(), headers: keyed() } : {};
    vi.setSystemTime(new Date('2026-11-30T12:00:41.900Z'));
    const response = await send(lab.key, route, { params: { identity_id: lab.ann }, ...body });
    vi.useRealTimers();
    expect(response.status).toBe(429);
    expect(await response.json()).toMatchObject({
      error: { code: 'rate_limited', details: { bucket, retry_after: 19 } },
    });
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'retry-after': '19',
      'ratelimit-reset': '19',
      'ratelimit-limit': limit,
    });
    expect(response.headers.has('ratelimit-remaining')).toBe(false);
  });

  test('public routes and failures to prove oneself are counted apart', async () => {
    const counted = vi.spyOn(env.RL_API, 'limit');
    await send(null, 'health.get');
    expect(counted).not.toHaveBeenCalled();
    await send('pmk_live_nonsense', 'me.get', { headers: { 'cf-connecting-ip': '192.0.2.1' } });
    const [[anonymous] = []] = counted.mock.calls;
    expect(anonymous?.key).toMatch(/^anon:[0-9a-f]{16}$/);
    expect(anonymous?.key).not.toContain('192.0.2.1');
  });
});

const METHODS = ['debug', 'info', 'log', 'warn', 'error'] as const;

/** Everything that the Worker and its objects log, at every level. */
function listen(): string[] {
  const lines: string[] = [];
  env.PM_LOG_LEVEL = 'debug';
  for (const method of METHODS) {
    vi.spyOn(console, method).mockImplementation((...words: unknown[]) => {
      lines.push(words.map(String).join(' '));
    });
  }
  return lines;
}

describe('the log', () => {
  const MARK = 'zq7marker';

  /** Uses the service with the mark wherever a caller can put something. */
  async function useEverything(): Promise<{ secrets: string[]; ids: string[]; token: string }> {
    const owner = { name: `Olga ${MARK}`, email: `olga.${MARK}@example.com` };
    const made = await identity(lab.key, lab.tenant, MARK, {
      display_name: `Ann ${MARK}`,
      owner,
      purpose: MARK,
      metadata: { [MARK]: MARK },
      signature: { text: MARK, html: `<b>${MARK}</b>` },
      client_id: MARK,
    });
    const key = await makeKey(lab.key, { level: 'identity', identity_id: made.id });
    const full = letter({
      to: [{ address: `${MARK}@simulator.invalid`, name: MARK }, 'bob.lab@agents.example'],
      bcc: [`bounce+${MARK}@simulator.invalid`],
      subject: `Subject ${MARK}`,
      text: `Text ${MARK}`,
      html: `<p>${MARK}</p>`,
      labels: [MARK],
      headers: { 'X-Note': MARK },
      metadata: { [MARK]: MARK },
      attachments: [{ filename: `${MARK}.txt`, content_type: 'text/plain', content_base64: btoa(MARK) }],
    });
    const params = { identity_id: made.id };
    const sent = await accepted(key, made.id, full, `key ${MARK}`);
    await accepted(key, made.id, full, `key ${MARK}`);
    await post(key, made.id, { ...full, subject: MARK.repeat(2) }, `key ${MARK}`);
    const inbound = await arrive(
      made.id,
      `From: ${MARK} <${MARK}@example.org>\nMessage-ID: <${MARK}@example.org>\nSubject: ${MARK}\nContent-Type: ${MARK}/x\n\n${MARK}`,
      { envelope_from: `${MARK}@example.org` },
    );
    await call(key, 'messages.list', { params, query: { q: MARK } });
    await call(key, 'messages.get', { params: { ...params, message_id: inbound }, query: { include: 'headers,html' } });
    await call(key, 'messages.update', { params: { ...params, message_id: inbound }, body: { labels_add: [MARK] } });
    for (const body of [
      { [MARK]: MARK },
      letter({ to: [`${MARK}@`] }),
      letter({ to: [`real.${MARK}@example.com`] }),
      letter({ headers: { [MARK]: MARK } }),
    ]) {
      expect((await post(key, made.id, body)).status).toBeGreaterThanOrEqual(400);
    }
    await sendBytes(key, 'messages.send', `{"text": ${MARK}`, { params, headers: keyed() });
    await send(`pmk_live_${MARK}`, 'me.get');
    await fetchPath(`/v1/${MARK}?${MARK}=${MARK}`, {
      headers: { 'user-agent': MARK, referer: MARK, 'cf-connecting-ip': '192.0.2.99' },
    });
    await send(key, 'messages.get', { params: { ...params, message_id: MARK } });
    const token = await linkTo(made.id, sent);
    expect((await send(null, 'links.get', { params: { token } })).status).toBe(200);
    for (const wrong of [`${token}${MARK}`, MARK]) {
      expect((await send(null, 'links.get', { params: { token: wrong } })).status).toBe(404);
    }
    await call(root, 'platform.keys.rotate', { params: { purpose: 'link' }, headers: keyed(MARK) });
    const answer = { text: MARK, html: MARK, labels: [MARK] };
    await call(key, 'messages.reply', { params: { ...params, message_id: sent.id }, body: answer, headers: keyed() });
    await useBroken(key, made.id, full);
    vi.spyOn(env.BLOBS, 'get').mockRejectedValueOnce(new Error(`https://api.example/v1/links/${token}`));
    expect((await send(null, 'links.get', { params: { token } })).status).toBe(500);
    await until(async () => {
      const message = await call(key, 'messages.get', { params: { ...params, message_id: sent.id } });
      expect(message.deliveries?.map(({ status }) => status)).toEqual(['delivered', 'delivered', 'bounced']);
    });
    return { secrets: [key, lab.key, root], ids: [made.id, sent.id], token };
  }

  /** A link to the file of a message. */
  async function linkTo(from: IdentityId, { id, attachments }: Sent): Promise<string> {
    const ring = { db, master_key: config(env).master_key, now: () => Date.now(), cacheKey: env };
    const [signing] = await signingKeys(ring, 'link');
    const [file] = attachments;
    if (signing === undefined || file === undefined) throw new Error('no key or no file');
    const expires = Math.floor(Date.now() / 1_000) + 3_600;
    const owner = { tenant_id: lab.tenant, identity_id: from };
    return mintLink(signing, { ...owner, message_id: id, attachment_id: file.id, expires });
  }

  /** Faults whose own words hold the mark: of the stores, of the queue, of our code. */
  async function useBroken(key: string, from: string, body: object): Promise<void> {
    const fault = new Error(`${MARK} at ${MARK}\n    at ${MARK}`);
    vi.spyOn(env.BLOBS, 'put').mockRejectedValueOnce(fault);
    expect((await post(key, from, body)).status).toBe(503);
    vi.spyOn(env.Q_OUTBOUND, 'send').mockRejectedValueOnce(fault);
    await accepted(key, from, body);
    vi.spyOn(env.DB, 'batch').mockRejectedValueOnce(fault);
    expect((await send(key, 'me.get')).status).toBe(500);
    vi.spyOn(env.BLOBS, 'get').mockRejectedValueOnce(fault);
    await expect(arrive(from, 'From: a@example.org\n\nx')).resolves.toMatch(/^msg_/);
  }

  test('holds ids, routes, codes and counts, and nothing that anybody wrote', async () => {
    const level = env.PM_LOG_LEVEL;
    const lines = listen();
    const { secrets, ids, token } = await useEverything();
    env.PM_LOG_LEVEL = level ?? 'error';
    vi.restoreAllMocks();
    const all = lines.join('\n');
    expect(lines.length).toBeGreaterThan(30);
    expect(all.toLowerCase()).not.toContain(MARK);
    for (const secret of secrets) for (const part of secret.split('_').slice(2)) expect(all).not.toContain(part);
    expect(all).not.toContain(token.slice(0, 12));
    expect(all).not.toContain(token.slice(-12));
    expect(all).not.toMatch(/@(agents|simulator|example)\b|192\.0\.2|https?:\/\/api/);
    const entries = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    for (const entry of entries) {
      expect(entry).toMatchObject({
        level: expect.any(String) as string,
        event: expect.stringMatching(/^[a-z_]+$/) as string,
      });
      for (const value of Object.values(entry))
        expect(['string', 'number']).toContain(value === null ? 'string' : typeof value);
    }
    const events = new Set(entries.map(({ event }) => event));
    for (const event of ['request', 'request_failed', 'submit_step_failed', 'background_failed', 'job_failed']) {
      expect([...events]).toContain(event);
    }
    expect(entries.find(({ event }) => event === 'request')).toMatchObject({
      route: expect.stringMatching(/^[a-z]+\./) as string,
      request_id: expect.stringMatching(/^req_/) as string,
      status: expect.any(Number) as number,
      ms: expect.any(Number) as number,
    });
    expect(ids).toHaveLength(2);
  });
});
