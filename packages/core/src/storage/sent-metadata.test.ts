import { describe, expect, test } from 'vitest';
import { utf8Length } from '../hash.ts';
import type { IdentityId, MessageId, TenantId, ThreadId } from '../ids.ts';
import type { FilterReason } from '../policy/types.ts';
import { attachmentMetadata, parseAttachmentMetadata, parseSentMetadata, sentMetadata } from './sent-metadata.ts';

const ULID = '01M8P88TCQ4G9XP521JS7KNYW7';
const OWNER = { tenant_id: `ten_${ULID}` as TenantId, identity_id: `idn_${ULID}` as IdentityId };
const EVIDENCE = {
  message_id: `msg_${ULID}` as MessageId,
  at: 1_796_029_260_000,
  key_hash: 'a'.repeat(64),
  fingerprint: 'b'.repeat(64),
  sha256: 'c'.repeat(64),
  operation: 'reply_all' as const,
  thread: { id: `thr_${ULID}` as ThreadId, seq: 115 },
  kind: 'transactional' as const,
  bcc: [{ address: 'lee@example.net', name: 'Lee "Ó" 李 😀' }],
  filtered: [{ position: 1, reason: 'hard_bounce' as const }],
  labels: ['booking:2291'],
  metadata: { booking: '2291', größe: 'ü' },
};

describe('of a sent copy', () => {
  test('reads back to what was written', () => {
    expect(parseSentMetadata(OWNER, sentMetadata(OWNER, EVIDENCE))).toEqual(EVIDENCE);
  });

  test('is ASCII, and leaves out what is empty', () => {
    const stored = sentMetadata(OWNER, EVIDENCE);
    expect(JSON.stringify(stored)).toMatch(/^[\x20-\x7e]*$/);
    const bare = sentMetadata(OWNER, { ...EVIDENCE, bcc: [], filtered: [], labels: [], metadata: {} });
    expect(Object.keys(bare)).toEqual([
      'tenant',
      'identity',
      'message',
      'at',
      'idem_key_sha256',
      'fingerprint',
      'sha256',
      'operation',
      'kind',
      'thread',
      'thread_seq',
    ]);
    expect(parseSentMetadata(OWNER, bare)).toEqual({ ...EVIDENCE, bcc: [], filtered: [], labels: [], metadata: {} });
  });

  test('stays within what a store takes, whatever the send held', () => {
    const stored = sentMetadata(OWNER, {
      ...EVIDENCE,
      bcc: Array.from({ length: 49 }, (_, n) => ({
        address: `${'x'.repeat(200)}${n}@example.net`,
        name: '名'.repeat(78),
      })),
      filtered: Array.from({ length: 49 }, (_, position) => ({ position, reason: 'not_on_allowlist' as FilterReason })),
      labels: Array.from({ length: 64 }, (_, n) => `${'l'.repeat(60)}${n}`),
      metadata: Object.fromEntries(Array.from({ length: 16 }, (_, n) => [`k${n}`, 'v'.repeat(512)])),
    });
    const bytes = Object.entries(stored).reduce((sum, [name, value]) => sum + utf8Length(name) + utf8Length(value), 0);
    expect(bytes).toBeLessThanOrEqual(8_192);
    const read = parseSentMetadata(OWNER, stored);
    expect(read?.filtered).toHaveLength(49);
    expect(read?.bcc.length).toBeGreaterThan(0);
    expect(read?.metadata).toEqual({});
  });

  test.each([
    ['another tenant', { tenant: `ten_${ULID.replace('7', '8')}` }],
    ['another identity', { identity: `idn_${ULID.replace('7', '8')}` }],
    ['no message', { message: '' }],
    ['a malformed thread', { thread: 'thr_1' }],
    ['a thread number that is none', { thread_seq: '-1' }],
    ['an unknown operation', { operation: 'bounce' }],
    ['an unknown kind', { kind: 'spam' }],
  ])('is nothing with %s', (_, change) => {
    expect(parseSentMetadata(OWNER, { ...sentMetadata(OWNER, EVIDENCE), ...change })).toBeUndefined();
  });

  test('is nothing for objects that are no sent copies', () => {
    expect(parseSentMetadata(OWNER, {})).toBeUndefined();
  });
});

test('of an attachment reads back to what was written', () => {
  const evidence = {
    sha256: 'c'.repeat(64),
    filename: 'Rechnung Größe.pdf',
    content_type: 'application/pdf',
    disposition: 'inline' as const,
    content_id: 'logo@acme',
    position: 3,
  };
  const stored = attachmentMetadata(OWNER, EVIDENCE.message_id, evidence);
  expect(JSON.stringify(stored)).toMatch(/^[\x20-\x7e]*$/);
  expect(parseAttachmentMetadata(stored)).toEqual(evidence);
  expect(parseAttachmentMetadata({ sha256: 'x' })).toBeUndefined();
});
