import type { MessageId } from '@pmail/core/ids.ts';
import { buildReferences } from '@pmail/core/threading/references.ts';
import { createComposer } from '@pmail/mime/compose.ts';
import { parseMail } from '@pmail/mime/parse.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { arrive } from './inbound.fixture.ts';
import { MailboxRig, SECOND, type SendOptions, type Submitted } from './mailbox.fixture.ts';
import { accepted, attempt } from './transport.fixture.ts';
import { VirtualTime } from './virtual-time.fixture.ts';

/** Many sends that want one thread at the same moment, while a consumer makes one after the other leave. */

const COUNT = 100;

let rig: MailboxRig;
let time: VirtualTime;

beforeEach(() => {
  rig = new MailboxRig();
  rig.composer = createComposer();
  time = new VirtualTime(rig.clock);
  rig.sleep = time.sleep;
  traceLocks();
});

/** Writes every change of a lock's owner down beside the threads, whoever makes it. */
function traceLocks(): void {
  rig.storage.database.function('rig_now', () => rig.clock.now);
  rig.storage.database.exec(
    `CREATE TABLE lock_trace (n INTEGER PRIMARY KEY, old TEXT, new TEXT, old_until INTEGER, at INTEGER);
     CREATE TRIGGER lock_changes AFTER UPDATE OF lock_owner ON threads WHEN OLD.lock_owner IS NOT NEW.lock_owner BEGIN
       INSERT INTO lock_trace (old, new, old_until, at)
       VALUES (OLD.lock_owner, NEW.lock_owner, OLD.lock_until, rig_now());
     END`,
  );
}

interface Change {
  old: MessageId | null;
  new: MessageId | null;
}

function lockChanges(): Change[] {
  return rig.sql.all<{ old: MessageId | null; new: MessageId | null }>('SELECT old, new FROM lock_trace ORDER BY n');
}

/** Takes every pointer off the queue; a message leaves 400 ms after it was put there. */
async function consume(busy: () => boolean): Promise<void> {
  while (busy() || rig.outbound.sent.length > 0) {
    for (const job of rig.outbound.take()) {
      if (job.kind !== 'send') continue;
      await time.sleep(400);
      const { message_id: id } = job;
      await attempt(rig, id, accepted({ provider_message_id: `prov ${id}`, rfc_message_id: rfcId(id) }));
    }
    await time.sleep(50);
  }
}

function rfcId(id: MessageId): string {
  return `${id.slice(4).toLowerCase()}@acme.example.com`;
}

/** Submits all of them at one moment, and lets time pass until each has its answer and what was accepted has left. */
async function all(options: SendOptions[]): Promise<{ answer: Submitted; after: number }[]> {
  const began = rig.clock.now;
  let waiting = options.length;
  const answers = options.map((entry) =>
    time.start(async () => {
      const answer = await rig.submit(entry).finally(() => waiting--);
      return { answer, after: rig.clock.now - began };
    }),
  );
  const consumer = time.start(() => consume(() => waiting > 0));
  await time.pass();
  await consumer;
  return Promise.all(answers);
}

/** Repeats what was told that the thread is busy, with its key and after the time it was told, until all are accepted. */
async function persist(options: SendOptions[]): Promise<void> {
  let left = options;
  for (let round = 0; left.length > 0; round++) {
    expect(round).toBeLessThan(20);
    const answers = await all(left);
    left = left.filter((_entry, i) => !answers[i]?.answer.ok);
    rig.clock.now += SECOND;
  }
}

/** Each holder let go of the lock before the next one had it. */
function expectTurns(): MessageId[] {
  const changes = lockChanges();
  const holders: MessageId[] = [];
  for (const [i, change] of changes.entries()) {
    if (i % 2 === 0) {
      expect(change.old).toBeNull();
      if (change.new !== null) holders.push(change.new);
    } else expect(change).toEqual({ old: holders.at(-1), new: null });
  }
  expect(changes.length).toBe(2 * holders.length);
  expect(new Set(holders).size).toBe(holders.length);
  return holders;
}

function expectAnswers(answers: { answer: Submitted; after: number }[]): MessageId[] {
  const ids: MessageId[] = [];
  for (const { answer, after } of answers) {
    expect(after).toBeLessThanOrEqual(10 * SECOND);
    if (answer.ok) {
      expect(answer.message.status).toBe('queued');
      ids.push(answer.message.id);
      continue;
    }
    expect(answer.code).toBe('thread_busy');
    const { retry_after } = answer.details as { retry_after: number };
    expect(Number.isInteger(retry_after) && retry_after >= 1 && retry_after <= 60).toBe(true);
  }
  return ids;
}

/** What is kept belongs to accepted messages alone: rows, keys, objects, units and counts. */
function expectNothingElseKept(acceptedCount: number, before: { messages: number; blobs: number }): void {
  expect(rig.rows('messages') - before.messages).toBe(acceptedCount);
  expect(rig.rows('idempotency')).toBe(rig.rows('messages') - inbound());
  expect(rig.blobs.objects.size - before.blobs).toBe(acceptedCount);
  const sent = rig.rows('messages') - inbound();
  expect(rig.quotaBooks).toEqual({ held: 0, holds: 0, used: sent, counted: sent, tenant: sent });
}

