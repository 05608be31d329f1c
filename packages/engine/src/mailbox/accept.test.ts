import { sha256Hex, utf8Length } from '@pmail/core/hash.ts';
import { expect, test } from 'vitest';
import { HOUR, JO, KIM, LEE, MailboxRig, MINUTE, NOW } from './mailbox.fixture.ts';

/** What an accepted send leaves behind, as it can be read again. */

test('everything of a send can be read again', async () => {
  const rig = new MailboxRig();
  const { id, thread_id } = await rig.send({
    body: {
      to: [{ address: 'JO@Example.NET', name: ' Jo ' }],
      cc: [KIM],
      bcc: [LEE],
      subject: 'Re: Your booking',
      text: 'Hello\n\nthere',
      html: '<p>Hello</p>',
      labels: ['b', 'a', 'b'],
      metadata: { order: '4471' },
    },
  });
  expect(rig.message(id)).toMatchObject({
    id,
    thread_id,
    identity_id: rig.owner.identity_id,
    direction: 'outbound',
    status: 'queued',
    from: { address: 'desk@acme.example.com', name: 'Acme Desk' },
    to: [{ address: JO, name: 'Jo' }],
    cc: [{ address: KIM, name: '' }],
    bcc: [{ address: LEE, name: '' }],
    subject: 'Re: Your booking',
    text: 'Hello\n\nthere',
    html: '<p>Hello</p>',
    extracted_text: 'Hello\n\nthere',
    labels: ['a', 'b'],
    metadata: { order: '4471' },
    kind: 'transactional',
    operation: 'send',
    read: true,
    trust: null,
    provider: null,
    provider_message_id: null,
    rfc_message_id: null,
    sent_at: '2026-11-30T09:00:00.000Z',
    received_at: '2026-11-30T09:00:00.000Z',
  });
  expect(rig.message(id).deliveries?.map(({ address, field, status }) => [address, field, status])).toEqual([
    [JO, 'to', 'queued'],
    [KIM, 'cc', 'queued'],
    [LEE, 'bcc', 'queued'],
  ]);
  const [thread] = rig.engine.listThreads({ archived: false }, 10, null).items;
  expect(thread).toMatchObject({
    id: thread_id,
    subject: 'Your booking',
    message_count: 1,
    unread_count: 0,
    last_direction: 'outbound',
    snippet: 'Hello there',
    labels: ['a', 'b'],
    // Whoever got a blind copy is not shown.
    participants: [
      { address: JO, name: 'Jo' },
      { address: KIM, name: '' },
    ],
  });
});

test('bodies come only when they are asked for', async () => {
  const rig = new MailboxRig();
  const { id } = await rig.send({ body: { html: '<p>Hello</p>' } });
  expect(rig.engine.getMessage(id, { text: false, html: false }, false)).toMatchObject({ text: null, html: null });
});

test('the stored copy is the composed one, and says whose it is', async () => {
  const rig = new MailboxRig();
  const { id, thread_id } = await rig.send({ key: 'k-1', body: { bcc: [LEE] } });
  const key = `t/${rig.owner.tenant_id}/i/${rig.owner.identity_id}/out/${id}.eml`;
  expect(rig.engine.rawLocation(id, false)).toBe(key);
  const stored = rig.blobs.objects.get(key);
  expect(stored?.metadata).toEqual({
    tenant: rig.owner.tenant_id,
    identity: rig.owner.identity_id,
    message: id,
    idem_key_sha256: await sha256Hex('k-1'),
    fingerprint: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
    at: String(NOW),
    sha256: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
    operation: 'send',
    kind: 'transactional',
    thread: thread_id,
    thread_seq: '1',
    bcc: JSON.stringify([[LEE, '']]),
  });
  const bytes = Uint8Array.from(stored?.bytes ?? []);
  expect(new TextDecoder().decode(bytes)).not.toContain(LEE);
  expect(rig.sql.first('SELECT raw_sha256, raw_size FROM messages')).toEqual({
    raw_sha256: await sha256Hex(bytes),
    raw_size: bytes.length,
  });
});

test('attachments are stored, listed and found, their names cleaned', async () => {
  const rig = new MailboxRig();
  const { id, attachments } = await rig.send({
    body: {
      attachments: [
        { filename: '../../invoice.pdf', content_type: 'Application/PDF', content_base64: 'AAEC' },
        {
          filename: 'logo.png',
          content_type: 'image/png',
          content_base64: '',
          disposition: 'inline',
          content_id: '<logo@x>',
        },
      ],
    },
  });
  expect(attachments).toMatchObject([
    { filename: 'invoice.pdf', content_type: 'application/pdf', size: 3, disposition: 'attachment', content_id: null },
    { filename: 'logo.png', content_type: 'image/png', size: 0, disposition: 'inline', content_id: 'logo@x' },
  ]);
  const [first] = attachments;
  if (first === undefined) throw new Error('no attachment');
  const found = rig.engine.attachmentLocation(id, first.id, false);
  expect(found).toMatchObject({ filename: 'invoice.pdf', size: 3, risk: null });
  expect(rig.blobs.objects.get(found?.r2_key ?? '')).toEqual({
    bytes: Uint8Array.of(0, 1, 2),
    metadata: {
      tenant: rig.owner.tenant_id,
      identity: rig.owner.identity_id,
      message: id,
      sha256: await sha256Hex(Uint8Array.of(0, 1, 2)),
      part: '["invoice.pdf","application/pdf","attachment",null,0]',
    },
  });
  const other = await rig.send();
  expect(rig.engine.attachmentLocation(other.id, first.id, false)).toBeUndefined();
});

