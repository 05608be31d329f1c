import { ROUTE_IDS, routeSpec } from '@pmail/contracts/routes.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ApiError, type CallAnswer, type ClientOptions, ConnectionError, PmailClient } from './client.ts';
import {
  bare,
  cutOff,
  hangUp,
  json,
  page,
  refusal,
  ScriptedServer,
  silent,
  stuck,
  truncated,
} from './server.fixture.ts';

const IDENTITY = 'idn_01JABCDEFGHJKMNPQRSTVWXYZ0';
const MESSAGE = { id: 'msg_01JABCDEFGHJKMNPQRSTVWXYZ0', status: 'queued', deduplicated: false };
const BODY = { to: ['jo@example.net'], subject: 'Hello', text: 'Grüße, 世界' };

let server: ScriptedServer;
/** How long the client waited before each repeat, in ms. */
let waits: number[];

beforeEach(async () => {
  server = await ScriptedServer.start();
  waits = [];
});

afterEach(async () => {
  vi.restoreAllMocks();
  await server.stop();
});

function client(options: Partial<ClientOptions> = {}): PmailClient {
  const sleep = async (ms: number): Promise<void> => {
    waits.push(ms);
  };
  return new PmailClient({ url: server.url, key: 'pmk_test', retries: 5, random: () => 0, sleep, ...options });
}

function send(options: Partial<ClientOptions> = {}, body = BODY): Promise<CallAnswer<'messages.send'>> {
  return client(options).call('messages.send', {
    params: { identity_id: IDENTITY },
    body,
    idempotencyKey: 'first key',
  });
}

describe('a send', () => {
  test('goes out with key, body and path as given, and its answer comes back', async () => {
    server.will(json(202, MESSAGE, { 'idempotent-replayed': 'true' }));
    const answer = await send();
    expect(answer).toMatchObject({ status: 202, body: MESSAGE });
    expect(answer.headers.get('idempotent-replayed')).toBe('true');
    expect(server.seen).toHaveLength(1);
    expect(server.seen[0]).toMatchObject({
      method: 'POST',
      path: `/v1/identities/${IDENTITY}/messages`,
      headers: { authorization: 'Bearer pmk_test', 'idempotency-key': 'first key', 'content-type': 'application/json' },
    });
    expect(JSON.parse(server.seen[0]?.body ?? '')).toEqual(BODY);
  });

  test.each([
    ['nothing comes back', silent],
    ['the answer stops half way', stuck],
  ])('is repeated with its key when %s for too long', async (_name, trouble) => {
    const late = new AbortController();
    const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValueOnce(late.signal);
    // Too long is when the request, or what there is of the answer, has arrived, however slow the machine.
    const heard: typeof fetch = async (...args) => {
      const response = await fetch(...args);
      late.abort(new DOMException('too long', 'TimeoutError'));
      return response;
    };
    server.will(
      (response) => {
        trouble(response);
        if (trouble === silent) late.abort(new DOMException('too long', 'TimeoutError'));
      },
      json(202, MESSAGE),
    );
    expect(await send({ timeoutMs: 7_000, fetch: heard })).toMatchObject({ status: 202 });
    expect(server.seen.map(({ headers }) => headers['idempotency-key'])).toEqual(['first key', 'first key']);
    expect(timeout.mock.calls).toEqual([[7_000], [7_000]]);
  });

  test('is given the time that the API itself may take for it', async () => {
    const timeout = vi.spyOn(AbortSignal, 'timeout');
    server.will(json(202, MESSAGE));
    await send();
    const { directory_deadline_ms: directory, submit_deadline_ms: submit } = LIMITS;
    // Of the Worker: what admits a request, then its rounds of a send.
    const rounds = 3;
    expect(timeout.mock.calls[0]?.[0]).toBeGreaterThan(directory + rounds * (submit + directory));
  });

  test.each([
    ['the API is unavailable', refusal('unavailable')],
    ['the API fails', refusal('internal_error')],
    ['the API gives up waiting', refusal('timeout')],
    ['the first request still runs', refusal('request_in_progress')],
    ['the thread is busy', refusal('thread_busy')],
    ['there were too many', refusal('rate_limited')],
    ['a gateway answers instead', page(502)],
    ['the connection dies before the answer', hangUp],
    ['the connection dies within the answer', cutOff],
    ['the answer is only a part of one', truncated],
  ])('is repeated with the same key and bytes when %s', async (_what, fault) => {
    server.will(fault, fault, json(202, MESSAGE));
    expect((await send()).body).toEqual(MESSAGE);
    expect(server.seen).toHaveLength(3);
    const [first, ...repeats] = server.seen;
    for (const repeat of repeats) {
      expect(repeat.body).toBe(first?.body);
      expect(repeat.headers['idempotency-key']).toBe('first key');
      expect(repeat.path).toBe(first?.path);
    }
  });

  test('is repeated with the first bytes even when the caller changes the body meanwhile', async () => {
    const body = { ...BODY, to: [...BODY.to] };
    server.will(hangUp, json(202, MESSAGE));
    const sleep = async (): Promise<void> => {
      body.subject = 'Another';
      body.to.push('kim@example.net');
    };
    await send({ sleep }, body);
    expect(server.seen.map(({ body: sent }) => JSON.parse(sent) as unknown)).toEqual([BODY, BODY]);
  });

  test.each([
    'invalid_request',
    'idempotency_conflict',
    'identity_paused',
    'tenant_suspended',
    'billing_limit',
    'unauthenticated',
    'message_too_large',
  ] as const)('is not repeated after %s', async (code) => {
    server.will(refusal(code), json(202, MESSAGE));
    const error = await send().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ code, retryable: false, requestId: 'req_test' });
    expect(server.seen).toHaveLength(1);
    expect(waits).toEqual([]);
  });

  test('carries what the error says about itself', async () => {
    server.will(refusal('idempotency_conflict', {}, { original_message_id: MESSAGE.id }));
    await expect(send()).rejects.toMatchObject({
      status: 409,
      details: { original_message_id: MESSAGE.id },
      fix: expect.stringMatching(/./) as string,
      retryAfterMs: null,
    });
  });
});

