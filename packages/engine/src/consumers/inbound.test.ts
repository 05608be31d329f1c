import { utf8 } from '@pmail/core/hash.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import type { EventJob, InboundJob } from '@pmail/core/queue/jobs.ts';
import { rawKey } from '@pmail/core/storage/keys.ts';
import { mintThreadToken, type ThreadKey } from '@pmail/core/threading/token.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { Crash, JO, THREAD_KEY } from '../mailbox/mailbox.fixture.ts';
import { accepted, attempt, TIMEOUT } from '../mailbox/transport.fixture.ts';
import type { ParsedMail } from '../parsed-mail.ts';
import { consumeEvent } from './event.ts';
import { consumeInbound } from './inbound.ts';
import { Service } from './service.fixture.ts';
import type { Disposition } from './world.ts';

let service: Service;
const ACK = { kind: 'ack' };

beforeEach(async () => {
  service = await Service.create();
});

const MAIL: ParsedMail = {
  from: { address: JO, name: 'Jo' },
  reply_to: [],
  to: [{ address: 'desk.acme@agents.example', name: '' }],
  cc: [],
  subject: 'Question',
  sent_at: null,
  rfc_message_id: 'question@example.net',
  in_reply_to: [],
  references: [],
  text: 'When?',
  html_sanitized: null,
  hop: 0,
  auto_submitted: false,
  parse_degraded: false,
  attachments: [],
};

const attachment = (filename: string, text: string): ParsedMail['attachments'][number] => ({
  filename,
  content_type: 'text/plain',
  disposition: 'attachment',
  content_id: null,
  content: utf8(text),
});

/** Raw mail in the store and its pointer. */
function arrival(changes: Partial<InboundJob> = {}, raw = 'raw bytes'): InboundJob {
  const { rig } = service;
  const message_id = rig.newId('msg', rig.clock.now);
  const r2_key = rawKey(rig.owner, message_id);
  rig.blobs.objects.set(r2_key, { bytes: utf8(raw), metadata: {} });
  return {
    v: 1,
    kind: 'message',
    source: { type: 'routing' },
    message_id,
    ...rig.owner,
    r2_key,
    raw_size: raw.length,
    envelope_from: JO,
    envelope_to: service.address,
    received_at: rig.clock.now,
    request_id: 'req_01JD9Q3V7M8X2C4N6B5K1R0E9T',
    loopback: null,
    ...changes,
  };
}

function consume(
  job: InboundJob,
  parsed: ParsedMail = MAIL,
  threadKeys: ThreadKey[] = [THREAD_KEY],
): Promise<Disposition> {
  return consumeInbound(
    { ...service.world(), threadKeys: () => Promise.resolve(threadKeys), parse: async () => structuredClone(parsed) },
    job,
  );
}

const stored = (): string[] => service.rig.blobs.keys.filter((key) => key.includes('/a/'));
describe('the token behind the plus', () => {
  const NEXT: ThreadKey = { kid: 'n', secret: new Uint8Array(32).fill(8) };
  const plus = (detail: string): string => service.address.replace('@', `+${detail}@`);

  test.each([
    ['of the key in use is not counted', [THREAD_KEY], []],
    ['of a key before it is, while it verifies', [NEXT, THREAD_KEY], ['thread_token_previous_key_total']],
    ['of a key that is gone is invalid', [NEXT], ['thread_token_invalid_total']],
  ])('%s', async (_what, keys, counts) => {
    await consume(arrival());
    const token = await mintThreadToken(THREAD_KEY, service.identity.id, 1);
    await consume(arrival({ envelope_to: plus(token) }, 'more'), { ...MAIL, rfc_message_id: null }, keys);
    expect(service.counts).toEqual(counts);
  });

  test('is an ordinary tag where it has not the shape of one', async () => {
    await consume(arrival({ envelope_to: plus('orders') }));
    expect(service.counts).toEqual([]);
  });
});

const reports = (): EventJob[] => service.rig.outbound.take().filter((job) => job.kind === 'transport_event');

