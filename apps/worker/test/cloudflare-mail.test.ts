import { createMessageBatch } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import type { CloudflareMail } from '@pmail/core/cloudflare/send-request.ts';
import type { IdentityId, MessageId, TenantId } from '@pmail/core/ids.ts';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Env } from '../src/env.ts';
import worker from '../src/index.ts';
import { newId } from '../src/ports/random.ts';
import { type Letter, letter, mailboxRemote, OWNER, waiting } from './mail.ts';
import { addDomain, deploy, identity, makeKey, sql, tenant } from './support.ts';

/** Mail of a live tenant by the `send_email` binding: what the stored message becomes on its way. */

let root: string;
let owner: TenantId;
let key: string;
let from: IdentityId;

beforeEach(async () => {
  root = await deploy();
  ({ id: owner } = await tenant(root, 'acme'));
  key = await makeKey(root, { level: 'tenant', tenant_id: owner });
  ({ id: from } = await identity(root, owner, 'desk', { owner: OWNER, display_name: 'Désk, Acme' }));
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** The provider in memory. */
function binding(...answers: (string | Error)[]): { calls: CloudflareMail[]; env: Env } {
  const calls: CloudflareMail[] = [];
  const send = async (mail: CloudflareMail): Promise<{ messageId: string }> => {
    calls.push(mail);
    const answer = answers.shift() ?? '0101019ab3c4-msg-4471';
    if (answer instanceof Error) throw answer;
    return { messageId: answer };
  };
  const EMAIL = { send } as unknown as SendEmail;
  return { calls, env: { ...env, EMAIL, PM_CF_ACCOUNT_ID: 'account', PM_CF_API_TOKEN: 'token' } };
}

const suppressed = (): Error => Object.assign(new Error('suppressed'), { code: 'E_RECIPIENT_SUPPRESSED' });

async function consume(id: MessageId, to: Env): Promise<void> {
  const body = { v: 1, kind: 'send', tenant_id: owner, identity_id: from, message_id: id, request_id: 'req' };
  const entry = { id: newId('req', Date.now()), timestamp: new Date(), attempts: 1, body };
  await worker.queue(createMessageBatch('pm-outbound', [entry]), to);
}

async function message(id: MessageId) {
  const { stub, call } = await mailboxRemote(from);
  const found = await stub.getMessage(call, id, { text: false, html: false }, true);
  if (found === undefined) throw new Error(`no message ${id}`);
  return found;
}

async function mail(changes: Partial<Letter> = {}): Promise<MessageId> {
  return (await waiting(key, from, letter({ to: ['jo@example.net'], ...changes }))).id;
}

const base64 = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes));
const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('the fields of a call', () => {
  test('are those of the message that was stored', async () => {
    const bytes = Uint8Array.from({ length: 512 }, (_, index) => index % 256);
    const lines = utf8('one\r\ntwo\nthree\r\n\r\n.\r\n');
    const nested = utf8('From: a@b.example\r\nSubject: inner\r\n\r\nText.\r\n');
    const open = utf8('Subject: without a last line end\r\n\r\nText.\r\n\r\n.');
    const files = [
      { filename: 'Plan – Übersicht.bin', content_type: 'application/octet-stream', content_base64: base64(bytes) },
      { filename: 'lines.txt', content_type: 'text/plain', content_base64: base64(lines) },
      { filename: 'inner.eml', content_type: 'message/rfc822', content_base64: base64(nested) },
      { filename: 'open.eml', content_type: 'message/rfc822', content_base64: base64(open) },
      {
        filename: 'logo.png',
        content_type: 'image/png',
        content_base64: base64(bytes),
        disposition: 'inline' as const,
        content_id: 'logo@acme',
      },
    ];
    const text = 'Grüße,\n\n.\nFrom the desk\n  indented  \n\nbye';
    const html = '<p>Grüße <img src="cid:logo@acme" /></p>';
    const id = await mail({
      to: [{ address: 'Jo@Example.net', name: 'Jo „Q“ Public' }, 'kim@example.org'],
      cc: [{ address: 'lee@example.com', name: 'Lee' }],
      bcc: ['audit@example.com'],
      subject: 'Ihre Buchung № 4471 – ein Betreff, der zu lang ist, als dass er in eine Zeile passen könnte',
      text,
      html,
      attachments: files,
      headers: { 'X-Booking': '4471', 'X-Name': 'Grüße an alle', Importance: 'high' },
    });
    const { calls, env: to } = binding();
    await consume(id, to);
    expect(calls).toHaveLength(1);
    const [call] = calls as [CloudflareMail];
    const ulid = (text_: string): string => text_.slice(4).toLowerCase();
    expect(call).toMatchObject({
      from: { email: 'desk.acme@agents.example', name: 'Désk, Acme' },
      to: [{ email: 'jo@example.net', name: 'Jo „Q“ Public' }, 'kim@example.org'],
      cc: [{ email: 'lee@example.com', name: 'Lee' }],
      bcc: ['audit@example.com', `journal+${ulid(id)}.${ulid(from)}@agents.example`],
      subject: 'Ihre Buchung № 4471 – ein Betreff, der zu lang ist, als dass er in eine Zeile passen könnte',
      text,
    });
    expect(call.html).toContain('<p>Grüße <img src="cid:logo@acme" /></p>');
    expect(call.replyTo).toMatchObject({ name: 'Désk, Acme' });
    const replyTo = typeof call.replyTo === 'object' ? call.replyTo.email : '';
    expect(replyTo).toMatch(/^desk\.acme\+t[0-9a-z]{2,}\.[0-9a-z]{8}@agents\.example$/);
    expect(call.headers).toEqual({
      'X-Pylota-Mail-Hop': '1',
      'X-Booking': '4471',
      'X-Name': '=?UTF-8?Q?Gr=C3=BC=C3=9Fe_an_alle?=',
      Importance: 'high',
    });
    const parts = (call.attachments ?? []).map(({ content, ...rest }) => ({ ...rest, content: [...content] }));
    const part = (index: number, of: Uint8Array, rest: object): object => ({
      filename: files[index]?.filename,
      type: files[index]?.content_type,
      content: [...of],
      ...rest,
    });
    expect(parts).toHaveLength(5);
    expect(parts).toEqual(
      expect.arrayContaining([
        part(0, bytes, { disposition: 'attachment' }),
        part(1, lines, { disposition: 'attachment' }),
        part(2, nested, { disposition: 'attachment' }),
        part(3, open, { disposition: 'attachment' }),
        part(4, bytes, { disposition: 'inline', contentId: 'logo@acme' }),
      ]),
    );
    expect(await message(id)).toMatchObject({
      status: 'submitted',
      provider: 'cloudflare',
      provider_message_id: '0101019ab3c4-msg-4471',
      rfc_message_id: null,
    });
    expect((await message(id)).deliveries).toHaveLength(4);
  });

  test.each(['text', 'html'] as const)('have a body with %s alone', async (only) => {
    const id = await mail({ text: undefined, [only]: only === 'text' ? 'Hello' : '<p>Hello</p>' });
    const { calls, env: to } = binding();
    await consume(id, to);
    expect(calls[0]?.text).toBe('Hello');
    expect(calls[0]?.html).toBe(only === 'html' ? '<p>Hello</p>' : undefined);
  });

  test('name what they answer', async () => {
    const first = await mail();
    const { calls, env: to } = binding();
    await consume(first, to);
    const { stub, call } = await mailboxRemote(from);
    const copy = {
      message_id: first,
      header_id: '<7c1e@mx.cf.example>',
      from: 'desk.acme@agents.example',
      subject: 'Hello',
      id_domain: null,
    };
    expect(await stub.learnMessageId(call, copy)).toBe(true);
    const second = await mail({ thread_id: (await message(first)).thread_id });
    await consume(second, to);
    expect(calls[1]?.headers).toMatchObject({
      'In-Reply-To': '<7c1e@mx.cf.example>',
      References: '<7c1e@mx.cf.example>',
    });
    expect(JSON.stringify(calls[1]?.headers)).not.toContain('0101019ab3c4');
  });
});

