import { sha256Hex, utf8 } from '@pmail/core/hash.ts';
import { describe, expect, test } from 'vitest';
import { sampleCompose } from './compose.fixture.ts';
import { MemoryBlobs, PortFault, parsePlain, plainComposer, RecordedQueue } from './doubles.ts';

describe('the object store in memory', () => {
  test('gives back what it was given, and null for what it was not', async () => {
    const blobs = new MemoryBlobs();
    await blobs.put('a/1', utf8('one'), { tenant: 'ten' });
    expect(await blobs.get('a/1')).toEqual(utf8('one'));
    expect(await blobs.get('a/2')).toBeNull();
    await blobs.put('a/1', utf8('two'), {});
    expect(await blobs.get('a/1')).toEqual(utf8('two'));
    expect(blobs.objects.get('a/1')?.metadata).toEqual({});
  });

  test('shares nothing with those who write or read', async () => {
    const blobs = new MemoryBlobs();
    const bytes = utf8('same');
    const metadata = { name: 'same' };
    const open = blobs.puts.hold();
    const put = blobs.put('key', bytes, metadata);
    // A wire has it as it was at the call, even when the call takes its time.
    bytes.fill(0);
    metadata.name = 'other';
    open();
    await put;
    const read = await blobs.get('key');
    expect(read).toEqual(utf8('same'));
    read?.fill(0);
    expect(await blobs.get('key')).toEqual(utf8('same'));
    expect(blobs.objects.get('key')?.metadata).toEqual({ name: 'same' });
  });

  test('deletes what it is told to, and does not mind what is not there', async () => {
    const blobs = new MemoryBlobs();
    for (const key of ['a', 'b', 'c']) await blobs.put(key, utf8(key), {});
    await blobs.delete(['a', 'c', 'never']);
    expect(blobs.keys).toEqual(['b']);
    await blobs.delete([]);
    expect(blobs.keys).toEqual(['b']);
  });

  test('lists the keys of a prefix in their order, page by page, and inspects the same', async () => {
    const blobs = new MemoryBlobs();
    for (const key of ['p/c', 'p/a', 'q/a', 'p/b', 'p']) await blobs.put(key, utf8(key), { of: key });
    expect(await blobs.list('p/', 'p/', 2)).toEqual({ keys: ['p/a', 'p/b'], more: true });
    expect(await blobs.list('p/', 'p/b', 2)).toEqual({ keys: ['p/c'], more: false });
    expect(await blobs.list('p/', 'p/c', 2)).toEqual({ keys: [], more: false });
    expect(await blobs.inspect('p/', 'p/', 2)).toEqual({
      objects: [
        { key: 'p/a', bytes: 3, metadata: { of: 'p/a' } },
        { key: 'p/b', bytes: 3, metadata: { of: 'p/b' } },
      ],
      more: true,
    });
  });

  test('goes wrong at each call apart', async () => {
    const blobs = new MemoryBlobs();
    blobs.puts.loseNext();
    await expect(blobs.put('key', utf8('kept'), {})).rejects.toBeInstanceOf(PortFault);
    expect(await blobs.get('key')).toEqual(utf8('kept'));
    blobs.deletes.failNext();
    await expect(blobs.delete(['key'])).rejects.toBeInstanceOf(PortFault);
    expect(blobs.keys).toEqual(['key']);
    blobs.gets.failNext();
    await expect(blobs.get('key')).rejects.toBeInstanceOf(PortFault);
    blobs.lists.failNext();
    await expect(blobs.list('', '', 1)).rejects.toBeInstanceOf(PortFault);
  });
});

describe('the queue that writes down', () => {
  test('has what was sent as it was when it was sent, with its delay', async () => {
    const queue = new RecordedQueue<{ n: number; of: { list: number[] } }>();
    const job = { n: 1, of: { list: [1] } };
    await queue.send(job);
    job.of.list.push(2);
    await queue.send(job, 5_000);
    expect(queue.sent).toEqual([
      { job: { n: 1, of: { list: [1] } }, delay_ms: 0 },
      { job: { n: 1, of: { list: [1, 2] } }, delay_ms: 5_000 },
    ]);
  });

  test('takes out what was sent so far', async () => {
    const queue = new RecordedQueue<string>();
    await queue.send('a');
    await queue.send('b');
    expect(queue.take()).toEqual(['a', 'b']);
    expect(queue.take()).toEqual([]);
    await queue.send('c');
    expect(queue.take()).toEqual(['c']);
  });

  test('forgets what could not be sent, and keeps what was sent without an answer', async () => {
    const queue = new RecordedQueue<string>();
    queue.sends.failNext();
    await expect(queue.send('a')).rejects.toThrow();
    queue.sends.loseNext();
    await expect(queue.send('b')).rejects.toThrow();
    expect(queue.take()).toEqual(['b']);
  });
});

describe('the readable composer', () => {
  test('makes the same bytes of the same input, and others of any other', async () => {
    const hash = async (input: ReturnType<typeof sampleCompose>) =>
      sha256Hex((await plainComposer.compose(input)).mime);
    const same = await hash(sampleCompose());
    expect(await hash(sampleCompose())).toBe(same);
    expect(await hash(sampleCompose({ subject: 'Another' }))).not.toBe(same);
    expect(await hash(sampleCompose({ text: 'Another' }))).not.toBe(same);
    expect(await hash(sampleCompose({ date: 1 }))).not.toBe(same);
  });

  test('is read back by its own parser', async () => {
    const input = sampleCompose({ in_reply_to: 'a@b.example', references: ['x@b.example', 'a@b.example'], hop: 3 });
    const { mime, rfc_message_id } = await plainComposer.compose(input);
    expect(await parsePlain(mime)).toMatchObject({
      from: input.from,
      to: input.to,
      cc: input.cc,
      subject: input.subject,
      sent_at: input.date,
      rfc_message_id,
      in_reply_to: ['a@b.example'],
      references: ['x@b.example', 'a@b.example'],
      hop: 3,
      text: input.text,
    });
  });
});
