import { ERRORS, type ErrorCode } from '@pmail/core/errors.ts';
import type { MessageResource } from '@pmail/core/message/resource.ts';
import type { Result } from '@pmail/core/result.ts';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { canHold, KEY_LEVELS } from './permissions.ts';
import {
  bodyIsOptional,
  errorsOf,
  type Handlers,
  ROUTE_IDS,
  type RouteAnswer,
  type RouteInput,
  routeSpec,
} from './routes.ts';

describe.each(ROUTE_IDS)('%s', (id) => {
  const spec = routeSpec(id);

  test('declares the parameters of its path and no others', () => {
    const named = [...spec.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    expect(Object.keys(spec.params.shape)).toEqual(named);
    expect(new Set(named).size).toBe(named.length);
  });

  test('takes malformed ids, which name nothing', () => {
    const given = Object.fromEntries(Object.keys(spec.params.shape).map((name) => [name, '../%00']));
    expect(spec.params.safeParse(given).success).toBe(true);
  });

  test('refuses unknown query parameters and unknown fields', () => {
    const unknown = { 'no such field': 'x' };
    // Only the address that stands in mails takes what scanners append to it.
    const refused = spec.query.safeParse(unknown).error?.issues.some(({ code }) => code === 'unrecognized_keys');
    expect(refused).toBe(errorsOf(spec).includes('invalid_request') ? true : undefined);
    if (spec.body !== null) {
      expect(spec.body.safeParse(unknown).error?.issues.some(({ code }) => code === 'unrecognized_keys')).toBe(true);
    }
  });

  test('asks only for permissions that the levels it lets in can hold', () => {
    if (spec.access.kind === 'public') return;
    const { permissions, levels = KEY_LEVELS, waivedFor = [] } = spec.access;
    for (const level of levels) {
      if (waivedFor.includes(level)) continue;
      for (const permission of permissions) expect(canHold(level, permission), `${level} ${permission}`).toBe(true);
    }
  });

  test('looks at the idempotency key only where a key changes something by POST', () => {
    expect(spec.idempotency === 'none').toBe(spec.method !== 'POST' || spec.access.kind === 'public');
    if (spec.rawBody !== undefined) expect(spec.body).toBeNull();
    if (spec.method === 'GET') expect(spec.body).toBeNull();
  });

  test('answers with known codes, each once', () => {
    const codes = errorsOf(spec);
    for (const code of codes) expect(ERRORS[code]).toBeDefined();
    expect(new Set(codes).size).toBe(codes.length);
    expect(new Set(spec.errors).size).toBe(spec.errors.length);
    const statuses = spec.success.map(({ status }) => status);
    expect(new Set(statuses).size).toBe(statuses.length);
    for (const status of statuses) expect(status).toBeLessThan(300);
  });
});

describe('the table', () => {
  test('has no two routes for one request', () => {
    const shapes = ROUTE_IDS.map((id) => {
      const { method, path } = routeSpec(id);
      return `${method} ${path.replace(/\{\w+\}/g, '{}')}`;
    });
    expect(new Set(shapes).size).toBe(shapes.length);
  });

  test('lists a fixed path before one with a parameter in the same place', () => {
    const matches = (pattern: string, path: string): boolean =>
      new RegExp(`^${pattern.replace(/\{\w+\}/g, '[^/]+')}$`).test(path);
    ROUTE_IDS.forEach((id, index) => {
      const { method, path } = routeSpec(id);
      for (const earlier of ROUTE_IDS.slice(0, index)) {
        const other = routeSpec(earlier);
        expect(other.method === method && matches(other.path, path), `${earlier} hides ${id}`).toBe(false);
      }
    });
  });

  test('opens nothing but health, the document, links and the hooks of providers to the public', () => {
    expect(ROUTE_IDS.filter((id) => routeSpec(id).access.kind === 'public')).toEqual([
      'health.get',
      'openapi.get',
      'links.get',
      'hooks.ses',
    ]);
  });

  test('requires the idempotency key where mail is sent', () => {
    expect(ROUTE_IDS.filter((id) => routeSpec(id).idempotency === 'required')).toEqual([
      'messages.send',
      'messages.reply',
      'messages.reply_all',
      'messages.forward',
    ]);
  });

  test('lets a request without a body stand for an empty object where nothing has to be said', () => {
    expect(ROUTE_IDS.filter((id) => bodyIsOptional(routeSpec(id)))).toEqual([
      'keys.rotate',
      'webhooks.rotateSecret',
      'suppressions.delete',
      'lists.put',
    ]);
  });
});

test('codes that follow from the declaration', () => {
  expect(errorsOf(routeSpec('health.get'))).toEqual(['internal_error', 'unavailable', 'timeout', 'invalid_request']);
  expect(errorsOf(routeSpec('links.get'))).not.toContain('invalid_request');
  const of = (id: Parameters<typeof routeSpec>[0]): ErrorCode[] => errorsOf(routeSpec(id));
  expect(of('messages.send')).toEqual(
    expect.arrayContaining(['idempotency_key_required', 'payload_too_large', 'identity_not_found', 'rate_limited']),
  );
  expect(of('messages.attachments.get')).toEqual(
    expect.arrayContaining(['identity_not_found', 'message_not_found', 'attachment_not_found', 'permission_denied']),
  );
  expect(of('events.list')).toContain('cursor_expired');
  expect(of('events.get')).not.toContain('cursor_expired');
  expect(of('keys.create')).not.toContain('idempotency_key_required');
  expect(of('lists.get')).toEqual(
    expect.arrayContaining(['tenant_not_found', 'route_not_found', 'list_entry_not_found']),
  );
  // It makes the entry that it names.
  expect(of('lists.put')).not.toContain('list_entry_not_found');
});

test('handlers are typed by the table', () => {
  expectTypeOf<RouteInput<'messages.get'>['params']>().toEqualTypeOf<{ identity_id: string; message_id: string }>();
  expectTypeOf<RouteInput<'messages.get'>['query']>().toEqualTypeOf<{
    include?: ('html' | 'headers' | 'quoted')[] | undefined;
  }>();
  expectTypeOf<RouteInput<'messages.get'>['body']>().toEqualTypeOf<null>();
  expectTypeOf<RouteInput<'messages.list'>['query']['limit']>().toEqualTypeOf<number>();
  expectTypeOf<RouteInput<'messages.resolve'>['body']>().toEqualTypeOf<{ outcome: 'sent' | 'not_sent' }>();
  expectTypeOf<RouteAnswer<'messages.send'>['status']>().toEqualTypeOf<200 | 202>();
  expectTypeOf<Extract<RouteAnswer<'messages.send'>, { status: 202 }>['body']>().toExtend<
    MessageResource & { deduplicated: boolean }
  >();
  expectTypeOf<RouteAnswer<'keys.revoke'>['body']>().toEqualTypeOf<null>();
  const handler: Handlers<{ now: number }>['messages.resolve'] = async (context, { params, body }) => {
    expectTypeOf(context.now).toEqualTypeOf<number>();
    expectTypeOf(params.message_id).toEqualTypeOf<string>();
    return body.outcome === 'sent' ? { ok: false, code: 'not_uncertain' } : { ok: false, code: 'message_not_found' };
  };
  expectTypeOf<Awaited<ReturnType<typeof handler>>>().toEqualTypeOf<Result<RouteAnswer<'messages.resolve'>>>();
});
