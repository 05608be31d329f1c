import { env, exports } from 'cloudflare:workers';
import type { RouteAnswer } from '@pmail/contracts/routes.ts';
import { fromBase64Url, toBase64, toBase64Url } from '@pmail/core/hash.ts';
import type { AttachmentId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { type LinkTarget, mintLink } from '@pmail/core/links.ts';
import { parseMail } from '@pmail/mime/parse.ts';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { config } from '../src/env.ts';
import { TenantQuota } from '../src/index.ts';
import { rotateSigningKey, type SigningKey, signingKeys } from '../src/ports/keyring.ts';
import { newId } from '../src/ports/random.ts';
import { accepted, inMailbox, type Lab, letter, makeLab, person, type Sent } from './mail.ts';
import { keepStorage } from './storage.ts';
import { call, db, deploy, send, sql } from './support.ts';

/** Files too large to send: they become links in the mail, and whoever has one may read the file for a while. */

keepStorage();

let root: string;
let lab: Lab;

beforeAll(async () => {
  root = await deploy();
  lab = await makeLab(root);
  await policy({ large_attachments: 'link' });
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const policy = (change: object) =>
  call(root, 'tenants.policy.update', { params: { tenant_id: lab.tenant }, body: { policy: change } });

/** Bytes that are the same in no two places nearby, so that a wrong slice is seen. */
function bytes(length: number, seed: number): Uint8Array {
  return Uint8Array.from({ length }, (_, n) => (n * 31 + (n >> 8) * 17 + seed) & 0xff);
}

const LARGE = bytes(2_600_000, 1);
const MIDDLE = bytes(1_300_000, 2);
const SMALL = bytes(10_000, 3);

const file = (filename: string, content: Uint8Array, content_type = 'application/octet-stream') => ({
  filename,
  content_type,
  content_base64: toBase64(content),
});

const FILES = [
  file('small.bin', SMALL),
  file('plän "é".pdf', LARGE, 'application/pdf'),
  file('middle.html', MIDDLE, 'text/html'),
];

/** The mail of a message as it was composed. */
async function composed(id: string, from: string = lab.ann) {
  const response = await send(lab.key, 'messages.raw.get', { params: { identity_id: from, message_id: id } });
  return parseMail(new Uint8Array(await response.arrayBuffer()));
}

const LINK = /https:\/\/api\.example\/v1\/links\/([A-Za-z0-9_-]+)/g;
const tokensIn = (text: string | null): string[] => [...(text ?? '').matchAll(LINK)].map(([, token = '']) => token);

const open = (token: string) => send(null, 'links.get', { params: { token } });

async function statusOf(token: string): Promise<number> {
  const response = await open(token);
  await response.arrayBuffer();
  return response.status;
}

describe('a message with files over the limit', () => {
  test('is sent with links in their place, which lead to the same bytes', async () => {
    const body = letter({ text: 'See the plans', html: '<p>See the <b>plans</b></p>', attachments: FILES });
    const sent = await accepted(lab.key, lab.ann, body);
    expect(sent.attachments.map(({ filename, size }) => [filename, size])).toEqual([
      ['small.bin', SMALL.length],
      ['plän "é".pdf', LARGE.length],
      ['middle.html', MIDDLE.length],
    ]);
    const mail = await composed(sent.id);
    // The largest goes first, and then it fits.
    expect(mail.attachments.map(({ filename }) => filename)).toEqual(['small.bin', 'middle.html']);
    const [token = '', ...more] = tokensIn(mail.text);
    expect(more).toEqual([]);
    expect(tokensIn(mail.html)).toEqual([token]);
    const expires = Math.floor(Date.parse(sent.sent_at ?? '') / 1_000) + 72 * 3_600;
    expect(mail.text).toContain(`(available until ${new Date(expires * 1_000).toISOString()})`);

    const response = await exports.default.fetch(`https://api.example/v1/links/${token}`);
    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'application/pdf',
      'content-length': String(LARGE.length),
      'content-disposition': `attachment; filename="pl_n ___.pdf"; filename*=UTF-8''pl%C3%A4n%20%22%C3%A9%22.pdf`,
      'content-security-policy': 'sandbox',
      'cache-control': 'private, no-store',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    });
    expect(toBase64(new Uint8Array(await response.arrayBuffer()))).toBe(toBase64(LARGE));
    // Its sender reads it like any other.
    const params = { identity_id: lab.ann, message_id: sent.id, attachment_id: sent.attachments[1]?.id ?? '' };
    const own = await send(lab.key, 'messages.attachments.get', { params });
    expect((await own.arrayBuffer()).byteLength).toBe(LARGE.length);
  });

  test('gives no more links than it takes, and none where all fits', async () => {
    const both = await accepted(
      lab.key,
      lab.ann,
      letter({ attachments: [file('a.bin', bytes(2_500_000, 4)), file('b.bin', bytes(2_400_000, 5))], text: 'x' }),
    );
    expect(tokensIn((await composed(both.id)).text)).toHaveLength(1);
    const fits = await accepted(lab.key, lab.ann, letter({ attachments: [file('small.bin', SMALL)] }));
    const mail = await composed(fits.id);
    expect([tokensIn(mail.text), mail.attachments.length]).toEqual([[], 1]);
  });

  test('shows a harmful type as bytes, whatever a mail program appends to the address', async () => {
    const { token } = await linked(lab.ann, [file('page.html', bytes(4_000_000, 6), 'text/html')]);
    const response = await exports.default.fetch(`https://api.example/v1/links/${token}?utm_source=a&utm_source=b`);
    expect(response.headers.get('content-type')).toBe('application/octet-stream');
    expect(response.headers.get('content-disposition')).toContain('attachment; ');
    await response.arrayBuffer();
  });
});

/** Sends files of which the first becomes a link. */
async function linked(from: string = lab.ann, files = [file('large.bin', bytes(4_000_000, 7))]) {
  const sent = await accepted(lab.key, from, letter({ attachments: files }));
  const [token = ''] = tokensIn((await composed(sent.id, from)).text);
  return { sent, token };
}

/** One link for all that do no harm to it. */
let shared: Promise<{ sent: Sent; token: string }> | undefined;
function sharedLink() {
  shared ??= linked();
  return shared;
}

const currentKey = async (): Promise<SigningKey> => {
  const ring = { db, master_key: config(env).master_key, now: () => Date.now(), cacheKey: {} };
  const [key] = await signingKeys(ring, 'link');
  if (key === undefined) throw new Error('no link key');
  return key;
};

function targetOf({ id, attachments }: Sent, changes: Partial<LinkTarget> = {}): LinkTarget {
  return {
    tenant_id: lab.tenant,
    identity_id: lab.ann,
    message_id: id,
    attachment_id: attachments[0]?.id as AttachmentId,
    expires: Math.floor(Date.now() / 1_000) + 3_600,
    ...changes,
  };
}

describe('a link', () => {
  test('ends at its time', async () => {
    await policy({ link_ttl_hours: 1 });
    const { sent, token } = await linked();
    await policy({ link_ttl_hours: null });
    const end = (Math.floor(Date.parse(sent.sent_at ?? '') / 1_000) + 3_600) * 1_000;
    expect(await statusOf(token)).toBe(200);
    vi.setSystemTime(end - 1);
    expect(await statusOf(token)).toBe(200);
    vi.setSystemTime(end);
    expect(await statusOf(token)).toBe(404);
  });

  test('works whoever opens it, also with a key that could not read the message', async () => {
    const { token } = await sharedLink();
    expect((await send('pmk_live_nonsense', 'links.get', { params: { token } })).status).toBe(200);
  });

  test('works while its sender is paused or the tenant suspended: the mail has left', async () => {
    const { token } = await sharedLink();
    await sql("UPDATE identities SET status = 'paused', pause_reason = 'manual' WHERE id = ?", lab.ann);
    await sql("UPDATE tenants SET status = 'suspended' WHERE id = ?", lab.tenant);
    expect(await statusOf(token)).toBe(200);
    await sql("UPDATE identities SET status = 'active', pause_reason = NULL WHERE id = ?", lab.ann);
    await sql("UPDATE tenants SET status = 'active' WHERE id = ?", lab.tenant);
  });
});

describe('whatever is wrong with a link, the answer is the same', () => {
  /** All of an answer but the id of the request. */
  async function seen(response: Response): Promise<unknown> {
    const { error } = await response.json<{ error: { request_id: string } }>();
    const headers = Object.fromEntries(
      [...response.headers].filter(([name]) => name !== 'request-id' && name !== 'x-request-id'),
    );
    return { status: response.status, headers, error: { ...error, request_id: '' } };
  }

  const wrongTokens: [string, (link: { sent: Sent; token: string }) => string | Promise<string>][] = [
    ['no token', () => 'x'],
    ['not base64url', ({ token }) => `${token.slice(0, -1)}=`],
    ['cut off', ({ token }) => token.slice(0, -4)],
    ['longer', ({ token }) => `${token}AAAA`],
    ['percent signs', () => '%00%ff'],
    ['very long', () => 'A'.repeat(6_000)],
    ['no payload', () => toBase64Url(new Uint8Array(16))],
    ['zeros', () => toBase64Url(new Uint8Array(159))],
    ['of a kid that is no character', () => toBase64Url(new TextEncoder().encode(`l1:\0:att:${'x'.repeat(40)}`))],
    [
      'signed by another deployment',
      async ({ sent }) =>
        mintLink({ kid: (await currentKey()).kid, secret: new Uint8Array(32).fill(9) }, targetOf(sent)),
    ],
    ['of an unknown key', async ({ sent }) => mintLink({ ...(await currentKey()), kid: 'z' }, targetOf(sent))],
    [
      'expired',
      async ({ sent }) => mintLink(await currentKey(), targetOf(sent, { expires: Math.floor(Date.now() / 1_000) })),
    ],
    [
      'to an unknown file',
      async ({ sent }) => mintLink(await currentKey(), targetOf(sent, { attachment_id: newId('att', Date.now()) })),
    ],
    [
      'to the file of another message',
      async ({ sent }) => {
        const other = await accepted(lab.key, lab.ann, letter({ attachments: [file('other.bin', SMALL)] }));
        return mintLink(await currentKey(), targetOf(sent, { message_id: other.id }));
      },
    ],
    [
      'to an unknown message',
      async ({ sent }) => mintLink(await currentKey(), targetOf(sent, { message_id: newId('msg', Date.now()) })),
    ],
    [
      'to the mailbox of another',
      async ({ sent }) => mintLink(await currentKey(), targetOf(sent, { identity_id: lab.bob })),
    ],
    [
      'to an unknown identity',
      async ({ sent }) => mintLink(await currentKey(), targetOf(sent, { identity_id: newId('idn', Date.now()) })),
    ],
    [
      'to another tenant',
      async ({ sent }) => mintLink(await currentKey(), targetOf(sent, { tenant_id: newId('ten', Date.now()) })),
    ],
  ];

  test.each(wrongTokens)('%s', async (_what, make) => {
    const expected = await seen(await open('x'));
    expect(expected).toMatchObject({ status: 404, error: { code: 'attachment_not_found' } });
    const wrong = await make(await sharedLink());
    expect(await seen(await open(wrong))).toEqual(expected);
  });

  test('any byte of it changed', async () => {
    const { token } = await sharedLink();
    const expected = await seen(await open('x'));
    const raw = fromBase64Url(token) ?? new Uint8Array(0);
    for (let at = 0; at < raw.length; at += 5) {
      const changed = Uint8Array.from(raw, (byte, index) => (index === at ? byte ^ 1 : byte));
      expect(await seen(await open(toBase64Url(changed))), `byte ${at}`).toEqual(expected);
    }
    expect(await statusOf(token)).toBe(200);
  });

  test('the file, its message or its mailbox gone, or found to be harmful', async () => {
    const expected = await seen(await open('x'));
    const { sent, token } = await linked();
    const attachment = sent.attachments[0]?.id ?? '';
    await inMailbox(lab.ann, "UPDATE attachments SET risk = 'executable' WHERE id = ?", attachment);
    expect(await seen(await open(token))).toEqual(expected);
    await inMailbox(lab.ann, 'UPDATE attachments SET risk = NULL WHERE id = ?', attachment);
    for (const status of ['deleting', 'deleted']) {
      await sql('UPDATE identities SET status = ? WHERE id = ?', status, lab.ann);
      expect(await seen(await open(token)), status).toEqual(expected);
    }
    await sql("UPDATE identities SET status = 'active' WHERE id = ?", lab.ann);
    for (const status of ['erasing', 'erased']) {
      await sql('UPDATE tenants SET status = ? WHERE id = ?', status, lab.tenant);
      expect(await seen(await open(token)), status).toEqual(expected);
    }
    await sql("UPDATE tenants SET status = 'active' WHERE id = ?", lab.tenant);
    expect(await statusOf(token)).toBe(200);
    await env.BLOBS.delete(`t/${lab.tenant}/i/${lab.ann}/out/${sent.id}/a/${attachment}`);
    expect(await seen(await open(token))).toEqual(expected);
  });

  test('failures are counted against the caller, like those of keys; what works is not', async () => {
    const { token } = await sharedLink();
    const counted = vi.spyOn(env.RL_API, 'limit');
    const headers = { 'cf-connecting-ip': '192.0.2.44' };
    expect((await send(null, 'links.get', { params: { token }, headers })).status).toBe(200);
    expect(counted).not.toHaveBeenCalled();
    expect((await send(null, 'links.get', { params: { token: 'x' }, headers })).status).toBe(404);
    await send('pmk_live_nonsense', 'me.get', { headers });
    const [[link] = [], [key] = []] = counted.mock.calls;
    expect(link?.key).toMatch(/^anon:[0-9a-f]{16}$/);
    expect(link).toEqual(key);
    counted.mockResolvedValue({ success: false });
    expect((await send(null, 'links.get', { params: { token: 'x' }, headers })).status).toBe(429);
    expect((await send(null, 'links.get', { params: { token }, headers })).status).toBe(200);
  });
});

describe('when the key is replaced', () => {
  const rotate = async (query: Record<string, string> = {}): Promise<RouteAnswer<'platform.keys.rotate'>['body']> =>
    call(root, 'platform.keys.rotate', { params: { purpose: 'link' }, query });
  const WEEK = LIMITS.link_key_verify_ms;

  test('links made before work on for a week, and new ones are made with the new key', async () => {
    const { sent } = await sharedLink();
    const before = await currentKey();
    const month = Math.floor(Date.now() / 1_000) + 30 * 86_400;
    const token = await mintLink(before, targetOf(sent, { expires: month }));
    const { kid, created_at: at, previous } = await rotate();
    expect(previous).toEqual({
      kid: before.kid,
      verify_until: new Date(Date.parse(at) + WEEK).toISOString(),
      revoked: false,
    });
    expect(await statusOf(token)).toBe(200);
    const next = await linked();
    expect(new TextDecoder().decode(fromBase64Url(next.token)).split(':')[1]).toBe(kid);
    expect(await statusOf(next.token)).toBe(200);
    vi.setSystemTime(Date.parse(at) + WEEK - 1);
    expect(await statusOf(token)).toBe(200);
    vi.setSystemTime(Date.parse(at) + WEEK);
    expect(await statusOf(token)).toBe(404);
    vi.useRealTimers();
    expect(await statusOf(token)).toBe(200);
  });

  test('and revoked, they end at once, also where the key is still remembered', async () => {
    const older = await linked();
    await rotate();
    const { token } = await linked();
    expect([await statusOf(older.token), await statusOf(token)]).toEqual([200, 200]);
    const { previous } = await rotate({ revoke_previous: 'true' });
    expect(previous?.revoked).toBe(true);
    expect([await statusOf(older.token), await statusOf(token)]).toEqual([404, 404]);

    const next = await linked();
    expect(await statusOf(next.token)).toBe(200);
    // As another isolate would have it, which was not told.
    const { kid } = await currentKey();
    await sql("UPDATE signing_keys SET verify_until = ? WHERE purpose = 'link' AND kid = ?", Date.now() - 1, kid);
    expect(await statusOf(next.token)).toBe(404);
    await sql("UPDATE signing_keys SET verify_until = NULL WHERE purpose = 'link' AND kid = ?", kid);
    expect(await statusOf(next.token)).toBe(200);
  });
});

test('links are signed with the key that is in use, also where an isolate remembers one just revoked', async () => {
  const own = await person(root, lab.tenant, 'late');
  const before = await linked(own);
  const elsewhere = { db, master_key: config(env).master_key, now: () => Date.now(), cacheKey: {} };
  const rotation = await rotateSigningKey(elsewhere, 'link', true, () => ({
    id: newId('aud', Date.now()),
    tenant_id: null,
    actor_key_id: null,
    action: 'signing_key.rotate',
    target_type: null,
    target_id: null,
    details: null,
    request_id: null,
    at: Date.now(),
  }));
  expect(rotation.kind).toBe('rotated');
  expect(await statusOf(before.token)).toBe(404);
  expect(await statusOf((await linked(own)).token)).toBe(200);
});

test('a policy that refuses large files makes no links', async () => {
  const strict = await makeLab(root, 'strict');
  const body = letter({ attachments: FILES });
  const params = { identity_id: strict.ann };
  const response = await send(strict.key, 'messages.send', { params, body, headers: { 'idempotency-key': 'k' } });
  expect(response.status).toBe(413);
});

test('a repeat is answered without looking at sizes, and a dry run makes neither file nor allowance', async () => {
  const own = await person(root, lab.tenant, 'dry');
  const reserve = vi.spyOn(TenantQuota.prototype, 'reserve');
  const input = { params: { identity_id: own }, body: letter({ attachments: FILES }), query: { dry_run: 'true' } };
  expect(await call(lab.key, 'messages.send', { ...input, status: 200 })).toMatchObject({ would_send: true });
  expect(reserve).not.toHaveBeenCalled();
  expect((await env.BLOBS.list({ prefix: `t/${lab.tenant}/i/${own}/` })).objects).toEqual([]);
  const body = letter({ attachments: FILES });
  const first = await accepted(lab.key, own, body, 'k');
  expect(await accepted(lab.key, own, body, 'k')).toEqual({ ...first, deduplicated: true });
});
