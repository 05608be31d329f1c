import type { MessageId } from '@pmail/core/ids.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { arrive } from './inbound.fixture.ts';
import { MailboxRig } from './mailbox.fixture.ts';

let rig: MailboxRig;
let id: MessageId;

beforeEach(async () => {
  rig = new MailboxRig();
  ({ message_id: id } = await arrive(rig));
});

const unread = (): number | undefined => rig.engine.listThreads({ archived: false }, 10, null).items[0]?.unread_count;
const labels = (n: number): string[] => Array.from({ length: n }, (_, i) => `label ${i}`);

describe('labels', () => {
  test('are added and removed, removal first, each once', () => {
    expect(rig.engine.updateMessage(id, { labels_add: ['b', 'a', 'a'] })).toMatchObject({
      ok: true,
      message: { id, labels: ['a', 'b'], text: null, html: null },
    });
    rig.engine.updateMessage(id, { labels_remove: ['a', 'c'], labels_add: ['c'] });
    expect(rig.message(id).labels).toEqual(['b', 'c']);
    rig.engine.updateMessage(id, { labels_remove: ['b', 'c', 'never there'] });
    expect(rig.message(id).labels).toEqual([]);
  });

  test('are at most 64, and a change that would make more changes nothing', () => {
    rig.engine.updateMessage(id, { labels_add: labels(64) });
    expect(
      rig.engine.updateMessage(id, { labels_add: ['one more'], labels_remove: ['not there'], read: true }),
    ).toEqual({
      ok: false,
      code: 'invalid_request',
      details: { errors: [{ path: 'labels_add', message: 'would make more than 64' }] },
    });
    expect(rig.message(id)).toMatchObject({ labels: labels(64).sort(), read: false });
    expect(rig.engine.updateMessage(id, { labels_add: ['one more'], labels_remove: ['label 0'] }).ok).toBe(true);
    expect(rig.message(id).labels).toHaveLength(64);
  });
});

describe('the read mark', () => {
  test('counts in the thread, once for each change', () => {
    for (const [read, count] of [
      [true, 0],
      [true, 0],
      [false, 1],
      [false, 1],
      [true, 0],
    ] as const) {
      rig.engine.updateMessage(id, { read });
      expect(rig.message(id).read).toBe(read);
      expect(unread()).toBe(count);
    }
  });

  test('left out stays as it is', () => {
    rig.engine.updateMessage(id, { read: true });
    rig.engine.updateMessage(id, { labels_add: ['a'] });
    expect(rig.message(id).read).toBe(true);
  });

  test('of what we sent does not make the thread unread', async () => {
    const sent = await rig.send();
    expect(rig.engine.updateMessage(sent.id, { read: false })).toMatchObject({ ok: true });
    const thread = rig.engine.getThread(sent.thread_id, 1, null, { text: false, html: false })?.thread;
    expect(thread?.unread_count).toBe(0);
  });
});

test('an update of what is not there is not found', () => {
  expect(rig.engine.updateMessage('msg_01JD9Q3V7M8X2C4N6B5K1R0E9T', { read: true })).toMatchObject({
    code: 'message_not_found',
  });
});
