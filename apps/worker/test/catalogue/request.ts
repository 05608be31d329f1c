import { bodyIsOptional, ROUTE_IDS, routeSpec } from '@pmail/contracts/routes.ts';
import { sha256Hex } from '@pmail/core/hash.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { expect } from 'vitest';
import { newId } from '../../src/ports/random.ts';
import { accepted, keyed, letter, waiting } from '../mail.ts';
import { call, plantKey, send, sendBytes, sql } from '../support.ts';
import { having, names, naming } from './routes.ts';
import { later, operator, type Provocation, sample } from './world.ts';

/** What is wrong with a request itself: its key for repetition, its query and body, its cursor, its time. */

const WITH_BODY = having(({ body }) => body !== null);
const WITH_CURSOR = having(({ query }) => 'cursor' in query.shape);

const badKeys: [string, string][] = [
  ['empty', ''],
  ['256 characters', 'k'.repeat(256)],
  ['with a control byte', 'a\x01b'],
  ['with a tab', 'a\tb'],
  ['with a delete', 'a\x7fb'],
  ['not ASCII', 'clé'],
];

const idempotency: Provocation[] = [
  {
    code: 'idempotency_key_required',
    when: 'there is none',
    routes: having(({ idempotency: rule }) => rule === 'required'),
    provoke: async (world, route) => send(await operator(), route, { ...sample(world, route), headers: {} }),
  },
  ...badKeys.map(
    ([what, value]): Provocation => ({
      code: 'invalid_idempotency_key',
      when: `it is ${what}`,
      routes: having(({ idempotency: rule }) => rule !== 'none'),
      provoke: async (world, route) =>
        send(await operator(), route, { ...sample(world, route), headers: { 'idempotency-key': value } }),
    }),
  ),
  {
    code: 'idempotency_conflict',
    when: 'it stands for another message',
    routes: ['messages.send'],
    provoke: async (world, route) => {
      const { id } = await accepted(world.key, world.ann, letter(), 'taken');
      const again = {
        ...sample(world, route),
        body: letter({ subject: 'Other' }),
        headers: { 'idempotency-key': 'taken' },
      };
      const response = await send(world.key, route, again);
      const { error } = await response.clone().json<{ error: { details: unknown } }>();
      expect(error.details).toEqual({ original_message_id: id });
      return response;
    },
  },
];

const OPTIONAL = having(({ idempotency: rule }) => rule === 'optional');

/** On the writes that are not sends, whose record is one per API key. */
const records: Provocation[] = [
  {
    code: 'idempotency_conflict',
    when: 'it stands for another write',
    routes: OPTIONAL,
    provoke: async (world, route) => {
      const key = await plantKey();
      const headers = keyed();
      await call(key, 'keys.create', {
        body: { name: 'x', level: 'platform', permissions: ['platform:ops'] },
        headers,
      });
      return send(key, route, { ...sample(world, route), headers });
    },
  },
  {
    code: 'request_in_progress',
    when: 'the first write with this key is still on its way',
    routes: OPTIONAL,
    provoke: async (world, route) => {
      const id = newId('key', Date.now());
      const headers = keyed();
      const key = await plantKey({ id });
      await sql(
        `INSERT INTO idempotency_records
           (scope, key_id, idem_key, method, path, fingerprint, status, created_at, expires_at)
         VALUES ('platform', ?, ?, 'POST', '/', '', 'in_progress', ?3, ?3 + 60000)`,
        id,
        await sha256Hex(headers['idempotency-key'] ?? ''),
        Date.now(),
      );
      return send(key, route, { ...sample(world, route), headers });
    },
    also: ({ headers }) => expect(headers.get('retry-after')).toBe('1'),
  },
];