describe('the number of tries', () => {
  test('ends: the last error is thrown', async () => {
    server.will(...Array.from({ length: 9 }, () => refusal('unavailable')));
    await expect(send({ retries: 3 })).rejects.toMatchObject({ code: 'unavailable' });
    expect(server.seen).toHaveLength(4);
    expect(server.left).toBe(5);
  });

  test('is one where the caller has asked for no more', async () => {
    server.will(hangUp, json(202, MESSAGE));
    await expect(send({ retries: 0 })).rejects.toBeInstanceOf(ConnectionError);
    expect(server.seen).toHaveLength(1);
  });

  test('is four where the caller has said nothing', async () => {
    server.will(...Array.from({ length: 9 }, () => refusal('unavailable')));
    const sleep = async (ms: number): Promise<void> => void waits.push(ms);
    const plain = new PmailClient({ url: server.url, key: 'pmk_test', sleep, random: () => 0.999_999 });
    const input = { params: { identity_id: IDENTITY }, body: BODY, idempotencyKey: 'first key' };
    await expect(plain.call('messages.send', input)).rejects.toMatchObject({ code: 'unavailable' });
    expect(server.seen).toHaveLength(4);
    expect(waits.map(Math.round)).toEqual([250, 500, 1_000]);
  });

  const writes = ROUTE_IDS.map((id) => [id, routeSpec(id)] as const).filter(([, { method }]) => method !== 'GET');

  test.each(writes)('of %s is several only with a key that it looks at', async (id, { idempotency }) => {
    const tries = async (input: object): Promise<number> => {
      let count = 0;
      const broken = async (): Promise<never> => {
        count++;
        throw new TypeError('fetch failed');
      };
      await expect(client({ fetch: broken, retries: 2 }).call(id, input)).rejects.toMatchObject({ code: 'no_answer' });
      return count;
    };
    expect(await tries({})).toBe(1);
    expect(await tries({ idempotencyKey: 'key' })).toBe(idempotency === 'none' ? 1 : 3);
  });

  test('of a DELETE whose answer was lost is one: the next would be told that there is no such thing', async () => {
    server.will(hangUp, refusal('webhook_not_found'));
    const params = { webhook_id: 'whk_1' };
    await expect(client().call('webhooks.delete', { params })).rejects.toMatchObject({ code: 'no_answer' });
    expect(server.seen).toHaveLength(1);
    // @ts-expect-error the API looks at no key here, so there is no promise to give with one
    await expect(client().call('webhooks.delete', { params, idempotencyKey: 'key' })).rejects.toBeInstanceOf(ApiError);
  });

  test('is one for a write without a key, whose repeat might do it twice', async () => {
    server.will(refusal('unavailable'), hangUp);
    const create = (): Promise<unknown> =>
      client().call('keys.create', { body: { name: 'agent', level: 'tenant', permissions: [] } as never });
    await expect(create()).rejects.toMatchObject({ code: 'unavailable' });
    await expect(create()).rejects.toBeInstanceOf(ConnectionError);
    expect(server.seen).toHaveLength(2);
  });

  test('is several for a read, which needs no key', async () => {
    server.will(hangUp, refusal('unavailable'), json(200, MESSAGE));
    const params = { identity_id: IDENTITY, message_id: MESSAGE.id };
    expect((await client().call('messages.get', { params, query: { include: 'text', none: undefined } })).body).toEqual(
      MESSAGE,
    );
    expect(server.seen.map(({ method, path }) => `${method} ${path}`)).toEqual(
      Array.from({ length: 3 }, () => `GET /v1/identities/${IDENTITY}/messages/${MESSAGE.id}?include=text`),
    );
    expect(server.seen[0]?.headers['idempotency-key']).toBeUndefined();
  });

  test('never grows past its bound when nobody listens at all', async () => {
    await server.stop();
    await expect(send({ retries: 2 })).rejects.toBeInstanceOf(ConnectionError);
    expect(waits).toHaveLength(2);
  });
});