function inbound(): number {
  return rig.sql.first<{ n: number }>("SELECT COUNT(*) AS n FROM messages WHERE direction = 'inbound'")?.n ?? 0;
}

interface Threading {
  id: MessageId;
  in_reply_to: string | null;
  references: string[];
}

/** What rows and stored copies of the outbound messages say of those before them, in the order of acceptance. */
async function threading(): Promise<Threading[]> {
  const rows = rig.sql.all<{ id: MessageId; in_reply_to: string | null; references_json: string; raw_r2_key: string }>(
    "SELECT id, in_reply_to, references_json, raw_r2_key FROM messages WHERE direction = 'outbound' ORDER BY rowid",
  );
  return Promise.all(
    rows.map(async ({ id, in_reply_to, references_json, raw_r2_key }) => {
      const copy = rig.blobs.objects.get(raw_r2_key);
      const mail = await parseMail(copy?.bytes ?? new Uint8Array());
      const references = JSON.parse(references_json) as string[];
      expect({ in_reply_to: mail.in_reply_to[0] ?? null, references: mail.references }).toEqual({
        in_reply_to,
        references,
      });
      return { id, in_reply_to, references };
    }),
  );
}

describe('a hundred replies at once to one message', () => {
  const replies = (target: MessageId): SendOptions[] =>
    Array.from({ length: COUNT }, (_, i) => ({
      operation: 'reply',
      target_id: target,
      key: `reply ${i}`,
      body: { text: `Answer ${i}` },
    }));

  test('take the thread in turns; the others are told to come back, and nothing of them is kept', async () => {
    const { message_id: target } = await arrive(rig);
    const before = { messages: 1, blobs: rig.blobs.objects.size };
    const ids = expectAnswers(await all(replies(target)));
    expect(ids.length).toBeGreaterThan(10);
    expect(ids.length).toBeLessThan(COUNT);
    expect(expectTurns().toSorted()).toEqual(ids.toSorted());
    expectNothingElseKept(ids.length, before);
  });

  test('are all accepted when they come back, each once, and each names the message it answers', async () => {
    const { message_id: target } = await arrive(rig, { parsed: { rfc_message_id: 'q@example.net' } });
    await persist(replies(target));
    expect(expectTurns()).toHaveLength(COUNT);
    expectNothingElseKept(COUNT, { messages: 1, blobs: 0 });
    for (const { in_reply_to, references } of await threading()) {
      expect({ in_reply_to, references }).toEqual({ in_reply_to: 'q@example.net', references: ['q@example.net'] });
    }
    const texts = rig.sql.all<{ text: string }>("SELECT DISTINCT text FROM messages WHERE direction = 'outbound'");
    expect(texts).toHaveLength(COUNT);
  });
});

test('of a hundred automatic replies at once to one message two are accepted, and no third after any wait', async () => {
  const { message_id: target } = await arrive(rig);
  const options = Array.from({ length: COUNT }, (_, i): SendOptions => {
    return { operation: 'reply', target_id: target, key: `auto ${i}`, body: { text: `${i}`, kind: 'auto_reply' } };
  });
  const answers = await all(options);
  const codes = answers.map(({ answer }) => (answer.ok ? 'accepted' : answer.code));
  expect(codes.filter((code) => code === 'accepted')).toHaveLength(2);
  expect(codes.filter((code) => code === 'auto_reply_not_allowed')).toHaveLength(COUNT - 2);
  expect(expectTurns()).toHaveLength(2);
  expectNothingElseKept(2, { messages: 1, blobs: 0 });
});

describe('a hundred sends at once into one thread', () => {
  test('each follow the one that was accepted before, whose id is known by then', async () => {
    const first = await time.start(() => rig.send({ body: { subject: 'Your booking' } }));
    await attempt(rig, first.id, accepted({ rfc_message_id: rfcId(first.id) }));
    rig.outbound.take();
    rig.clock.now += SECOND;
    await persist(
      Array.from({ length: COUNT }, (_, i) => ({
        key: `send ${i}`,
        body: { thread_id: first.thread_id, text: `${i}` },
      })),
    );
    expectTurns();
    const [opening, ...chain] = await threading();
    expect(opening).toEqual({ id: first.id, in_reply_to: null, references: [] });
    expect(chain).toHaveLength(COUNT);
    let parent = { id: rfcId(first.id), references: [] as string[], in_reply_to: null as string | null };
    for (const { id, in_reply_to, references } of chain) {
      expect(in_reply_to).toBe(parent.id);
      expect(references).toEqual(buildReferences(parent));
      parent = { id: rfcId(id), references, in_reply_to };
    }
    // As people see the thread: in the order in which they were accepted.
    const shown = rig.engine.getThread(first.thread_id, COUNT, null, { text: false, html: false });
    expect(shown?.messages.items.map(({ id }) => id)).toEqual([first.id, ...chain.map(({ id }) => id)].slice(0, COUNT));
  });
});
