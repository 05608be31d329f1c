import { ROUTE_IDS, type RouteId, routeSpec } from '@pmail/contracts/routes.ts';
import { ERRORS } from '@pmail/core/errors.ts';
import { afterEach, beforeEach, describe, expect, expectTypeOf, test } from 'vitest';
import { ApiError, type CallAnswer, type CallInput, ConnectionError, PmailClient } from './client.ts';
import { CONNECTION_FAULTS } from './errors.ts';
import { bare, cutOff, file, json, page, refusal, ScriptedServer } from './server.fixture.ts';

const MESSAGE = { id: 'msg_01JABCDEFGHJKMNPQRSTVWXYZ0', status: 'queued', deduplicated: false };
const SEND: CallInput<'messages.send'> = {
  params: { identity_id: 'idn_1' },
  body: { to: ['jo@example.net'], subject: 'Hello', text: 'Hello' },
  idempotencyKey: 'first key',
};
const FILE = { params: { identity_id: 'idn_1', message_id: 'msg_1', attachment_id: 'att_1' } };
/** Begins as a PNG does, and has every byte there is; read as text and written again it would be another file. */
const BYTES = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, ...Array.from({ length: 256 }, (_, n) => n)]);
const REQUEST_ID = { 'request-id': 'req_1' };

let server: ScriptedServer;

beforeEach(async () => {
  server = await ScriptedServer.start();
});

afterEach(() => server.stop());

function call<K extends RouteId>(id: K, input: CallInput<K>, retries = 0): Promise<CallAnswer<K>> {
  return new PmailClient({ url: server.url, key: 'pmk_test', retries, sleep: async () => {} }).call(id, input);
}

const thrown = (error: unknown): unknown => error;

describe('what is no answer of the API', () => {
  const strange = [
    ['a page under 200', page(200)],
    ['a page under the status of a send', page(202)],
    ['nothing under 200', bare(200)],
    ['nothing under 202', bare(202, { 'content-type': 'application/json' })],
    ['nothing under 204', bare(204)],
    ['JSON under a status that a send does not have', json(201, MESSAGE)],
    ['JSON under another type', json(202, MESSAGE, { 'content-type': 'text/json' })],
    ['JSON that is no object', json(202, 'accepted')],
    ['JSON that is null', json(202, null)],
    ['JSON that is a list', json(202, [MESSAGE])],
    ['an error of somebody else', json(503, { error: { code: 'unavailable', message: 'Down' } })],
  ] as const;

  test.each(strange)('is not taken for an accepted send: %s', async (_what, answer) => {
    server.will(answer);
    const error = await call('messages.send', SEND).catch(thrown);
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error).toMatchObject({
      code: 'foreign_answer',
      retryable: true,
      fix: expect.stringMatching(/Idempotency-Key/) as string,
      requestId: null,
    });
  });

  test.each(strange)('leaves a send with its key to be repeated: %s', async (_what, answer) => {
    server.will(answer, json(202, MESSAGE));
    expect(await call('messages.send', SEND, 1)).toMatchObject({ status: 202, body: MESSAGE });
    expect(server.seen.map(({ headers }) => headers['idempotency-key'])).toEqual(['first key', 'first key']);
  });

  test('is repeated for no write that has no key', async () => {
    server.will(page(200));
    const error = await call('keys.rotate', { params: { key_id: 'key_1' } }, 3).catch(thrown);
    expect(error).toMatchObject({ code: 'foreign_answer', status: 200 });
    expect(server.seen).toHaveLength(1);
  });

  test('is told with what was seen of it', async () => {
    server.will(page(200, { ...REQUEST_ID, 'retry-after': '3' }));
    await expect(call('messages.send', SEND)).rejects.toMatchObject({
      message: 'foreign_answer: status 200 with text/html, which should be a JSON object',
      status: 200,
      requestId: 'req_1',
      retryAfterMs: 3_000,
    });
    server.will((response) => {
      response.writeHead(202, { 'content-type': 'application/json', 'content-length': '9', ...REQUEST_ID });
      response.write('{');
      setImmediate(() => response.destroy());
    });
    await expect(call('messages.send', SEND)).rejects.toMatchObject({
      code: 'no_answer',
      retryable: true,
      status: 202,
      requestId: 'req_1',
    });
  });

  test('has no code of the API', () => {
    expect(Object.keys(CONNECTION_FAULTS).filter((code) => code in ERRORS)).toEqual([]);
  });

  const successes = ROUTE_IDS.flatMap((id) => routeSpec(id).success.map(({ status }) => [id, status] as const));

  test.each(successes)('is not taken for a success of %s, %i', async (id, status) => {
    // With 204 no page can come.
    const send = async () => new Response('<h1>Welcome</h1>', { status: status === 204 ? 200 : status });
    const client = new PmailClient({ url: server.url, key: 'pmk_test', retries: 0, fetch: send });
    await expect(client.call(id)).rejects.toMatchObject({ code: 'foreign_answer' });
  });
});

