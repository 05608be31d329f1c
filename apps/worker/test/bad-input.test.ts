import { SEND_ROUTES } from '@pmail/contracts/routes/sends.ts';
import type { RouteId } from '@pmail/contracts/routes.ts';
import type { Json } from '@pmail/core/canonical-json.ts';
import type { WireError } from '@pmail/core/errors.ts';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { bodies, letters, type Malformed, queries } from './bad-input-cases.ts';
import { accepted, atRest, keyed, type Lab, letter, makeLab, person, stored, until, watchQueues } from './mail.ts';
import { keepStorage } from './storage.ts';
import { type Call, call, deploy, send, sendBytes } from './support.ts';

/** Whatever is wrong with a request is named, and the request leaves nothing behind: no row, no object, no job. */

keepStorage();

let lab: Lab;
/** Senders in turn, none of them so often that it would be limited. */
let senders: string[];
let turn = 0;
let message: string;
let before: Record<string, Json>;
let queues: ReturnType<typeof watchQueues>;

beforeAll(async () => {
  const root = await deploy();
  lab = await makeLab(root);
  senders = [lab.ann, lab.bob, await person(root, lab.tenant, 'cid'), await person(root, lab.tenant, 'dot')];
  message = (await accepted(lab.key, lab.ann, letter({ to: ['reject@simulator.invalid'] }))).id;
  const params = { identity_id: lab.ann, message_id: message };
  await until(async () => expect((await call(lab.key, 'messages.get', { params })).status).toBe('rejected'));
  await atRest(...senders);
  queues = watchQueues();
  before = await stored();
});

afterEach(async () => {
  expect(await stored()).toEqual(before);
  expect(queues.outbound).not.toHaveBeenCalled();
  expect(queues.inbound).not.toHaveBeenCalled();
});

async function answerOf(response: Response): Promise<{ code: string; paths: string[] }> {
  const text = await response.text();
  expect(response.status, text).toBeGreaterThanOrEqual(400);
  expect(response.status, text).toBeLessThan(500);
  const { code, details } = (JSON.parse(text) as WireError).error;
  const errors = (details?.['errors'] ?? []) as { path: string; message: string }[];
  for (const { message: said } of errors) expect(said).not.toBe('');
  return { code, paths: errors.map(({ path }) => path) };
}

/** Sends as a message exactly these bytes. */
const post = (body: BodyInit | null, headers: Record<string, string> = {}) =>
  sendBytes(lab.key, 'messages.send', body, {
    params: { identity_id: senders[turn++ % senders.length] ?? '' },
    headers: { ...keyed(), ...headers },
  });

const noBody = { code: 'invalid_request', paths: [''] };

describe('a body that is no JSON object', () => {
  test.each([
    ['nothing', null],
    ['empty', ''],
    ['white space', ' \n '],
    ['words', 'to: delivered@simulator.invalid'],
    ['cut off', '{"to":["delivered@simulator.invalid"]'],
    ['a comma too many', '{"to":["delivered@simulator.invalid"],}'],
    ['a comment', '{/* to */"to":["delivered@simulator.invalid"]}'],
    ['single quotes', "{'to':['delivered@simulator.invalid']}"],
    ['NaN', '{"to":NaN}'],
    ['a raw line break in a text', '{"subject":"a\nb"}'],
    ['two values', '{}{}'],
    ['null', 'null'],
    ['a number', '5'],
    ['a text', '"{}"'],
    ['a list', '[{"to":["delivered@simulator.invalid"],"text":"x"}]'],
    ['a hundred thousand brackets', '['.repeat(100_000) + ']'.repeat(100_000)],
    ['a hundred thousand brackets that nobody closes', '['.repeat(100_000)],
  ])('%s', async (_what, body) => {
    expect(await answerOf(await post(body))).toEqual(noBody);
  });

  test('that is not UTF-8', async () => {
    const good = JSON.stringify(letter({ text: 'caf?' }));
    const latin1 = Uint8Array.from(good, (char) => (char === '?' ? 0xe9 : char.charCodeAt(0)));
    const overlong = Uint8Array.from([...new TextEncoder().encode('{"text":"'), 0xc0, 0xaf, 0x22, 0x7d]);
    const surrogate = Uint8Array.from([...new TextEncoder().encode('{"text":"'), 0xed, 0xa0, 0x80, 0x22, 0x7d]);
    const utf16 = new Uint8Array(Uint16Array.from(`\ufeff${good}`, (char) => char.charCodeAt(0)).buffer);
    for (const bytes of [latin1, overlong, surrogate, utf16]) expect(await answerOf(await post(bytes))).toEqual(noBody);
  });

  test.each([
    'text/plain',
    'text/json',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    'application/json-seq',
    'json',
    '',
  ])('that says it is %j', async (type) => {
    expect(await answerOf(await post(JSON.stringify(letter()), { 'content-type': type }))).toEqual(noBody);
  });

  test('of 8 MB, whatever it holds', async () => {
    const fill = 'x'.repeat(8 * 1024 * 1024);
    for (const body of [fill, JSON.stringify(letter({ text: fill }))]) {
      expect(await answerOf(await post(body))).toEqual({ code: 'payload_too_large', paths: [] });
    }
  });
});