test('the local provider takes what is made of a message', async () => {
  const file = { filename: 'a.txt', content_type: 'text/plain', content_base64: btoa('the plan') };
  const id = await mail({ html: '<p>Hello</p>', attachments: [file], bcc: ['audit@example.com'] });
  await consume(id, env);
  expect(await message(id)).toMatchObject({ status: 'submitted', provider: 'cloudflare' });
  expect((await message(id)).provider_message_id).not.toBeNull();
});

test('without the binding the message waits', async () => {
  const id = await mail();
  await consume(id, { ...env, EMAIL: undefined as never });
  expect(await message(id)).toMatchObject({ status: 'queued' });
});

describe('a recipient that Cloudflare suppresses', () => {
  test('is asked for over its API, and the rest get the message', async () => {
    const id = await mail({ to: ['jo@example.net'], cc: ['kim@example.org'] });
    const { calls, env: to } = binding(suppressed());
    const asked: { url: string; authorization: string | null }[] = [];
    vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
      const { url } = new Request(input, init);
      asked.push({ url, authorization: new Headers(init?.headers).get('authorization') });
      const email = new URL(url).searchParams.get('email');
      const entry = { id: 'x', email, reason: 'complaint', created_at: '2026-11-29T08:00:00Z', expires_at: null };
      return Response.json({ success: true, errors: [], result: email === 'kim@example.org' ? [entry] : [] });
    });
    await consume(id, to);
    const api = 'https://api.cloudflare.com/client/v4/accounts/account/email/sending/suppressions?email=';
    expect(asked.map(({ url }) => url).toSorted()).toEqual([`${api}jo%40example.net`, `${api}kim%40example.org`]);
    expect(new Set(asked.map(({ authorization }) => authorization))).toEqual(new Set(['Bearer token']));
    expect(calls.map((call) => [call.to, call.cc])).toEqual([
      [['jo@example.net'], ['kim@example.org']],
      [['jo@example.net'], undefined],
    ]);
    const { status, deliveries } = await message(id);
    expect(status).toBe('submitted');
    expect(deliveries?.map((row) => [row.address, row.status, row.smtp_response])).toEqual([
      ['jo@example.net', 'submitted', null],
      ['kim@example.org', 'suppressed', 'provider: suppressed (complaint)'],
    ]);
    expect(await sql('SELECT reason, address_hint, source_message_id FROM suppressions')).toEqual([
      { reason: 'provider', address_hint: 'k***@example.org', source_message_id: id },
    ]);
  });

  test('cannot be known without a token: the message is refused for all', async () => {
    const id = await mail({ to: ['jo@example.net'], cc: ['kim@example.org'] });
    const { calls, env: to } = binding(suppressed());
    await consume(id, { ...to, PM_CF_API_TOKEN: '' });
    expect(calls).toHaveLength(1);
    expect(await message(id)).toMatchObject({
      status: 'rejected',
      status_reason: 'recipient_suppressed_by_provider',
    });
  });
});