describe('a redirect', () => {
  const LIST = '/v1/identities/idn_1/messages';

  test.each([301, 302, 303, 307, 308])(
    'of a send with %i is not followed, not even to the same server',
    async (status) => {
      server.will(bare(status, { location: LIST, ...REQUEST_ID }), json(200, { data: [], next_cursor: null }));
      const error = await call('messages.send', SEND, 3).catch(thrown);
      expect(error).toBeInstanceOf(ConnectionError);
      expect(error).toMatchObject({
        code: 'redirected',
        message: `redirected: status ${status} to ${LIST}`,
        retryable: false,
        fix: expect.stringMatching(/url/) as string,
        status,
        location: LIST,
        requestId: 'req_1',
      });
      expect(server.seen).toHaveLength(1);
    },
  );

  test('of a read is not followed, and nobody else is shown the key', async () => {
    const other = await ScriptedServer.start();
    other.will(json(200, MESSAGE));
    server.will(bare(302, { location: `${other.url}/elsewhere` }));
    await expect(call('messages.get', FILE, 3)).rejects.toMatchObject({ location: `${other.url}/elsewhere` });
    expect(other.seen).toEqual([]);
    await other.stop();
  });

  test('without a place, or one that is not shown, is told as what it is', async () => {
    server.will(bare(301));
    await expect(call('messages.send', SEND)).rejects.toMatchObject({ code: 'redirected', location: null });
    const hidden = { type: 'opaqueredirect', status: 0, ok: false, headers: new Headers() };
    const send = async () => ({ ...hidden, arrayBuffer: async () => new ArrayBuffer(0) }) as Response;
    const client = new PmailClient({ url: server.url, key: 'pmk_test', fetch: send });
    await expect(client.call('messages.send', SEND)).rejects.toMatchObject({ code: 'redirected', location: null });
  });
});

describe('what the table documents', () => {
  test('is taken without a body where there is none', async () => {
    server.will(bare(204), bare(200));
    expect((await call('webhooks.delete', { params: { webhook_id: 'whk_1' } })).body).toBeNull();
    expect((await call('hooks.ses', {})).body).toBeNull();
  });

  test('is taken as JSON also where it has no schema', async () => {
    server.will(json(200, { openapi: '3.1.0' }));
    expect((await call('openapi.get', {})).body).toEqual({ openapi: '3.1.0' });
  });

  test.each([
    ['application/json', 'plain'],
    ['application/json; charset=utf-8', 'with its charset'],
    ['Application/JSON ;charset=utf-8', 'as somebody on the way may write it'],
  ])('is taken as JSON under %s, %s', async (contentType) => {
    server.will(json(202, MESSAGE, { 'content-type': contentType }));
    expect((await call('messages.send', SEND)).body).toEqual(MESSAGE);
  });

  test('is typed by the operation, and by the status where it has several', async () => {
    expectTypeOf<CallAnswer<'messages.attachments.get'>['body']>().toEqualTypeOf<Uint8Array<ArrayBuffer>>();
    expectTypeOf<CallAnswer<'messages.raw.get'>['body']>().toEqualTypeOf<Uint8Array<ArrayBuffer>>();
    expectTypeOf<CallAnswer<'openapi.get'>['body']>().toEqualTypeOf<Record<string, unknown>>();
    expectTypeOf<CallAnswer<'keys.revoke'>['body']>().toEqualTypeOf<null>();
    expectTypeOf<CallAnswer<'messages.get'>['body']['subject']>().toEqualTypeOf<string | null>();
    server.will(json(200, { would_send: true, recipients: [] }));
    const answer = await call('messages.send', { ...SEND, query: { dry_run: true } });
    if (answer.status !== 200) throw new Error('not a dry run');
    expectTypeOf(answer.body.would_send).toEqualTypeOf<true>();
    expect(answer.body.would_send).toBe(true);
  });
});

describe('a download', () => {
  test.each(['image/png', 'text/plain', 'application/json', 'application/octet-stream'])(
    'of an attachment gives its bytes as they are, under %s',
    async (contentType) => {
      server.will(file(contentType, BYTES, REQUEST_ID));
      const { body, headers } = await call('messages.attachments.get', FILE);
      expect(body).toEqual(BYTES);
      expect(headers.get('content-type')).toBe(contentType);
    },
  );

  test('of a raw message gives the bytes of 8-bit mail', async () => {
    const raw = Buffer.from('Subject: Gr\xfc\xdfe\r\n\r\n\x80\xff', 'latin1');
    server.will(file('message/rfc822', raw));
    const { body } = await call('messages.raw.get', FILE);
    expect(Buffer.from(body).equals(raw)).toBe(true);
  });

  test('may be empty', async () => {
    server.will(file('text/plain', new Uint8Array(), REQUEST_ID));
    expect((await call('messages.attachments.get', FILE)).body).toEqual(new Uint8Array());
  });

  test.each([
    ['messages.attachments.get', page(200)],
    ['messages.raw.get', page(200, REQUEST_ID)],
    ['messages.raw.get', json(200, MESSAGE, REQUEST_ID)],
    ['messages.raw.get', cutOff],
  ] as const)('of %s is no page of somebody else and no part of a file, and is tried again', async (id, answer) => {
    server.will(answer, file('message/rfc822', BYTES, REQUEST_ID));
    expect((await call(id, FILE, 1)).body).toEqual(BYTES);
    expect(server.seen).toHaveLength(2);
  });

  test('that is refused has the error of the API', async () => {
    server.will(refusal('raw_expired'));
    const error = await call('messages.raw.get', FILE).catch(thrown);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ code: 'raw_expired', fix: ERRORS.raw_expired.fix, requestId: 'req_test' });
  });
});