describe('mail that arrives', () => {
  test('is parsed, stored in its mailbox, and its attachments beside it', async () => {
    const job = arrival();
    const parsed = { ...MAIL, attachments: [attachment('a.txt', 'one'), attachment('b.txt', 'two')] };
    expect(await consume(job, parsed)).toEqual(ACK);
    const message = service.rig.message(job.message_id);
    expect(message).toMatchObject({ subject: 'Question', delivered_to: service.address, kind: 'normal' });
    expect(message.attachments.map(({ filename, size }) => [filename, size])).toEqual([
      ['a.txt', 3],
      ['b.txt', 3],
    ]);
    const texts = stored().map((key) => new TextDecoder().decode(service.rig.blobs.objects.get(key)?.bytes));
    expect(texts.sort()).toEqual(['one', 'two']);
    for (const { id } of message.attachments) {
      const found = service.rig.engine.attachmentLocation(job.message_id, id, false);
      expect(service.rig.blobs.objects.get(found?.r2_key ?? '')?.metadata).toMatchObject({
        tenant: service.tenant.id,
        identity: service.identity.id,
        message: job.message_id,
      });
    }
    expect(reports()).toEqual([]);
  });

  test('twice is one mail with one set of attachments (V11)', async () => {
    const parsed = { ...MAIL, attachments: [attachment('a.txt', 'one')] };
    await consume(arrival(), parsed);
    await consume(arrival(), parsed);
    expect(service.rig.rows('messages')).toBe(1);
    expect(stored()).toHaveLength(1);
  });

  test('and the store fails for an attachment: the repeat brings it (V11)', async () => {
    const parsed = { ...MAIL, attachments: [attachment('a.txt', 'one')] };
    const job = arrival();
    service.rig.blobs.puts.failNext();
    await expect(consume(job, parsed)).rejects.toThrow();
    expect(stored()).toEqual([]);
    expect(await consume(job, parsed)).toEqual(ACK);
    expect(stored()).toHaveLength(1);
    const [only] = service.rig.message(job.message_id).attachments;
    expect(stored()[0]).toContain(only?.id ?? 'no attachment');
  });

  test('and the run dies after it is stored: the repeat changes nothing (V11)', async () => {
    const job = arrival();
    service.dieAt('inbound.stored');
    await expect(consume(job)).rejects.toThrow(Crash);
    expect(await consume(job)).toEqual(ACK);
    expect(service.rig.rows('messages')).toBe(1);
    expect(service.rig.eventTypes).toEqual(['message.received']);
  });

  test.each([
    ['auto_submitted', { auto_submitted: true }, 'automated'],
    ['twenty hops', { hop: 20 }, 'automated'],
    ['nineteen hops', { hop: 19 }, 'normal'],
  ] as const)('with %s is %s (R24)', async (_what, changes, kind) => {
    const job = arrival();
    await consume(job, { ...MAIL, ...changes });
    expect(service.rig.message(job.message_id).kind).toBe(kind);
  });

  test('for an identity that is paused is received', async () => {
    await service.set('identities', 'status', 'paused');
    const job = arrival();
    expect(await consume(job)).toEqual(ACK);
    expect(service.rig.message(job.message_id).status).toBe('received');
  });

  test.each(['deleting', 'deleted'])('for an identity that is %s is thrown away', async (status) => {
    await service.set('identities', 'status', status);
    const job = arrival();
    expect(await consume(job)).toEqual(ACK);
    expect(service.counts).toEqual(['inbound_identity_gone_total']);
    expect(service.rig.blobs.objects.has(job.r2_key)).toBe(false);
    expect(service.rig.rows('messages')).toBe(0);
  });

  test('for an identity that never was is thrown away', async () => {
    const job = arrival({ identity_id: 'idn_01JD9Q3V7M8X2C4N6B5K1R0E9T' });
    expect(await consume(job)).toEqual(ACK);
    expect(service.counts).toEqual(['inbound_identity_gone_total']);
  });

  test('whose bytes are gone is counted', async () => {
    const job = arrival();
    service.rig.blobs.objects.clear();
    expect(await consume(job)).toEqual(ACK);
    expect(service.counts).toEqual(['inbound_raw_missing_total']);
    expect(reports()).toEqual([]);
  });

  test('while the directory or the store cannot be reached waits in the queue (V11, P6)', async () => {
    const job = arrival();
    service.queries.failNext();
    await expect(consume(job)).rejects.toThrow();
    service.rig.blobs.gets.failNext();
    await expect(consume(job)).rejects.toThrow();
    expect(await consume(job)).toEqual(ACK);
    expect(service.rig.rows('messages')).toBe(1);
  });
});

