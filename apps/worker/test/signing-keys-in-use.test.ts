import type { RouteAnswer } from '@pmail/contracts/routes.ts';
import { SIGNING_KIDS } from '@pmail/core/keys/signing.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { accepted, arrive, type Lab, letter, makeLab, person } from './mail.ts';
import { keepStorage } from './storage.ts';
import { call, deploy, paths, refusal, sql } from './support.ts';

/** What was signed before its key was replaced works on for its time, and not at all when the key was revoked. */

keepStorage();

let root: string;
let lab: Lab;

beforeAll(async () => {
  root = await deploy();
  lab = await makeLab(root);
});

afterEach(() => {
  vi.useRealTimers();
});

type Rotated = RouteAnswer<'platform.keys.rotate'>['body'];

const rotate = (purpose: string, query: Record<string, string> = {}): Promise<Rotated> =>
  call(root, 'platform.keys.rotate', { params: { purpose }, query });
const revoke = (purpose: string): Promise<Rotated> => rotate(purpose, { revoke_previous: 'true' });

describe('a cursor', () => {
  let twin: string;

  beforeAll(async () => {
    twin = await person(root, lab.tenant, 'twin');
    await accepted(lab.key, twin);
    await accepted(lab.key, twin);
  });

  const list = { params: { identity_id: '' }, query: { limit: '1' } };
  beforeEach(() => {
    list.params.identity_id = twin;
  });
  const cursor = async (): Promise<string> => (await call(lab.key, 'messages.list', list)).next_cursor ?? '';
  const use = (text: string) => ({ ...list, query: { ...list.query, cursor: text } });

  test('made before a rotation leads on, and the next page is signed anew', async () => {
    const before = await cursor();
    const { kid } = await rotate('cursor');
    expect(before.charAt(2)).not.toBe(kid);
    expect((await call(lab.key, 'messages.list', use(before))).data).toHaveLength(1);
    expect((await cursor()).charAt(2)).toBe(kid);
  });

  test('of a revoked key is none', async () => {
    const before = await cursor();
    await revoke('cursor');
    const answer = await refusal(lab.key, 'messages.list', use(before));
    expect([answer.code, paths(answer)]).toEqual(['invalid_request', ['cursor']]);
    expect((await call(lab.key, 'messages.list', use(await cursor()))).data).toHaveLength(1);
  });

  test('outlives no day, and its key no less', async () => {
    const before = await cursor();
    const made = Date.now();
    await rotate('cursor');
    vi.setSystemTime(made + LIMITS.cursor_age_ms_max - 60_000);
    expect((await call(lab.key, 'messages.list', use(before))).data).toHaveLength(1);
    for (const late of [60_000, 5 * LIMITS.cursor_age_ms_max]) {
      vi.setSystemTime(made + LIMITS.cursor_age_ms_max + late);
      expect(await refusal(lab.key, 'messages.list', use(before))).toEqual({ code: 'cursor_expired' });
    }
  });

  test('that is old says so when its key is forgotten, and when the id of that key means another', async () => {
    const before = await cursor();
    const made = Date.now();
    await rotate('cursor');
    vi.setSystemTime(made + 2 * LIMITS.cursor_age_ms_max);
    await sql("DELETE FROM signing_keys WHERE purpose = 'cursor' AND kid = ?", before.charAt(2));
    expect(await refusal(lab.key, 'messages.list', use(before))).toEqual({ code: 'cursor_expired' });
    for (let turn = 0; (await rotate('cursor')).kid !== before.charAt(2); turn++) {
      expect(turn).toBeLessThan(SIGNING_KIDS.length);
      // Ids come round again when what they have signed is over.
      vi.setSystemTime(Date.now() + LIMITS.cursor_age_ms_max);
    }
    expect(await refusal(lab.key, 'messages.list', use(before))).toEqual({ code: 'cursor_expired' });
    const forged = before.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'));
    expect((await refusal(lab.key, 'messages.list', use(forged))).code).toBe('cursor_expired');
    const fresh = await cursor();
    expect((await call(lab.key, 'messages.list', use(fresh))).data).toHaveLength(1);
    const broken = await refusal(lab.key, 'messages.list', use(`c_${before.charAt(2)}AAAA${fresh.slice(7)}`));
    expect(broken.code).toBe('invalid_request');
  });
});

describe('the token of a thread', () => {
  const message = (identity_id: string, message_id: string) =>
    call(lab.key, 'messages.get', { params: { identity_id, message_id } });

  /** A message in a thread of its own, and the address that its answers are sent to. */
  async function written(from: string): Promise<{ thread: string; address: string }> {
    const { thread_id: thread, reply_to: replyTo } = await accepted(lab.key, from, letter({ subject: 'Offer' }));
    return { thread, address: replyTo[0]?.address ?? '' };
  }

  /** An answer that says in no other way what it answers, from the person who was written to. */
  async function answered(from: string, address: string) {
    const raw = `From: delivered@simulator.invalid\nTo: ${address}\nSubject: ${crypto.randomUUID()}\n\nYes`;
    return message(from, await arrive(from, raw, { envelope_to: address }));
  }

  test('made before a rotation files answers for ninety days', async () => {
    const from = await person(root, lab.tenant, 'old');
    const { thread, address } = await written(from);
    expect(address).toMatch(/^old\.lab\+t[0-9a-hjkmnp-tv-z]{2,13}\.[0-9a-hjkmnp-tv-z]{8}@agents\.example$/);
    expect(await answered(from, address)).toMatchObject({ thread_id: thread, trust: { flags: [] } });
    const { kid, created_at: at } = await rotate('thread');
    expect(await answered(from, address)).toMatchObject({ thread_id: thread, trust: { flags: [] } });
    const next = await written(from);
    expect(next.address).toContain(`+t${kid}`);
    expect(await answered(from, next.address)).toMatchObject({ thread_id: next.thread, trust: { flags: [] } });
    vi.setSystemTime(Date.parse(at) + LIMITS.thread_key_verify_ms - 1);
    expect(await answered(from, address)).toMatchObject({ thread_id: thread, trust: { flags: [] } });
    vi.setSystemTime(Date.parse(at) + LIMITS.thread_key_verify_ms);
    const late = await answered(from, address);
    expect(late.trust?.flags).toEqual(['thread_join_unverified']);
    expect(late.thread_id).not.toBe(thread);
  });

  test('of a revoked key is invalid: the mail comes, with a mark, and its headers alone count', async () => {
    const from = await person(root, lab.tenant, 'gone');
    const { thread, address } = await written(from);
    await revoke('thread');
    const stray = await answered(from, address);
    expect(stray).toMatchObject({ status: 'received', trust: { flags: ['thread_join_unverified'] } });
    expect(stray.thread_id).not.toBe(thread);
    const id = await arrive(from, `From: a@example.org\nMessage-ID: <q@example.org>\nSubject: Q\n\nQ`);
    const { thread_id: asked } = await message(from, id);
    const raw = `From: b@example.org\nIn-Reply-To: <q@example.org>\nSubject: Re: Q\n\nA`;
    const joined = await message(from, await arrive(from, raw, { envelope_to: address }));
    expect(joined).toMatchObject({ thread_id: asked });
    expect(joined.trust?.flags).toContain('thread_join_unverified');
  });
});
