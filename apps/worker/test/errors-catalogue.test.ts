import { exports } from 'cloudflare:workers';
import { errorsOf, ROUTE_IDS, type RouteId, routeSpec } from '@pmail/contracts/routes.ts';
import { wireError } from '@pmail/contracts/schemas/error.ts';
import { ERRORS, type ErrorCode } from '@pmail/core/errors.ts';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { access, limited } from './catalogue/access.ts';
import { answers } from './catalogue/answers.ts';
import { ELSEWHERE, IMPOSSIBLE } from './catalogue/coverage.ts';
import { faults } from './catalogue/faults.ts';
import { missingThings } from './catalogue/missing.ts';
import { policies } from './catalogue/policy.ts';
import { contentions } from './catalogue/quota.ts';
import { requests } from './catalogue/request.ts';
import { subscriptions } from './catalogue/subscriptions.ts';
import { makeWorld, type World } from './catalogue/world.ts';
import { Net } from './net.ts';
import { keepStorage } from './storage.ts';

/**
 * Every code of every route, provoked over HTTP. The table of provocations is the list of what was provoked where; the
 * last test holds it against what the contract declares.
 */

keepStorage();

// Buckets that are full stay so for the rest of the minute.
const TABLE = [
  ...access,
  ...missingThings,
  ...requests,
  ...policies,
  ...answers,
  ...contentions,
  ...subscriptions,
  ...faults,
  ...limited,
];

let world: World;

beforeAll(async () => {
  // The faults below are logged, as they should be.
  vi.spyOn(console, 'error').mockReturnValue();
  new Net().install();
  world = await makeWorld();
});

test.each(TABLE)('$code when $when', async ({ code, routes, provoke, also }) => {
  for (const route of routes) {
    const response = await provoke(world, route);
    const text = await response.text();
    const answer = wireError.parse(JSON.parse(text)).error;
    expect(answer.code, `${route} answered ${text}`).toBe(code);
    expect(errorsOf(routeSpec(route)), `${route} declares`).toContain(code);
    const { status, message, fix, retryable } = ERRORS[code];
    expect(response.status).toBe(status);
    expect(answer).toMatchObject({ message, fix, retryable });
    expect(answer.request_id).toMatch(/^req_[0-9A-Z]{26}$/);
    expect(response.headers.get('request-id')).toBe(answer.request_id);
    expect(response.headers.get('www-authenticate')).toBe(status === 401 ? 'Bearer' : null);
    also?.({ details: answer.details, headers: response.headers });
  }
});

const declared = ROUTE_IDS.flatMap((route) => errorsOf(routeSpec(route)).map((code) => ({ route, code })));
const inTable = (route: RouteId, code: ErrorCode): boolean =>
  TABLE.some((entry) => entry.code === code && entry.routes.includes(route));
const impossible = (route: RouteId, code: ErrorCode): boolean =>
  IMPOSSIBLE.some((entry) => entry.code === code && entry.on(route));
const elsewhere = Object.entries(ELSEWHERE).flatMap(([file, routes]) =>
  Object.entries(routes).flatMap(([route, codes]) => codes.map((code) => ({ file, route: route as RouteId, code }))),
);

test('every code of every route is provoked by some test', () => {
  const left = declared.filter(
    ({ route, code }) =>
      !inTable(route, code) &&
      !impossible(route, code) &&
      !elsewhere.some((entry) => entry.route === route && entry.code === code),
  );
  expect(left.map(({ route, code }) => `${route} ${code}`)).toEqual([]);
});

test('what cannot be provoked is not, and what other files provoke is theirs', () => {
  const wrong = declared.filter(({ route, code }) => inTable(route, code) && impossible(route, code));
  expect(wrong).toEqual([]);
  const sources = import.meta.glob('./*.test.ts', { query: '?raw', import: 'default', eager: true });
  const unnamed = elsewhere.filter(({ file, route, code }) => {
    const source = sources[`./${file}.test.ts`] ?? '';
    return !source.includes(`'${route}'`) || !source.includes(code);
  });
  expect(unnamed).toEqual([]);
});

describe('paths', () => {
  const ask = async (method: string, path: string) => {
    const response = await exports.default.fetch(`https://api.example${path}`, { method });
    const { error } = wireError.parse(await response.json());
    return { code: error.code, allow: response.headers.get('allow'), status: response.status };
  };

  test.each([
    '/',
    '/v1',
    '/V1/me',
    '/v1/me/',
    '/v1//me',
    '/v2/me',
    '/v1/identities/',
    '/v1/identities/x/messages/',
    '/v1/identities//messages',
    '/v1/identities/x/messages/y/raw/z',
    '/v1/identities/%2e%2e/%2e%2e/me/x',
    '/v1/identities/%E0%A4%A/unknown',
    '/%00',
    `/v1/${'x'.repeat(8_000)}`,
  ])('route_not_found at %.40s', async (path) => {
    for (const method of ['GET', 'POST', 'DELETE']) {
      expect(await ask(method, path)).toEqual({ code: 'route_not_found', allow: null, status: 404 });
    }
  });

  test('method_not_allowed names the methods there are', async () => {
    const paths = new Map<string, string[]>();
    for (const { path, method } of ROUTE_IDS.map(routeSpec)) paths.set(path, [...(paths.get(path) ?? []), method]);
    const shadowed = '/v1/identities/lookup';
    for (const [path, methods] of paths) {
      if (path === shadowed) continue;
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].filter(
        (name) => !methods.includes(name),
      )) {
        const answer = await ask(method, path.replace(/\{\w+\}/g, 'x'));
        expect(answer, `${method} ${path}`).toEqual({
          code: 'method_not_allowed',
          allow: methods.join(', '),
          status: 405,
        });
      }
    }
  });
});