test('a message of a domain that fails leaves as the platform address', async () => {
  const domain = await addDomain(owner, 'acme.example.com');
  ({ id: from } = await identity(root, owner, 'front', { owner: OWNER, domain_id: domain, display_name: 'Front' }));
  const id = await mail({ subject: 'Your booking' });
  await sql("UPDATE domains SET state = 'failing' WHERE id = ?", domain);
  const { calls, env: to } = binding();
  await consume(id, to);
  const platform = (await sql("SELECT address FROM addresses WHERE identity_id = ? AND role <> 'primary'", from))[0];
  const address = String(platform?.['address']);
  expect(address).toMatch(/@agents\.example$/);
  const [local, host] = address.split('@');
  expect(calls[0]?.from).toEqual({ email: address, name: 'Front' });
  expect(calls[0]?.replyTo).toMatchObject({ name: 'Front' });
  const replyTo = calls[0]?.replyTo;
  expect(typeof replyTo === 'object' ? replyTo.email : '').toMatch(
    new RegExp(`^${local?.replaceAll('.', '\\.')}\\+t[0-9a-z.]+@${host?.replaceAll('.', '\\.')}$`),
  );
  expect(await message(id)).toMatchObject({ status: 'submitted', flags: ['sent_via_fallback'], from: { address } });
});
