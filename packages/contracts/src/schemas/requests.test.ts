import { DEFAULT_POLICY } from '@pmail/core/policy/document.ts';
import { describe, expect, test } from 'vitest';
import type { z } from 'zod';
import { parseBody } from '../validate.ts';
import { createIdentityBody, patchIdentityBody } from './identity.ts';
import { createKeyBody, rotateKeyBody } from './key.ts';
import { patchMessageBody, resolveBody } from './message.ts';
import { patchPolicyBody, policyPatch } from './policy.ts';
import { forwardBody, replyBody, sendBody } from './send.ts';
import { createTenantBody, patchTenantBody } from './tenant.ts';

const FILE = { filename: 'a.txt', content_type: 'text/plain', content_base64: 'aGk=' };
const SEND = { to: ['sam@example.net'], text: 'hi' };
const IDENTITY = { username: 'bookings', display_name: 'Acme' };
const TENANT = { slug: 'acme', name: 'Acme', mode: 'live' };
const KEY = { name: 'agent', level: 'tenant', permissions: ['messages:read'] };

describe('taken as it is', () => {
  const GOOD: [string, z.ZodType, unknown][] = [
    ['least of a send', sendBody, SEND],
    [
      'everything a send has',
      sendBody,
      {
        to: ['sam@example.net', { address: 'jo@example.net', name: 'Jo' }],
        cc: [],
        bcc: [{ address: 'desk@example.net' }],
        subject: 's',
        text: 't',
        html: '<p>t</p>',
        attachments: [FILE, { ...FILE, disposition: 'inline', content_id: 'logo' }],
        kind: 'marketing',
        unsubscribe: { url: 'https://example.com/u', mailto: 'leave@example.com?subject=leave' },
        consent: { basis: 'form', recorded_at: '2026-01-02T03:04:05+02:00' },
        thread_id: 'not an id',
        from_address: 'x',
        labels: ['NOT A LABEL'],
        headers: { 'X-Any': 'thing', constructor: 'x' },
        metadata: { any: 'thing' },
      },
    ],
    // What depends on the rules is refused by the rules, not here.
    ['a send without text', sendBody, { to: ['not an address'] }],
    ['a long subject', sendBody, { ...SEND, subject: 'x'.repeat(5_000) }],
    ['inline without a content id', sendBody, { ...SEND, attachments: [{ ...FILE, disposition: 'inline' }] }],
    ['an empty file', sendBody, { ...SEND, attachments: [{ ...FILE, content_base64: '' }] }],
    ['marketing without consent', sendBody, { ...SEND, kind: 'marketing' }],
    ['49 recipients', sendBody, { to: Array(49).fill('sam@example.net') }],
    ['32 files', sendBody, { ...SEND, attachments: Array(32).fill(FILE) }],
    ['a reply', replyBody, { text: 'yes', kind: 'marketing', from_address: 'a@example.net' }],
    ['an empty reply', replyBody, {}],
    ['a forward', forwardBody, { to: ['sam@example.net'], include_attachments: false }],
    ['any user name', createIdentityBody, { ...IDENTITY, username: 'аbuse' }],
    [
      'everything an identity has',
      createIdentityBody,
      {
        ...IDENTITY,
        purpose: 'p',
        client_id: 'c',
        owner: { name: 'Jo', email: 'Jo@Example.NET' },
        signature: { text: 'one\ntwo', html: null },
        send_policy: { daily_cap: 0, auto_reply: 'denied', require_known_recipient: true },
        metadata: { k: 'v' },
        domain_id: 'x',
      },
    ],
    ['78 letters beyond the basic plane', createIdentityBody, { ...IDENTITY, display_name: '😀'.repeat(78) }],
    [
      'clearing what can be cleared',
      patchIdentityBody,
      {
        purpose: null,
        owner: null,
        signature: { text: null },
        send_policy: { daily_cap: null },
      },
    ],
    [
      'a tenant',
      createTenantBody,
      {
        ...TENANT,
        timezone: 'Europe/Berlin',
        address_suffix: '',
        owner: { email: 'a@example.net' },
        billing: { mode: 'exempt' },
        policy: { max_recipients: 1 },
      },
    ],
    ['a tenant change', patchTenantBody, { status: 'active', owner: null }],
    ['a whole policy', policyPatch, DEFAULT_POLICY],
    ['a policy of nulls', policyPatch, Object.fromEntries(Object.keys(DEFAULT_POLICY).map((name) => [name, null]))],
    ['a null inside a group', policyPatch, { retention: { raw_days: null } }],
    ['a key', createKeyBody, { ...KEY, tenant_id: 'x', expires_at: '2030-01-01T00:00:00-05:00' }],
    ['a key that does not expire', createKeyBody, { ...KEY, expires_at: null }],
    ['a rotation', rotateKeyBody, { overlap_hours: 0 }],
    ['labels', patchMessageBody, { labels_add: ['a:b_c-1'], labels_remove: [], read: false }],
    ['an outcome', resolveBody, { outcome: 'sent' }],
  ];
  test.each(GOOD)('%s', (_, schema, body) => {
    expect(parseBody(schema, body)).toEqual({ ok: true, value: body });
  });
});