describe('a copy of test mail', () => {
  let sent: MessageId;

  beforeEach(async () => {
    service = await Service.create({ tenant: { mode: 'test' } });
    ({ id: sent } = await service.send({ to: [service.address] }));
    const providerId = `test-${sent.slice(4).toLowerCase()}`;
    await attempt(service.rig, sent, accepted({ provider_message_id: providerId }));
    service.rig.outbound.take();
  });

  const copy = (): InboundJob =>
    arrival({
      envelope_from: service.address,
      loopback: { tenant_id: service.tenant.id, identity_id: service.identity.id, message_id: sent },
    });

  /** The report reaches the sender as any other. */
  async function deliver(): Promise<EventJob[]> {
    const jobs = reports();
    for (const { event } of jobs) expect(await consumeEvent(service.world(), event)).toEqual(ACK);
    return jobs;
  }

  test('is reported to its sender as delivered', async () => {
    const job = copy();
    expect(await consume(job)).toEqual(ACK);
    const [report, ...more] = await deliver();
    expect(more).toEqual([]);
    expect(report).toMatchObject({ kind: 'transport_event', ...service.rig.owner });
    expect(report?.event).toMatchObject({
      source: 'loopback',
      event_id: `loop:${sent}:${service.address}:0`,
      sender: service.address,
      recipient: service.address,
      kind: 'delivered',
      smtp_code: '250',
      enhanced_code: '2.0.0',
      outcome: 'delivered',
      suppress: null,
    });
    expect(service.rig.message(sent).status).toBe('delivered');
    expect(service.rig.message(job.message_id).flags).toEqual(['loopback']);
  });

  test('twice is reported twice, and told once', async () => {
    const job = copy();
    await consume(job);
    await consume(job);
    expect(await deliver()).toHaveLength(2);
    expect(service.rig.eventTypes.filter((type) => type === 'message.delivered')).toHaveLength(1);
  });

  test('and the run dies before its report: the repeat makes it', async () => {
    const job = copy();
    service.rig.outbound.sends.failNext();
    await expect(consume(job)).rejects.toThrow();
    await consume(job);
    await deliver();
    expect(service.rig.message(sent).status).toBe('delivered');
  });

  test('ends the doubt about a send whose own record was lost', async () => {
    const { id } = await service.send({ to: [service.address] });
    await attempt(service.rig, id, TIMEOUT);
    sent = id;
    await consume(copy());
    await deliver();
    expect(service.rig.message(id)).toMatchObject({ status: 'delivered', flags: ['reconciled'] });
  });

  test('for an identity that is gone is reported as bounced, and its address suppressed', async () => {
    const job = copy();
    await service.set('identities', 'status', 'deleted');
    await consume(job);
    const [report] = await deliver();
    expect(report?.event).toMatchObject({ kind: 'bounced', hard: true, smtp_code: '550', enhanced_code: '5.1.1' });
    expect(service.rig.message(sent).status).toBe('bounced');
    expect(await service.rows('SELECT reason FROM suppressions')).toEqual([{ reason: 'hard_bounce' }]);
  });

  test('whose bytes we have lost is reported as failed: nobody is to blame for it but us', async () => {
    const job = copy();
    service.rig.blobs.objects.delete(job.r2_key);
    await consume(job);
    const [report] = await deliver();
    expect(report?.event).toMatchObject({ kind: 'failed', hard: false, outcome: 'other', suppress: null });
    expect(service.rig.message(sent).status).toBe('failed');
    expect(await service.rows('SELECT reason FROM suppressions')).toEqual([]);
  });
});