describe('the wait before a repeat', () => {
  test('doubles from a quarter of a second up to eight', async () => {
    server.will(...Array.from({ length: 9 }, () => refusal('unavailable')));
    await expect(send({ retries: 8, random: () => 0.999_999 })).rejects.toThrow();
    expect(waits.map(Math.round)).toEqual([250, 500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000]);
  });

  test('is spread over its upper half, so that clients do not come back together', async () => {
    server.will(refusal('unavailable'), refusal('unavailable'), json(202, MESSAGE));
    await send({ random: () => 0 });
    expect(waits).toEqual([125, 250]);
  });

  test.each([
    ['the API', refusal('rate_limited', { 'retry-after': '12' }, { retry_after: 12, bucket: 'key' }), 12_000],
    ['the API, for less than the own wait', refusal('rate_limited', { 'retry-after': '0' }), 125],
    ['a gateway', page(503, { 'retry-after': '7' }), 7_000],
    ['something that writes nonsense', refusal('unavailable', { 'retry-after': 'soon' }), 125],
  ])('is at least what is asked for by %s', async (_who, answer, wait) => {
    server.will(answer, json(202, MESSAGE));
    await send();
    expect(waits).toEqual([wait]);
  });

  test('is at least until the date that is asked for', async () => {
    server.will(
      refusal('unavailable', { 'retry-after': new Date(Date.now() + 30_000).toUTCString() }),
      json(202, MESSAGE),
    );
    await send();
    // The header has whole seconds.
    expect(waits).toHaveLength(1);
    expect(waits[0]).toBeGreaterThan(25_000);
    expect(waits[0]).toBeLessThanOrEqual(30_000);
  });

  test('is not begun when it would be longer than the caller allows', async () => {
    server.will(
      refusal('daily_cap_reached', { 'retry-after': '40000' }),
      refusal('rate_limited', { 'retry-after': '40' }),
    );
    await expect(send()).rejects.toMatchObject({
      code: 'daily_cap_reached',
      retryable: true,
      retryAfterMs: 40_000_000,
    });
    await expect(send({ waitMsMax: 39_000 })).rejects.toMatchObject({ code: 'rate_limited', retryAfterMs: 40_000 });
    expect(server.seen).toHaveLength(2);
    expect(waits).toEqual([]);
  });
});

describe('an answer', () => {
  test('without a body is null', async () => {
    server.will(bare(204));
    expect(await client().call('keys.revoke', { params: { key_id: 'key_1' } })).toMatchObject({
      status: 204,
      body: null,
    });
  });

  test('with parameters in its path has them escaped', async () => {
    server.will(refusal('identity_not_found'));
    const params = { identity_id: '../../v1/tenants?x=1' };
    await expect(client().call('messages.list', { params })).rejects.toMatchObject({ code: 'identity_not_found' });
    expect(server.seen[0]?.path).toBe('/v1/identities/..%2F..%2Fv1%2Ftenants%3Fx%3D1/messages');
  });
});
