import { evictDurableObject, runInDurableObject } from 'cloudflare:test';
import { wireError } from '@pmail/contracts/schemas/error.ts';
import { beforeAll, describe, expect, test } from 'vitest';
import { outboundOf } from './faults.ts';
import { accepted, atRest, inMailbox, keyed, letter, mailboxObject, person, post, until } from './mail.ts';
import { keepStorage } from './storage.ts';
import { call, deploy, makeKey, send, tenant } from './support.ts';

/** The ledger of a mailbox, made again from the sent copies after its storage was put back to an earlier time. */

keepStorage();

let root: string;
let tenantId: string;
let key: string;
let people = 0;

beforeAll(async () => {
  root = await deploy();
  tenantId = (await tenant(root, 'lab', { mode: 'test' })).id;
  key = await makeKey(root, { level: 'tenant', tenant_id: tenantId });
});

const somebody = (): Promise<string> => person(root, tenantId, `writer${++people}`);

const FULL = letter({
  to: [{ address: 'delivered@simulator.invalid', name: 'Zoë "Z" 李' }],
  cc: ['delivered+cc@simulator.invalid'],
  bcc: ['delivered+bcc@simulator.invalid'],
  subject: 'Größe 😀',
  html: '<p>Guten <b>Tag</b></p>',
  labels: ['b', 'a'],
  metadata: { größe: '41' },
  attachments: [{ filename: 'Rechnung é.txt', content_type: 'text/plain', content_base64: 'aGVsbG8=' }],
});

function rebuild(identity: string, query: Record<string, string> = {}) {
  return call(root, 'platform.ledger.rebuild', { params: { identity_id: identity }, query });
}

async function texts(...answers: Response[]): Promise<string[]> {
  return Promise.all(answers.map((answer) => answer.text()));
}

/** Takes away what a restore to the time before `id` would, and the object with its memory. */
async function putBack(identity: string, id: string, sequence: number): Promise<void> {
  const stub = await mailboxObject(identity);
  await runInDurableObject(stub, (_mailbox, { storage }) => {
    storage.sql.exec('DELETE FROM messages WHERE id >= ?', id);
    storage.sql.exec('DELETE FROM threads WHERE seq NOT IN (SELECT thread_seq FROM messages)');
    storage.sql.exec('DELETE FROM idempotency WHERE message_id >= ?', id);
    storage.sql.exec('DELETE FROM outbox WHERE seq > ?', sequence);
    storage.sql.exec("UPDATE meta SET v = ? WHERE k = 'event_seq'", String(sequence));
  });
  await evictDurableObject(stub);
}

async function refused(answer: Promise<Response>) {
  return wireError.parse(await (await answer).json()).error;
}

async function sequenceOf(identity: string): Promise<number> {
  const [row] = await inMailbox(identity, "SELECT v FROM meta WHERE k = 'event_seq'");
  return Number(row?.['v'] ?? 0);
}

test('the rows are gone: rebuilt, each key answers to the byte as before', async () => {
  const writer = await somebody();
  const first = [await post(key, writer, FULL, 'a'), await post(key, writer, letter(), 'b')];
  const before = await texts(...first);
  await atRest(writer);
  await inMailbox(writer, 'DELETE FROM idempotency');
  expect(await rebuild(writer)).toEqual({ identity_id: writer, complete: true, copies: 2, keys: 2, messages: 0 });
  const again = [await post(key, writer, FULL, 'a'), await post(key, writer, letter(), 'b')];
  expect(again.map(({ headers }) => headers.get('idempotent-replayed'))).toEqual(['true', 'true']);
  const replayed = (text: string): string => text.replace('"deduplicated":false', '"deduplicated":true');
  expect(await texts(...again)).toEqual(before.map(replayed));
  expect(await refused(post(key, writer, letter({ subject: 'Other' }), 'a'))).toMatchObject({
    code: 'idempotency_conflict',
    details: { original_message_id: (JSON.parse(before[0] ?? '') as { id: string }).id },
  });
});

describe('the mailbox was put back', () => {
  test('sends wait until it has its ledger again, then the lost key answers with its message', async () => {
    const writer = await somebody();
    await accepted(key, writer);
    await atRest(writer);
    const sequence = await sequenceOf(writer);
    const lost = await post(key, writer, FULL, 'lost');
    const [before = ''] = await texts(lost);
    const { id } = JSON.parse(before) as { id: string };
    await until(async () => {
      const message = await call(key, 'messages.get', { params: { identity_id: writer, message_id: id } });
      expect(message.status).toBe('delivered');
    });
    await atRest(writer);
    await putBack(writer, id, sequence);

    expect(await refused(post(key, writer, FULL, 'lost'))).toMatchObject({
      code: 'unavailable',
      retryable: true,
      details: { step: 'ledger' },
    });
    // By itself: the mailbox has noticed.
    const answer = await until(async () => {
      const retried = await post(key, writer, FULL, 'lost');
      expect(retried.status).toBe(202);
      return retried.text();
    });
    expect(answer).toBe(before.replace('"deduplicated":false', '"deduplicated":true'));
    const message = await call(key, 'messages.get', { params: { identity_id: writer, message_id: id } });
    expect(message).toMatchObject({
      status: 'uncertain',
      status_reason: 'mailbox_restored',
      flags: ['restored'],
      to: [{ address: 'delivered@simulator.invalid', name: 'Zoë "Z" 李' }],
      bcc: [{ address: 'delivered+bcc@simulator.invalid', name: '' }],
      attachments: [{ filename: 'Rechnung é.txt', size: 5 }],
      labels: ['a', 'b'],
      metadata: { größe: '41' },
    });
    const [attachment] = message.attachments;
    const file = await send(key, 'messages.attachments.get', {
      params: { identity_id: writer, message_id: id, attachment_id: attachment?.id ?? '' },
    });
    expect(await file.text()).toBe('hello');
    expect(await accepted(key, writer)).toMatchObject({ status: 'queued', deduplicated: false });
    const resolved = await call(key, 'messages.resolve', {
      params: { identity_id: writer, message_id: id },
      body: { outcome: 'sent' },
    });
    expect(resolved.status).toBe('submitted');
  });

  test('where it cannot have noticed, an operator says so', async () => {
    const writer = await somebody();
    const { id } = await accepted(key, writer, letter(), 'lost');
    await atRest(writer);
    await putBack(writer, id, await sequenceOf(writer));
    expect(await rebuild(writer)).toMatchObject({ complete: true, messages: 0 });
    expect(await rebuild(writer, { restored: 'true' })).toMatchObject({ complete: true, messages: 1 });
    const again = await send(key, 'messages.send', {
      params: { identity_id: writer },
      body: letter(),
      headers: keyed('lost'),
    });
    expect(await again.json()).toMatchObject({ id, deduplicated: true });
  });
});

test('a mailbox that forgot everything, its owner too, makes no second email of a key it had accepted (P7, I1)', async () => {
  const writer = await somebody();
  const before = await (await post(key, writer, FULL, 'a')).json<{ id: string }>();
  await atRest(writer);
  const highest = await sequenceOf(writer);
  const stub = await mailboxObject(writer);
  await runInDurableObject(stub, (_mailbox, { storage }) => storage.deleteAll());
  await evictDurableObject(stub);
  // Whoever comes first gives it its owner back; that must not make it one that is new.
  await until(async () => {
    const answer = await (await post(key, writer, FULL, 'a')).json();
    expect(answer).toMatchObject({ id: before.id, deduplicated: true });
  });
  expect(await outboundOf(writer)).toHaveLength(1);
  expect(await sequenceOf(writer)).toBeGreaterThan(highest);
});
