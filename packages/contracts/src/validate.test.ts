import type { FieldError, Result } from '@pmail/core/result.ts';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ROUTES } from './routes.ts';
import { sendBody } from './schemas/send.ts';
import { fieldErrors, parseBody, parseJson, parseQuery } from './validate.ts';

function errorsOf(result: Result<unknown>): FieldError[] {
  return result.ok ? [] : ((result.details?.['errors'] ?? []) as FieldError[]);
}

function errorsIn(body: unknown): FieldError[] {
  return errorsOf(parseBody(sendBody, body));
}

describe('messages', () => {
  test('say what is wanted', () => {
    expect(errorsIn({ to: [7, {}], kind: 'x', html: 1, headers: [], foo: 1 })).toEqual([
      { path: 'to[0]', message: 'must be a string or an object' },
      { path: 'to[1].address', message: 'is required' },
      { path: 'html', message: 'must be a string' },
      { path: 'headers', message: 'must be an object' },
      { path: 'kind', message: 'must be one of transactional, marketing, auto_reply' },
      { path: 'foo', message: 'is unknown' },
    ]);
    expect(errorsIn({ to: [] })).toEqual([{ path: 'to', message: 'must not be empty' }]);
    expect(errorsIn({ to: Array(50).fill('a') })).toEqual([{ path: 'to', message: 'must have at most 49 members' }]);
  });

  test('never repeat a value', () => {
    const secret = 'pmk_live_do_not_show';
    const bodies = [
      { to: secret },
      { to: [{ address: 1, name: { secret } }], kind: secret, subject: [secret] },
      { to: ['a'], attachments: [{ filename: 'a', content_type: 'b', content_base64: secret, disposition: secret }] },
      { to: ['a'], consent: { basis: 'b', recorded_at: secret }, headers: { a: { secret } }, foo: secret },
    ];
    for (const body of bodies) {
      const errors = errorsIn(body);
      expect(errors.length).toBeGreaterThan(0);
      expect(JSON.stringify(errors)).not.toContain(secret);
    }
  });

  test('of a union come from the branch that fits best', () => {
    const schema = z.union([
      z.strictObject({ kind: z.literal('a'), size: z.number(), unit: z.string() }),
      z.strictObject({ kind: z.literal('b'), name: z.string() }),
      z.number(),
    ]);
    const parsed = schema.safeParse({ kind: 'b' });
    expect(fieldErrors(parsed.error ?? new z.ZodError([])).map(({ path }) => path)).toEqual(['name']);
    expect(parseBody(schema, 'x')).toMatchObject({
      details: { errors: [{ path: '', message: 'must be an object or a number' }] },
    });
  });
});

describe('size', () => {
  test('of an answer is bounded, whatever the body holds', () => {
    const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`field${i}`, 1]));
    expect(errorsIn({ to: ['a'], ...many })).toHaveLength(50);
    const [long] = errorsIn({ to: ['a'], ['x'.repeat(1_000_000)]: 1 });
    expect(long?.path.length).toBeLessThan(300);
    const rows = Array.from({ length: 32 }, () => ({ a: 1, b: 2 }));
    expect(errorsIn({ to: ['a'], attachments: rows })).toHaveLength(50);
  });

  test('a list that is too long is refused before its members are looked at', () => {
    let looked = 0;
    const members = new Proxy(Array(100_000).fill(1), {
      get(target, name, receiver) {
        if (typeof name === 'string' && /^\d+$/.test(name)) looked++;
        return Reflect.get(target, name, receiver);
      },
    });
    for (const field of ['to', 'cc', 'attachments', 'labels']) {
      expect(errorsIn({ to: ['a'], [field]: members })).toEqual([
        { path: field, message: expect.stringMatching(/^must have at most \d+ members$/) },
      ]);
    }
    expect(looked).toBe(0);
  });

  test('a map with too many members is refused before its values are looked at', () => {
    let looked = 0;
    const many = Object.fromEntries(Array.from({ length: 6_000 }, (_, i) => [`k${i}`, i]));
    const map = new Proxy(many, {
      get(target, name, receiver) {
        looked++;
        return Reflect.get(target, name, receiver);
      },
    });
    expect(errorsIn({ to: ['a'], headers: map })).toEqual([
      { path: 'headers', message: 'must have at most 5000 members' },
    ]);
    expect(looked).toBeLessThan(10);
  });

  test('seven megabytes of base64 are scanned once, right or wrong to the last character', () => {
    const file = (content_base64: string) => ({
      to: ['a'],
      attachments: [{ filename: 'a', content_type: 'b', content_base64 }],
    });
    const body = 'A'.repeat(7 * 1024 * 1024 - 4);
    const good = file(`${body}AAA=`);
    let read = 0;
    const counted = {
      ...good,
      attachments: [
        Object.defineProperty({ ...good.attachments[0] }, 'content_base64', {
          enumerable: true,
          get: () => {
            read++;
            return `${body}AAA=`;
          },
        }),
      ],
    };
    expect(parseBody(sendBody, counted).ok).toBe(true);
    expect(read).toBeLessThan(4);
    for (const end of ['AAA*', 'A=AA', '====', 'AAA\n', 'AAAA=']) {
      expect(errorsIn(file(body + end)).map(({ path }) => path)).toEqual(['attachments[0].content_base64']);
    }
  });
});

