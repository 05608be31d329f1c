import { createExecutionContext, waitOnExecutionContext } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import type { RouteId } from '@pmail/contracts/routes.ts';
import type { WireError } from '@pmail/core/errors.ts';
import { makeApiKey } from '@pmail/core/keys/api-key.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import worker from '../src/index.ts';
import { keyed, type Lab, letter, makeLab, person } from './mail.ts';
import { keepStorage } from './storage.ts';
import { type Call, deploy, plantKey, urlOf } from './support.ts';

/** A large body is read only for a key that has proved itself; nobody else's word moves megabytes. */

keepStorage();

const KIB = 1024;

let root: string;
let lab: Lab;
let from: string;

beforeAll(async () => {
  root = await deploy();
  lab = await makeLab(root);
  from = await person(root, lab.tenant, 'writer');
});

beforeEach(() => {
  vi.spyOn(console, 'error').mockReturnValue();
});

afterEach(() => {
  vi.restoreAllMocks();
});

/** Posts a body that comes in pieces of 64 KiB, with or without its length. */
async function post(key: string, id: RouteId, text: string, { length, ...call }: Call & { length: boolean }) {
  const bytes = new TextEncoder().encode(text);
  let sent = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        if (sent >= bytes.length) return controller.close();
        controller.enqueue(bytes.slice(sent, sent + 64 * KIB));
        sent += 64 * KIB;
      },
    },
    { highWaterMark: 0 },
  );
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    ...(length ? { 'content-length': String(bytes.length) } : {}),
    ...call.headers,
  };
  const context = createExecutionContext();
  const request = new Request(urlOf(id, call), { method: 'POST', headers, body });
  const response = await worker.fetch(request as Parameters<typeof worker.fetch>[0], env, context);
  await waitOnExecutionContext(context);
  const answer = await response.json<Partial<WireError>>();
  return { status: response.status, code: answer.error?.code, sent: Math.min(sent, bytes.length) };
}

const invented = () => makeApiKey('live', crypto.getRandomValues(new Uint8Array(40))).key;
const large = () => JSON.stringify(letter({ text: 'x'.repeat(300 * KIB) }));
const to = (identity_id: string) => ({ params: { identity_id }, headers: keyed() });

/** Which buckets a request counts in, each as often as it does. */
function counted(): () => string[] {
  const spies = [vi.spyOn(env.RL_API, 'limit'), vi.spyOn(env.RL_TENANT, 'limit'), vi.spyOn(env.RL_SEND, 'limit')];
  return () => spies.flatMap(({ mock }) => mock.calls.map(([{ key }]) => (key.startsWith('anon:') ? 'anon' : key)));
}

describe.each([
  ['of a known length', true],
  ['that says nothing of its length', false],
])('a large body %s', (_what, length) => {
  test.each([
    ['an invented key', async () => invented(), 'unauthenticated', ['anon']],
    ['a revoked key', () => plantKey({ revoked_at: 1 }), 'key_revoked', ['anon']],
  ])('is not read for %s, which is counted', async (_key, make, code, buckets) => {
    const key = await make();
    const limits = counted();
    expect(await post(key, 'messages.send', large(), { ...to(from), length })).toMatchObject({ code, sent: 0 });
    expect(limits()).toEqual(buckets);
  });

  test('is not read for a key without the permission, nor beyond its rate', async () => {
    const weak = await plantKey({ permissions_json: '["messages:read"]' });
    const denied = await post(weak, 'messages.send', large(), { ...to(from), length });
    expect(denied).toMatchObject({ code: 'permission_denied', sent: 0 });
    vi.spyOn(env.RL_API, 'limit').mockResolvedValue({ success: false });
    const limited = await post(lab.key, 'messages.send', large(), { ...to(from), length });
    expect(limited).toMatchObject({ code: 'rate_limited', sent: 0 });
  });

  test('is read for a key that has proved itself, which is counted once', async () => {
    const limits = counted();
    const text = large();
    const answer = await post(lab.key, 'messages.send', text, { ...to(from), length });
    expect(answer).toEqual({ status: 202, code: undefined, sent: text.length });
    expect(limits()).toEqual([expect.stringMatching(/^key_/), lab.tenant, from]);
  });

  test('that is too large, or not JSON, is told after whose it is and what it lacks', async () => {
    const nobody = 'idn_01JABCDEFGHJKMNPQRSTVWXYZ0';
    const huge = 'x'.repeat(LIMITS.request_body_bytes_max + 1);
    const bad = 'x'.repeat(200 * KIB);
    const code = async (text: string, call: Call) =>
      (await post(lab.key, 'messages.send', text, { ...call, length })).code;
    for (const text of [huge, bad]) {
      expect(await code(text, to(nobody))).toBe('identity_not_found');
      expect(await code(text, { params: { identity_id: from } })).toBe('idempotency_key_required');
    }
    expect(await code(huge, to(from))).toBe('payload_too_large');
    expect(await code(bad, to(from))).toBe('invalid_request');
  });
});

test('a small body costs no read of the directory more', async () => {
  const batch = vi.spyOn(env.DB, 'batch');
  const answer = await post(invented(), 'messages.send', JSON.stringify(letter()), { ...to(from), length: true });
  expect(answer.code).toBe('unauthenticated');
  expect(batch).toHaveBeenCalledOnce();
});
