import { utf8Length } from '@pmail/core/hash.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { arrive, DESK, mail } from './inbound.fixture.ts';
import { Crash, JO, KIM, MailboxRig, MINUTE, SECOND } from './mailbox.fixture.ts';
import { accepted, attempt } from './transport.fixture.ts';

let rig: MailboxRig;

beforeEach(() => {
  rig = new MailboxRig();
});

const threads = (): ReturnType<MailboxRig['engine']['listThreads']>['items'] =>
  rig.engine.listThreads({ archived: false }, 50, null).items;

describe('mail that arrives', () => {
  test('is stored as it came, counted and announced', async () => {
    const { message_id, thread_id, duplicate } = await arrive(rig);
    expect(duplicate).toBe(false);
    expect(rig.message(message_id)).toMatchObject({
      id: message_id,
      thread_id,
      direction: 'inbound',
      status: 'received',
      from: { address: JO, name: 'Jo' },
      delivered_to: DESK,
      is_primary_recipient: true,
      subject: 'Question',
      text: 'When does it open?',
      extracted_text: 'When does it open?',
      read: false,
      kind: 'normal',
      deliveries: null,
      operation: null,
      flags: [],
      received_at: new Date(rig.clock.now).toISOString(),
      sent_at: new Date(rig.clock.now - 5 * SECOND).toISOString(),
      trust: { verdict: 'none', known_sender: false, quarantined: false, automated: false },
    });
    expect(threads()).toMatchObject([
      {
        id: thread_id,
        subject: 'Question',
        message_count: 1,
        unread_count: 1,
        last_direction: 'inbound',
        participants: [{ address: JO, name: 'Jo' }],
        snippet: 'When does it open?',
      },
    ]);
    expect(rig.usage('inbound')).toBe(1);
    expect(rig.eventData('message.received')).toEqual([
      {
        message: expect.objectContaining({ id: message_id, subject: 'Question' }) as unknown,
        thread_id,
        trust: {
          verdict: 'none',
          spf: 'none',
          dkim: 'none',
          dmarc: 'none',
          arc: 'none',
          known_sender: false,
          quarantined: false,
          spam_score: null,
          automated: false,
          flags: [],
        },
        extracted_text: 'When does it open?',
        extracted_text_truncated: false,
        attachments: [],
      },
    ]);
  });

  test('with the same bytes is the same mail (V11)', async () => {
    const attachments = [
      {
        id: rig.newId('att', rig.clock.now),
        filename: 'a.txt',
        content_type: 'text/plain',
        size: 1,
        sha256: 'x',
        disposition: 'attachment' as const,
        content_id: null,
      },
    ];
    const first = await arrive(rig, { raw: 'same', parsed: { attachments } });
    const again = await mail(rig, { raw: 'same', parsed: { attachments } });
    again.parsed.attachments = again.parsed.attachments.map((one) => ({ ...one, id: rig.newId('att', 1) }));
    expect(await rig.engine.ingest(again)).toEqual({ ...first, duplicate: true });
    expect(rig.rows('messages')).toBe(1);
    expect(rig.rows('attachments')).toBe(1);
    expect(threads()).toMatchObject([{ message_count: 1, unread_count: 1 }]);
    expect(rig.usage('inbound')).toBe(1);
    expect(rig.eventTypes).toEqual(['message.received']);
    expect(first.attachments).toEqual([
      { r2_key: expect.stringContaining(`/m/${first.message_id}/a/${attachments[0]?.id}`) as string },
    ]);
  });

  test('twice at once is one mail (V11)', async () => {
    const [a, b] = await Promise.all([arrive(rig, { raw: 'same' }), arrive(rig, { raw: 'same' })]);
    expect(a.message_id).toBe(b.message_id);
    expect(new Set([a.duplicate, b.duplicate])).toEqual(new Set([false, true]));
  });

  test('with the same Message-ID and other bytes is another mail', async () => {
    await arrive(rig, { parsed: { rfc_message_id: 'one@example.net' } });
    await arrive(rig, { parsed: { rfc_message_id: 'one@example.net' } });
    expect(rig.rows('messages')).toBe(2);
  });

  test('and the process dies inside: nothing is there, and the repeat is the first', async () => {
    const request = await mail(rig);
    rig.dieAt('inbound.in_transaction');
    await expect(rig.engine.ingest(request)).rejects.toThrow(Crash);
    rig.restart();
    for (const table of ['messages', 'threads', 'contacts', 'quota_tasks', 'outbox']) expect(rig.rows(table)).toBe(0);
    expect(await rig.engine.ingest(request)).toMatchObject({ duplicate: false });
  });

  test('is counted when the quota can be reached again', async () => {
    rig.applies.failNext(2);
    await arrive(rig);
    expect(rig.usage('inbound')).toBe(0);
    await rig.advance(MINUTE);
    expect(rig.usage('inbound')).toBe(1);
  });

  test('as a blind copy says so, and its thread answers from no address', async () => {
    const { message_id, thread_id } = await arrive(rig, { parsed: { to: [{ address: KIM, name: '' }] } });
    expect(rig.message(message_id)).toMatchObject({ flags: ['bcc'], delivered_to: DESK });
    expect(rig.sql.first('SELECT reply_from_address FROM threads WHERE id = ?', thread_id)).toEqual({
      reply_from_address: null,
    });
  });

  test.each([
    ['in To, with a tag', { to: [{ address: 'desk+t03k.abc@acme.example.com', name: '' }] }],
    ['in Cc', { to: [], cc: [{ address: DESK, name: '' }] }],
  ])('with us %s is no blind copy', async (_where, parsed) => {
    const request = { envelope_to: 'desk+t03k.abc@acme.example.com' };
    const { message_id } = await arrive(rig, { parsed, request });
    expect(rig.message(message_id)).toMatchObject({ flags: [], delivered_to: DESK });
  });

  test('without a sender, a subject or an id is kept', async () => {
    const { message_id } = await arrive(rig, {
      parsed: { from: null, subject: '', rfc_message_id: null, sent_at: null, text: null, parse_degraded: true },
    });
    expect(rig.message(message_id)).toMatchObject({
      from: null,
      subject: '',
      flags: ['parse_degraded'],
      sent_at: new Date(rig.clock.now).toISOString(),
      extracted_text: null,
    });
    expect(rig.rows('contacts')).toBe(0);
  });

  test('and is larger than a row holds is cut (S15)', async () => {
    const long = '語'.repeat(400_000);
    const { message_id } = await arrive(rig, { parsed: { text: long, html_sanitized: long } });
    const message = rig.message(message_id);
    expect(message.flags).toEqual(['body_truncated']);
    const bytes = [message.text, message.html, message.extracted_text].map((text) => utf8Length(text ?? ''));
    expect(bytes.every((n, i) => n <= ([512, 1024, 256][i] ?? 0) * 1024)).toBe(true);
    expect(rig.eventData('message.received')).toMatchObject([{ extracted_text_truncated: true }]);
    const event = rig.sql.first<{ n: number }>('SELECT LENGTH(CAST(payload_json AS BLOB)) AS n FROM outbox');
    expect(event?.n).toBeLessThan(64 * 1024);
  });

  test('makes its sender known once we have written to them', async () => {
    const before = await arrive(rig);
    await rig.send();
    const after = await arrive(rig);
    expect(rig.message(before.message_id).trust?.known_sender).toBe(false);
    expect(rig.message(after.message_id).trust?.known_sender).toBe(true);
    expect(rig.sql.first('SELECT inbound_count, outbound_count, name FROM contacts WHERE address = ?', JO)).toEqual({
      inbound_count: 2,
      outbound_count: 1,
      name: 'Jo',
    });
  });
});