describe('refused at its path', () => {
  const BAD: [z.ZodType, unknown, string[]][] = [
    [sendBody, {}, ['to']],
    [sendBody, null, ['']],
    [sendBody, [], ['']],
    [sendBody, 'x', ['']],
    [sendBody, { to: [] }, ['to']],
    [sendBody, { to: 'sam@example.net' }, ['to']],
    [sendBody, { to: [3, null, [], {}] }, ['to[0]', 'to[1]', 'to[2]', 'to[3].address']],
    [sendBody, { to: [{ address: 'a', name: 1 }] }, ['to[0].name']],
    [sendBody, { to: [{ address: 'a', adress: 'b' }], foo: 1 }, ['to[0].adress', 'foo']],
    [sendBody, { ...SEND, cc: Array(50).fill('a') }, ['cc']],
    [sendBody, { ...SEND, subject: null, text: 1, html: {} }, ['subject', 'text', 'html']],
    [sendBody, { ...SEND, attachments: [FILE, { ...FILE, foo: 1 }] }, ['attachments[1].foo']],
    [
      sendBody,
      { ...SEND, attachments: [{}] },
      ['attachments[0].filename', 'attachments[0].content_type', 'attachments[0].content_base64'],
    ],
    [sendBody, { ...SEND, attachments: Array(33).fill(FILE) }, ['attachments']],
    ...['a', 'aGk', 'aGk=\n', 'aG k', 'a===', '_-8=', '=', 'aG=k'].map(
      (content_base64): [z.ZodType, unknown, string[]] => [
        sendBody,
        { ...SEND, attachments: [{ ...FILE, content_base64 }] },
        ['attachments[0].content_base64'],
      ],
    ),
    [sendBody, { ...SEND, attachments: [{ ...FILE, disposition: 'x' }] }, ['attachments[0].disposition']],
    [sendBody, { ...SEND, kind: 'normal' }, ['kind']],
    [sendBody, { ...SEND, headers: { 'X-A': 1 }, metadata: { k: null } }, ['headers.X-A', 'metadata.k']],
    [sendBody, { ...SEND, headers: [], metadata: 'x' }, ['headers', 'metadata']],
    [sendBody, { ...SEND, metadata: JSON.parse('{"__proto__":"x"}') }, ['metadata']],
    [sendBody, JSON.parse('{"to":["a"],"__proto__":{}}'), ['__proto__']],
    [
      sendBody,
      { ...SEND, unsubscribe: { mailto: 'a@b.example\r\nBcc: x', x: 1 } },
      ['unsubscribe.url', 'unsubscribe.mailto', 'unsubscribe.x'],
    ],
    [sendBody, { ...SEND, consent: { recorded_at: '2026-02-30T00:00:00Z' } }, ['consent.basis', 'consent.recorded_at']],
    [sendBody, { ...SEND, include_attachments: true }, ['include_attachments']],
    [
      replyBody,
      { text: 'x', to: ['a'], subject: 's', unsubscribe: {}, thread_id: 'x' },
      ['to', 'subject', 'unsubscribe', 'thread_id'],
    ],
    [forwardBody, { to: ['a'], kind: 'transactional', subject: 's' }, ['kind', 'subject']],
    [forwardBody, { include_attachments: 'yes' }, ['to', 'include_attachments']],
    [createIdentityBody, {}, ['username', 'display_name']],
    [createIdentityBody, { ...IDENTITY, display_name: 'a\r\nb' }, ['display_name']],
    [createIdentityBody, { ...IDENTITY, display_name: '😀'.repeat(79) }, ['display_name']],
    [createIdentityBody, { ...IDENTITY, owner: { email: 'nobody' } }, ['owner.name', 'owner.email']],
    [
      createIdentityBody,
      { ...IDENTITY, signature: { text: 'x'.repeat(4_001), html: 'é'.repeat(8_193) } },
      ['signature.text', 'signature.html'],
    ],
    [
      createIdentityBody,
      { ...IDENTITY, send_policy: { daily_cap: -1, auto_reply: 'x', y: 1 } },
      ['send_policy.daily_cap', 'send_policy.auto_reply', 'send_policy.y'],
    ],
    [
      createIdentityBody,
      { ...IDENTITY, metadata: { a: 'x'.repeat(513), ['b'.repeat(65)]: '' } },
      ['metadata.a', `metadata.${'b'.repeat(65)}`],
    ],
    [
      createIdentityBody,
      { ...IDENTITY, metadata: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [i, ''])) },
      ['metadata'],
    ],
    [
      patchIdentityBody,
      { username: 'new', status: 'deleted', display_name: null },
      ['display_name', 'status', 'username'],
    ],
    [
      createTenantBody,
      { slug: 'A', name: '', mode: 'dev', timezone: 'Mars/Base', address_suffix: 'acme' },
      ['slug', 'name', 'mode', 'timezone', 'address_suffix'],
    ],
    [
      createTenantBody,
      { ...TENANT, policy: { abuse: { nope: 1 } }, billing: {} },
      ['policy.abuse.nope', 'billing.mode'],
    ],
    [patchTenantBody, { slug: 'x', mode: 'test', status: 'erased' }, ['status', 'slug', 'mode']],
    [patchPolicyBody, { max_recipients: 5 }, ['policy', 'max_recipients']],
    [
      patchPolicyBody,
      { policy: { max_recipients: 50, link_ttl_hours: 0, identity_daily_send_cap: 1.5, x: 1 } },
      ['policy.identity_daily_send_cap', 'policy.max_recipients', 'policy.link_ttl_hours', 'policy.x'],
    ],
    [
      patchPolicyBody,
      { policy: { ai_disclosure: { mode: 'x', text: '' }, retention: { events_days: 366 } } },
      ['policy.ai_disclosure.mode', 'policy.ai_disclosure.text', 'policy.retention.events_days'],
    ],
    [createKeyBody, { ...KEY, permissions: [] }, ['permissions']],
    [createKeyBody, { ...KEY, permissions: ['*'], level: 'partner' }, ['level', 'permissions[0]']],
    [createKeyBody, { ...KEY, level: 'platform', tenant_id: 'x', identity_id: 'y' }, ['tenant_id', 'identity_id']],
    [createKeyBody, { ...KEY, expires_at: 'tomorrow' }, ['expires_at']],
    [rotateKeyBody, { overlap_hours: 169 }, ['overlap_hours']],
    [patchMessageBody, { labels_add: ['UPPER', 'ok'], archived: true }, ['labels_add[0]', 'archived']],
    [resolveBody, { outcome: 'maybe' }, ['outcome']],
  ];
  test.each(BAD.map(([schema, body, paths]) => [JSON.stringify(body).slice(0, 70), paths, schema, body] as const))(
    '%s: %j',
    (_, paths, schema, body) => {
      const result = parseBody(schema, body);
      expect(result.ok).toBe(false);
      if (result.ok) return;
      expect(result.code).toBe('invalid_request');
      const errors = result.details?.['errors'] as { path: string; message: string }[];
      expect(errors.map(({ path }) => path).sort()).toEqual([...paths].sort());
      for (const { message } of errors) expect(message).toMatch(/^(is|must|has) /);
    },
  );
});

test('a rotation keeps the old secret for a day unless told otherwise', () => {
  expect(parseBody(rotateKeyBody, {})).toEqual({ ok: true, value: { overlap_hours: 24 } });
});