describe('a request that takes no body', () => {
  const cancel = (body: BodyInit | null) =>
    sendBytes(lab.key, 'messages.cancel', body, { params: { identity_id: lab.ann, message_id: message } });

  test.each(['{"reason":"changed my mind"}', 'now', '[]', 'null'])('is refused with %s', async (body) => {
    expect(await answerOf(await cancel(body))).toEqual(noBody);
  });

  test.each([null, '', ' ', '{}', '{ }\n'])('may come with %j', async (body) => {
    expect((await answerOf(await cancel(body))).code).toBe('not_cancelable');
  });
});

test('JSON may be called by its other names', async () => {
  for (const type of ['application/json; charset=utf-8', 'Application/JSON', 'application/vnd.api+json']) {
    const query = { dry_run: 'true' };
    const body = `\ufeff${JSON.stringify(letter())}`;
    const input = { params: { identity_id: lab.ann }, query, headers: { 'content-type': type } };
    expect((await sendBytes(lab.key, 'messages.send', body, input)).status).toBe(200);
  }
});

describe('a member named __proto__', () => {
  const good = '"to":["delivered@simulator.invalid"],"text":"x"';
  test.each([
    [`{${good},"__proto__":{"text":"y"}}`, '__proto__'],
    [`{"to":[{"address":"a@simulator.invalid","__proto__":{"name":"x"}}],"text":"x"}`, 'to[0].__proto__'],
    [`{${good},"unsubscribe":{"url":"https://a.example","__proto__":{}}}`, 'unsubscribe.__proto__'],
    [
      `{${good},"attachments":[{"filename":"a","content_type":"a/b","content_base64":"","__proto__":{}}]}`,
      'attachments[0].__proto__',
    ],
    [`{${good},"metadata":{"__proto__":"x"}}`, 'metadata'],
    [`{${good},"metadata":{"__proto__":{"a":"b"}}}`, 'metadata'],
    [`{${good},"headers":{"__proto__":"x"}}`, 'headers'],
    [`{${good},"headers":{"__proto__":{"X-A":"x"}}}`, 'headers'],
    [`{${good},"constructor":{"prototype":{}}}`, 'constructor'],
    [`{${good},"headers":{"constructor":"x"}}`, 'headers.constructor'],
  ])('%s', async (body, path) => {
    const { paths } = await answerOf(await post(body));
    expect(paths).toEqual([path]);
  });
});

describe('a message', () => {
  test.each<Malformed>(letters)('$what', async ({ body, paths, code = 'invalid_request' }) => {
    const answer = await answerOf(await post(JSON.stringify(typeof body === 'function' ? body() : body)));
    expect(answer).toEqual({ code, paths });
  });
});

const target = () => ({
  identity_id: lab.ann,
  message_id: message,
  thread_id: 'thr_01JABCDEFGHJKMNPQRSTVWXYZ0',
  event_id: 'evt_01JABCDEFGHJKMNPQRSTVWXYZ0',
  token: 'x',
});

describe('another body', () => {
  test.each(bodies)('$route $body', async ({ route, body, paths }) => {
    const headers = route in SEND_ROUTES ? keyed() : {};
    const answer = await answerOf(await send(lab.key, route, { params: target(), body, headers }));
    expect(answer).toEqual({ code: 'invalid_request', paths });
  });
});

describe('a query', () => {
  const ask = (route: RouteId, query: Record<string, string>) => {
    const input: Call = { params: target(), query };
    const body = route === 'messages.reply' ? { text: 'x' } : letter();
    return send(lab.key, route, route in SEND_ROUTES ? { ...input, body, headers: keyed() } : input);
  };

  test.each(queries)('$route $query', async ({ route, query }) => {
    const paths = Object.keys(query);
    expect(await answerOf(await ask(route, query))).toEqual({ code: 'invalid_request', paths });
  });

  test('with one name twice', async () => {
    const { exports } = await import('cloudflare:workers');
    const url = `https://api.example/v1/identities/${lab.ann}/messages?limit=1&limit=2`;
    const response = await exports.default.fetch(url, { headers: { authorization: `Bearer ${lab.key}` } });
    expect(await answerOf(response)).toEqual({ code: 'invalid_request', paths: ['limit'] });
  });
});