describe('the thread', () => {
  test('is the one that In-Reply-To names', async () => {
    const sent = await rig.send();
    await attempt(rig, sent.id, accepted({ rfc_message_id: 'ours@acme.example.com' }));
    const reply = await arrive(rig, { parsed: { in_reply_to: ['nobody@x', 'ours@acme.example.com'] } });
    expect(reply.thread_id).toBe(sent.thread_id);
    expect(threads()).toMatchObject([{ message_count: 2, unread_count: 1, last_direction: 'inbound' }]);
  });

  test("is found by the provider's id too, which is what recipients may see", async () => {
    const sent = await rig.send();
    await attempt(rig, sent.id, accepted({ provider_message_id: '0101019ab3c4' }));
    const reply = await arrive(rig, { parsed: { in_reply_to: ['0101019ab3c4'] } });
    expect(reply.thread_id).toBe(sent.thread_id);
  });

  test('is the one that the last known reference names', async () => {
    const old = await arrive(rig, { parsed: { rfc_message_id: 'old@x' } });
    const newer = await arrive(rig, { parsed: { rfc_message_id: 'newer@x' } });
    expect(old.thread_id).not.toBe(newer.thread_id);
    const parsed = { in_reply_to: ['unknown@x'], references: ['old@x', 'newer@x', 'unknown@x'] };
    expect((await arrive(rig, { parsed })).thread_id).toBe(newer.thread_id);
  });

  test('of an ancient conversation is looked for in its last fifty references', async () => {
    const root = await arrive(rig, { parsed: { rfc_message_id: 'root@x' } });
    const others = Array.from({ length: 49 }, (_, n) => `${n}@x`);
    const near = await arrive(rig, { parsed: { references: ['root@x', ...others] } });
    expect(near.thread_id).toBe(root.thread_id);
    const far = await arrive(rig, { parsed: { references: ['root@x', ...others, 'one more@x'] } });
    expect(far.thread_id).not.toBe(root.thread_id);
  });

  test('is a new one for what names nothing, whatever its subject', async () => {
    const [a, b] = [await arrive(rig), await arrive(rig, { parsed: { subject: 'Re: Question' } })];
    expect(a.thread_id).not.toBe(b.thread_id);
    expect(threads().map(({ subject }) => subject)).toEqual(['Question', 'Question']);
  });

  test('that was archived comes back with new mail', async () => {
    const first = await arrive(rig, { parsed: { rfc_message_id: 'first@x' } });
    rig.sql.run('UPDATE threads SET archived = 1');
    expect(threads()).toEqual([]);
    await arrive(rig, { parsed: { in_reply_to: ['first@x'] } });
    expect(threads()).toMatchObject([{ id: first.thread_id, archived: false }]);
  });

  test('answers from the address that was written to last', async () => {
    const first = await arrive(rig, { parsed: { rfc_message_id: 'first@x' } });
    const platform = 'desk.acme@agents.example';
    const parsed = { in_reply_to: ['first@x'], to: [{ address: platform, name: '' }] };
    await arrive(rig, { parsed, request: { envelope_to: platform } });
    const from = (): unknown =>
      rig.sql.first('SELECT reply_from_address AS a FROM threads WHERE id = ?', first.thread_id);
    expect(from()).toEqual({ a: platform });
    rig.sql.run('UPDATE threads SET fallback_pinned = 1');
    await arrive(rig, { parsed: { in_reply_to: ['first@x'] } });
    expect(from()).toEqual({ a: platform });
  });

  test('shows mail that comes late without moving back', async () => {
    const first = await arrive(rig, { parsed: { rfc_message_id: 'first@x' } });
    const late = { in_reply_to: ['first@x'], text: 'Earlier, but slow' };
    await arrive(rig, { parsed: late, request: { received_at: rig.clock.now - MINUTE } });
    expect(threads()).toMatchObject([
      {
        id: first.thread_id,
        message_count: 2,
        last_at: new Date(rig.clock.now).toISOString(),
        snippet: 'When does it open?',
      },
    ]);
  });
});