describe('query', () => {
  const messages = ROUTES['messages.list'].query;
  const query = (schema: z.ZodObject, text: string) => parseQuery(schema, new URLSearchParams(text));
  const paths = (schema: z.ZodObject, text: string) => errorsOf(query(schema, text)).map(({ path }) => path);

  test('comes out typed', () => {
    expect(query(messages, '')).toEqual({ ok: true, value: { limit: 25 } });
    expect(query(messages, 'limit=100&after=2026-01-01T00:00:00%2B02:00&thread_id=x&q=car+hire')).toEqual({
      ok: true,
      value: { limit: 100, after: Date.UTC(2025, 11, 31, 22), thread_id: 'x', q: 'car hire' },
    });
    expect(query(ROUTES['messages.get'].query, 'include=html,quoted,html')).toEqual({
      ok: true,
      value: { include: ['html', 'quoted'] },
    });
    expect(query(ROUTES['messages.send'].query, 'dry_run=false')).toEqual({ ok: true, value: { dry_run: false } });
    expect(query(ROUTES['threads.list'].query, 'is_unread=true')).toEqual({
      ok: true,
      value: { limit: 25, archived: false, is_unread: true },
    });
    expect(query(ROUTES['threads.get'].query, '')).toEqual({ ok: true, value: { messages_limit: 20 } });
  });

  test.each(['0', '101', '', '-1', '1.5', '1e1', '0x10', ' 5', '99999999999999999999', 'ten'])('limit %j', (limit) => {
    expect(paths(messages, new URLSearchParams({ limit }).toString())).toEqual(['limit']);
  });

  test('is refused at the name of the parameter', () => {
    expect(paths(messages, 'foo=1&after=now&direction=up&status=x&label=A%20B&q=')).toEqual(
      expect.arrayContaining(['foo', 'after', 'direction', 'status', 'label', 'q']),
    );
    expect(paths(messages, 'limit=1&limit=2')).toEqual(['limit']);
    expect(paths(messages, '__proto__=1&constructor=2').sort()).toEqual(['__proto__', 'constructor']);
    expect(paths(ROUTES['messages.send'].query, 'dry_run=1')).toEqual(['dry_run']);
    expect(paths(ROUTES['messages.get'].query, 'include=html,raw')).toEqual(['include']);
    expect(paths(ROUTES['messages.get'].query, 'include=')).toEqual(['include']);
    expect(paths(ROUTES['events.list'].query, 'type=message.sent,message.foo&include=x')).toEqual(['type', 'include']);
    expect(paths(ROUTES['identities.lookup'].query, '')).toEqual(['address']);
    expect(paths(ROUTES['me.get'].query, 'x=1')).toEqual(['x']);
  });

  test('days of usage are a range of at most 92 days', () => {
    const { query: days } = ROUTES['usage.daily'];
    expect(paths(days, 'from=2026-01-01&to=2026-04-02')).toEqual([]);
    expect(paths(days, 'from=2026-01-01&to=2026-04-03')).toEqual(['from']);
    expect(paths(days, 'from=2026-01-02&to=2026-01-01')).toEqual(['from']);
    expect(paths(days, 'from=2026-02-30')).toEqual(['from']);
    expect(paths(days, 'to=2026-1-1')).toEqual(['to']);
  });
});

test('text that is not JSON is a refusal, not an exception', () => {
  expect(parseJson('{"a":1}')).toEqual({ ok: true, value: { a: 1 } });
  expect(parseJson('{')).toMatchObject({ ok: false, code: 'invalid_request', details: { errors: [{ path: '' }] } });
});

test('a key given twice is a refusal that names it, and nothing is picked', () => {
  const paths = (text: string) => errorsOf(parseJson(text));
  expect(paths('{"to":["a@x.example"],"subject":"s","to":["b@x.example"]}')).toEqual([
    { path: 'to', message: 'is given more than once' },
  ]);
  expect(paths('{"to":[{"address":"a"},{"address":"b","n\\u0061me":"","name":"x"}]}')).toEqual([
    { path: 'to[1].name', message: 'is given more than once' },
  ]);
  const long = 'x'.repeat(1_000);
  expect(paths(`{"${long}":1,"${long}":2}`)[0]?.path.length).toBeLessThan(300);
});
