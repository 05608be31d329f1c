import { createExecutionContext, createMessageBatch, getQueueResult } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import worker, { IdentityMailbox } from '../src/index.ts';
import { newId } from '../src/ports/random.ts';
import { arrived, atRest, inMailbox, type Lab, letter, makeLab, routeOf, waiting } from './mail.ts';
import { deploy, eventsOf } from './support.ts';

/** Of a batch each message is acknowledged or given back by itself, and a fault waits for as long as its queue says. */

let lab: Lab;

beforeEach(async () => {
  lab = await makeLab(await deploy());
  vi.spyOn(console, 'error').mockReturnValue();
});
afterEach(() => {
  vi.restoreAllMocks();
});

test('the queues are those of the design, and what it says of waits is what the consumer does', () => {
  const [wrangler = ''] = Object.values(
    import.meta.glob('../../../wrangler.toml', { query: '?raw', import: 'default', eager: true }),
  );
  const consumers = wrangler.split('[[').filter((part) => part.startsWith('queues.consumers]]'));
  const settings = consumers.map((part) => {
    const of = (name: string): string | undefined => new RegExp(`^${name} = "?([\\w-]+)"?$`, 'm').exec(part)?.[1];
    return [of('queue'), of('max_batch_size'), of('max_retries'), of('retry_delay'), of('dead_letter_queue')];
  });
  expect(settings).toEqual([
    ['pm-outbound', '10', '100', undefined, 'pm-outbound-dlq'],
    ['pm-inbound', '10', '10', '120', 'pm-inbound-dlq'],
    ['pm-delivery-events', '10', '20', undefined, 'pm-delivery-events-dlq'],
    ['pm-webhooks', '20', '13', undefined, 'pm-webhooks-dlq'],
  ]);
});

const TEN = Array.from({ length: 10 }, (_, index) => index);

interface Entry {
  id: string;
  body: unknown;
}

async function consume(queue: string, entries: Entry[]) {
  const messages = entries.map((entry) => ({ ...entry, timestamp: new Date(), attempts: 1 }));
  const batch = createMessageBatch(queue, messages);
  const delays: (number | undefined)[] = [];
  for (const message of batch.messages) {
    const retry = message.retry.bind(message);
    vi.spyOn(message, 'retry').mockImplementation((options) => {
      delays.push(options?.delaySeconds);
      retry(options);
    });
  }
  await worker.queue(batch, env);
  const { explicitAcks, retryMessages, retryBatch } = await getQueueResult(batch, createExecutionContext());
  expect(retryBatch.retry).toBe(false);
  return { acked: explicitAcks, again: retryMessages.map(({ msgId }, index) => [msgId, delays[index]]) };
}

const idsOf = (entries: Entry[]): string[] => entries.map(({ id }) => id);

describe('ten messages of which the third meets a fault: nine are acknowledged, one comes again, each works once', () => {
  test('mail that arrives, which waits two minutes', async () => {
    const mail = await Promise.all(
      TEN.map(async (n) => {
        const body = await arrived(
          lab.ann,
          `From: a@example.org\nMessage-ID: <${n}@example.org>\nSubject: ${n}\n\nHello.\n`,
        );
        return { id: body.message_id, body };
      }),
    );
    const third = mail.slice(2, 3);
    const get = env.BLOBS.get.bind(env.BLOBS);
    const broken = vi.spyOn(env.BLOBS, 'get').mockImplementation((key: string) => {
      if (key === third[0]?.body.r2_key) throw new Error('the store is away');
      return get(key);
    });
    const kept = async () => (await inMailbox(lab.ann, 'SELECT id FROM messages ORDER BY id')).map(({ id }) => id);

    const others = mail.filter((entry) => !third.includes(entry));
    expect(await consume('pm-inbound', mail)).toEqual({ acked: idsOf(others), again: [[third[0]?.id, 120]] });
    expect(await kept()).toEqual(idsOf(others).toSorted());
    broken.mockRestore();
    expect(await consume('pm-inbound', third)).toEqual({ acked: idsOf(third), again: [] });
    // A queue may bring what it has brought before.
    expect((await consume('pm-inbound', mail)).again).toEqual([]);
    expect(await kept()).toEqual(idsOf(mail).toSorted());
    await atRest(lab.ann);
    const told = (await eventsOf(lab.ann)).filter(({ type }) => type === 'message.received');
    expect(told).toHaveLength(mail.length);
  });

  test('sends, which wait half a minute', async () => {
    const { tenant_id, identity_id } = await routeOf(lab.ann);
    const sends: Entry[] = [];
    for (const n of TEN) {
      const { id } = await waiting(lab.key, lab.ann, letter({ to: ['other@simulator.invalid'], subject: String(n) }));
      const request_id = newId('req', Date.now());
      sends.push({ id, body: { v: 1, kind: 'send', tenant_id, identity_id, message_id: id, request_id } });
    }
    const third = sends.slice(2, 3);
    // oxlint-disable-next-line typescript/unbound-method
    const begin = IdentityMailbox.prototype.beginTransport;
    const broken = vi.spyOn(IdentityMailbox.prototype, 'beginTransport').mockImplementation(function (
      this: IdentityMailbox,
      call,
      request,
    ) {
      if (request.message_id === third[0]?.id) throw new Error('the mailbox is away');
      return begin.call(this, call, request);
    });

    const others = sends.filter((entry) => !third.includes(entry));
    expect(await consume('pm-outbound', sends)).toEqual({ acked: idsOf(others), again: [[third[0]?.id, 30]] });
    broken.mockRestore();
    expect(await consume('pm-outbound', third)).toEqual({ acked: idsOf(third), again: [] });
    expect((await consume('pm-outbound', sends)).again).toEqual([]);
    await atRest(lab.ann);
    const told = (await eventsOf(lab.ann)).filter(({ type }) => type === 'message.sent');
    const left = told.map(({ data }) => (data as { message: { id: string } }).message.id);
    expect(left.toSorted()).toEqual(idsOf(sends).toSorted());
  });
});