describe('mail that an identity sends to itself by loopback (R38)', () => {
  test('is an inbound copy beside what it sent, not a duplicate', async () => {
    const sent = await rig.send({ body: { to: [DESK] } });
    const { sha } = rig.sql.first<{ sha: string }>('SELECT raw_sha256 AS sha FROM messages') ?? { sha: '' };
    const request = await mail(rig, {
      request: { raw_sha256: sha, loopback: { message_id: sent.id, same_mailbox: true } },
      parsed: { from: { address: DESK, name: '' } },
    });
    const copy = await rig.engine.ingest(request);
    expect(copy).toMatchObject({ duplicate: false, thread_id: sent.thread_id });
    expect(copy.message_id).not.toBe(sent.id);
    expect(rig.message(copy.message_id)).toMatchObject({
      direction: 'inbound',
      flags: ['loopback'],
      trust: { verdict: 'pass' },
    });
    expect(threads()).toMatchObject([{ message_count: 2, unread_count: 1, participants: [] }]);
    expect(await rig.engine.ingest({ ...request, message_id: rig.newId('msg', 1) })).toMatchObject({
      duplicate: true,
      message_id: copy.message_id,
    });
  });

  test('from another mailbox begins a thread of its own, whatever the ids say', async () => {
    const sent = await rig.send();
    const request = await mail(rig, { request: { loopback: { message_id: sent.id, same_mailbox: false } } });
    expect((await rig.engine.ingest(request)).thread_id).not.toBe(sent.thread_id);
  });
});