test.each([
  ['ASCII', 'x'],
  ['three bytes a character', '語'],
  ['four bytes a character', '😀'],
])('600 KB of text are cut for the row and sent whole, %s (S15)', async (_what, character) => {
  const rig = new MailboxRig();
  const text = character.repeat(Math.ceil((600 * 1024) / utf8Length(character)));
  const { id } = await rig.send({ body: { text, html: `<p>${text}</p>` } });
  const message = rig.message(id);
  expect(message.flags).toEqual(['body_truncated']);
  expect(text.startsWith(message.text ?? '-')).toBe(true);
  expect(utf8Length(message.text ?? '')).toBeGreaterThan(512 * 1024 - 4);
  expect(utf8Length(message.text ?? '')).toBeLessThanOrEqual(512 * 1024);
  expect(utf8Length(message.extracted_text ?? '')).toBeLessThanOrEqual(256 * 1024);
  expect(rowBytes(rig, id)).toBeLessThan(1_900_000);
  const stored = rig.blobs.objects.get(rig.engine.rawLocation(id, false) ?? '');
  expect(new TextDecoder().decode(stored?.bytes)).toContain(text);
});

test('the largest message that is accepted still fits into a row (S15)', async () => {
  const rig = new MailboxRig();
  const long = (n: number): string => `${'a'.repeat(60)}@${'b'.repeat(60)}.${'c'.repeat(60)}${n}.example`;
  const { id } = await rig.send({
    policy: { max_recipients: 49 },
    body: {
      to: Array.from({ length: 49 }, (_, n) => ({ address: long(n), name: 'n'.repeat(78) })),
      subject: '語'.repeat(998),
      text: 'x'.repeat(600 * 1024),
      html: 'y'.repeat(1200 * 1024),
      metadata: Object.fromEntries(Array.from({ length: 16 }, (_, n) => [`${n}`.padEnd(64, 'k'), 'v'.repeat(512)])),
    },
  });
  expect(rowBytes(rig, id)).toBeGreaterThan(1_700_000);
  expect(rowBytes(rig, id)).toBeLessThan(1_950_000);
});

function rowBytes(rig: MailboxRig, id: string): number {
  const row = rig.sql.first<Record<string, string | number | null>>('SELECT * FROM messages WHERE id = ?', id) ?? {};
  return Object.values(row).reduce<number>((sum, value) => sum + utf8Length(String(value ?? '')), 0);
}

test('a text that fits is not flagged', async () => {
  const rig = new MailboxRig();
  const { id } = await rig.send({ body: { text: 'x'.repeat(256 * 1024) } });
  expect(rig.message(id).flags).toEqual([]);
});

test('the sweep takes only objects without a message, and none younger than an hour (S2)', async () => {
  const rig = new MailboxRig();
  const kept = await rig.send({
    body: { attachments: [{ filename: 'a.txt', content_type: 'text/plain', content_base64: 'YQ==' }] },
  });
  const prefix = `t/${rig.owner.tenant_id}/i/${rig.owner.identity_id}/out/`;
  const orphan = (): string => `${prefix}${rig.newId('msg', rig.clock.now)}`;
  const put = (key: string): void => void rig.blobs.objects.set(key, { bytes: new Uint8Array(), metadata: {} });
  const old = orphan();
  put(`${old}.eml`);
  put(`${old}/a/${rig.newId('att', rig.clock.now)}`);
  // The alarm of the daily clean-up comes one day after the mailbox was made.
  await rig.advance(23 * HOUR + 1 * MINUTE);
  const young = orphan();
  put(`${young}.eml`);
  const foreign = `${prefix.replace('/out/', '/m/')}${rig.newId('msg', rig.clock.now)}/raw.eml`;
  put(foreign);
  await rig.advance(HOUR);
  const keys = (): string[] => rig.blobs.keys;
  expect(keys()).toHaveLength(4);
  expect(keys()).toEqual(expect.arrayContaining([expect.stringContaining(kept.id), `${young}.eml`, foreign]));
  await rig.advance(24 * HOUR);
  expect(keys()).toHaveLength(3);
  expect(keys().some((key) => key.startsWith(young))).toBe(false);
});

test('the sweep goes through any number of objects (S2)', async () => {
  const rig = new MailboxRig();
  const prefix = `t/${rig.owner.tenant_id}/i/${rig.owner.identity_id}/out/`;
  for (let i = 0; i < 2_345; i++) {
    const key = `${prefix}${rig.newId('msg', rig.clock.now)}.eml`;
    rig.blobs.objects.set(key, { bytes: new Uint8Array(), metadata: {} });
  }
  const kept = await rig.send();
  await rig.advance(25 * HOUR);
  expect(rig.blobs.keys).toEqual([`${prefix}${kept.id}.eml`]);
});

test('a sweep that fails half way is taken up again (S2)', async () => {
  const rig = new MailboxRig();
  const prefix = `t/${rig.owner.tenant_id}/i/${rig.owner.identity_id}/out/`;
  const key = `${prefix}${rig.newId('msg', rig.clock.now)}.eml`;
  rig.blobs.objects.set(key, { bytes: new Uint8Array(), metadata: {} });
  rig.blobs.deletes.failNext(2);
  await rig.advance(24 * HOUR);
  expect(rig.blobs.keys).toEqual([key]);
  await rig.advance(2 * MINUTE);
  expect(rig.blobs.keys).toEqual([]);
});