const bodies: Provocation[] = [
  {
    code: 'invalid_request',
    when: 'the query has an unknown name',
    routes: ROUTE_IDS.filter((id) => id !== 'links.get'),
    provoke: async (world, route) => {
      const call = sample(world, route);
      return send(await operator(), route, { ...call, query: { ...call.query, nonsense: '1' } });
    },
    ...names('nonsense'),
  },
  {
    code: 'invalid_request',
    when: 'the body is no JSON',
    routes: WITH_BODY,
    provoke: async (world, route) => {
      const { body: _body, ...call } = sample(world, route);
      return sendBytes(await operator(), route, '{"a":', call);
    },
    ...names(''),
  },
  {
    code: 'invalid_request',
    when: 'the body is no object',
    routes: WITH_BODY,
    provoke: async (world, route) => send(await operator(), route, { ...sample(world, route), body: [] }),
    ...names(''),
  },
  {
    code: 'invalid_request',
    when: 'the body has an unknown field',
    routes: WITH_BODY,
    provoke: async (world, route) => {
      const call = sample(world, route);
      return send(await operator(), route, { ...call, body: { ...(call.body as object), nonsense: 1 } });
    },
    ...names('nonsense'),
  },
  {
    code: 'invalid_request',
    when: 'there is no body and one is needed',
    routes: WITH_BODY.filter((id) => !bodyIsOptional(routeSpec(id))),
    provoke: async (world, route) => {
      const { body: _body, ...call } = sample(world, route);
      return sendBytes(await operator(), route, null, call);
    },
    ...names(''),
  },
  {
    code: 'payload_too_large',
    when: 'it says it has 8 MB',
    routes: WITH_BODY,
    provoke: async (world, route) => {
      const { body: _body, ...call } = sample(world, route);
      return sendBytes(await operator(), route, ' '.repeat(8 * 1024 * 1024), call);
    },
    also: ({ details }) => expect(details).toEqual({ limit: LIMITS.request_body_bytes_max }),
  },
  {
    code: 'payload_too_large',
    when: 'it has 8 MB and does not say so',
    routes: ['messages.send'],
    provoke: async (world, route) => {
      const { body: _body, ...call } = sample(world, route);
      const chunk = new Uint8Array(1024 * 1024).fill(32);
      let left = 8;
      const stream = new ReadableStream<Uint8Array>({
        pull: (controller) => {
          if (left-- > 0) controller.enqueue(chunk);
          else controller.close();
        },
      });
      return sendBytes(world.key, route, stream, call);
    },
  },
];

const cursors: Provocation[] = [
  {
    code: 'cursor_expired',
    when: 'it is over a day old',
    routes: WITH_CURSOR,
    provoke: async (world, route) => {
      const key = await operator();
      const query = { [route === 'threads.get' ? 'messages_limit' : 'limit']: '1' };
      const { next_cursor } = (await call(key, route, { ...sample(world, route), query })) as { next_cursor: string };
      const next = { ...sample(world, route), query: { ...query, cursor: next_cursor } };
      expect((await send(key, route, next)).status).toBe(200);
      return later(LIMITS.cursor_age_ms_max + 60_000, () => send(key, route, next));
    },
  },
  {
    code: 'invalid_request',
    when: 'the cursor was made up',
    routes: WITH_CURSOR,
    provoke: async (world, route) => {
      const call = sample(world, route);
      return send(await operator(), route, { ...call, query: { ...call.query, cursor: 'c_0AAAA' } });
    },
    ...names('cursor'),
  },
];

const states: Provocation[] = [
  {
    code: 'not_cancelable',
    when: 'it has ended',
    routes: ['messages.cancel'],
    provoke: async (world, route) => {
      const { id } = await waiting(world.key, world.ann);
      await call(world.key, 'messages.cancel', { params: { identity_id: world.ann, message_id: id } });
      return send(world.key, route, naming(world, route, { message_id: id }));
    },
    also: ({ details }) => expect(details).toEqual({ status: 'canceled' }),
  },
  {
    code: 'not_uncertain',
    when: 'its status is known',
    routes: ['messages.resolve'],
    provoke: async (world, route) => {
      const { id } = await waiting(world.key, world.ann);
      await call(world.key, 'messages.cancel', { params: { identity_id: world.ann, message_id: id } });
      return send(world.key, route, naming(world, route, { message_id: id }));
    },
    also: ({ details }) => expect(details).toEqual({ status: 'canceled' }),
  },
];

export const requests: Provocation[] = [...idempotency, ...records, ...bodies, ...cursors, ...states];
