import type { MessageId } from '@pmail/core/ids.ts';
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { arrive } from './inbound.fixture.ts';
import { DAY, JO, MailboxRig, MINUTE } from './mailbox.fixture.ts';
import type { MessageFilter, Position } from './read.ts';
import { accepted, attempt } from './transport.fixture.ts';

let rig: MailboxRig;

beforeEach(() => {
  rig = new MailboxRig();
});

const BODIES = { text: true, html: true };

function list(filter: MessageFilter = {}, canReview = false): MessageId[] {
  return rig.engine.listMessages(filter, 100, null, canReview).items.map(({ id }) => id);
}

describe('the list of messages', () => {
  test('is newest first, by time received and then by id', async () => {
    const ids: MessageId[] = [];
    for (let i = 0; i < 3; i++) ids.push((await rig.send()).id);
    rig.clock.now += MINUTE;
    ids.push((await arrive(rig)).message_id);
    expect(list()).toEqual(ids.toReversed());
  });

  test('filters by each field, and by all together', async () => {
    const out = await rig.send({ body: { labels: ['urgent'] } });
    await attempt(rig, out.id, accepted());
    rig.clock.now += MINUTE;
    const middle = rig.clock.now;
    const arrived = await arrive(rig);
    rig.clock.now += MINUTE;
    const other = await rig.send({ body: { thread_id: out.thread_id, labels: ['urgent'] } });
    expect(list({ direction: 'inbound' })).toEqual([arrived.message_id]);
    expect(list({ direction: 'outbound' })).toEqual([other.id, out.id]);
    expect(list({ status: 'queued' })).toEqual([other.id]);
    expect(list({ label: 'urgent' })).toEqual([other.id, out.id]);
    expect(list({ label: 'URGENT' })).toEqual([]);
    expect(list({ thread_id: out.thread_id })).toEqual([other.id, out.id]);
    expect(list({ thread_id: rig.newId('thr', 1) })).toEqual([]);
    expect(list({ after: middle })).toEqual([other.id]);
    expect(list({ before: middle })).toEqual([out.id]);
    expect(list({ after: middle - 1, before: middle + 1 })).toEqual([arrived.message_id]);
    expect(list({ direction: 'outbound', label: 'urgent', status: 'submitted', before: middle })).toEqual([out.id]);
  });

  test('shows no bodies', async () => {
    await rig.send({ body: { html: '<p>x</p>' } });
    expect(rig.engine.listMessages({}, 10, null, false).items).toMatchObject([{ text: null, html: null }]);
  });
});

describe('pages', () => {
  test('put together are the list, without gaps or repeats, also while mail goes on coming', async () => {
    const limit = fc.integer({ min: 1, max: 7 });
    const steps = fc.array(fc.tuple(fc.integer({ min: 0, max: 2 }), fc.boolean()), { minLength: 1, maxLength: 25 });
    await fc.assert(
      fc.asyncProperty(steps, limit, fc.boolean(), async (arrivals, size, moving) => {
        rig = new MailboxRig();
        for (const [gap, inbound] of arrivals) {
          rig.clock.now += gap;
          if (inbound) await arrive(rig);
          else await rig.send();
        }
        const expected = list();
        const seen: MessageId[] = [];
        let after: Position | null = null;
        do {
          const page = rig.engine.listMessages({}, size, after, false);
          expect(page.items.length).toBeLessThanOrEqual(size);
          seen.push(...page.items.map(({ id }) => id));
          after = page.next;
          if (moving) {
            rig.clock.now += 1;
            await arrive(rig);
          }
        } while (after !== null);
        expect(seen).toEqual(expected);
      }),
      { numRuns: 60 },
    );
  });

  test('of threads and within a thread are whole too', async () => {
    const steps = fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 1, maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(steps, fc.integer({ min: 1, max: 4 }), async (arrivals, size) => {
        rig = new MailboxRig();
        const parsed = (n: number): { rfc_message_id: string; in_reply_to: string[] } => ({
          rfc_message_id: `${n}.${rig.rows('messages')}@x`,
          in_reply_to: rig.sql
            .all<{ id: string }>('SELECT rfc_message_id AS id FROM messages WHERE rfc_message_id LIKE ?', `${n}.%`)
            .map(({ id }) => id),
        });
        for (const n of arrivals) {
          rig.clock.now += n % 2;
          await arrive(rig, { parsed: parsed(n) });
        }
        const all = rig.engine.listThreads({ archived: false }, 100, null).items;
        expect(all).toHaveLength(new Set(arrivals).size);
        const seen: string[] = [];
        let after: Position | null = null;
        do {
          const page = rig.engine.listThreads({ archived: false }, size, after);
          seen.push(...page.items.map(({ id }) => id));
          after = page.next;
        } while (after !== null);
        expect(seen).toEqual(all.map(({ id }) => id));
        for (const { id, message_count } of all) {
          const whole = rig.engine.getThread(id, 100, null, BODIES)?.messages.items ?? [];
          expect(whole).toHaveLength(message_count);
          const inside: string[] = [];
          let place: Position | null = null;
          do {
            const found = rig.engine.getThread(id, size, place, BODIES);
            inside.push(...(found?.messages.items ?? []).map((message) => message.id));
            place = found?.messages.next ?? null;
          } while (place !== null);
          expect(inside).toEqual(whole.map((message) => message.id));
          // Oldest first.
          expect(whole.map(({ received_at }) => received_at)).toEqual(
            whole.map(({ received_at }) => received_at).toSorted(),
          );
        }
      }),
      { numRuns: 40 },
    );
  });

  test('of the largest size are read in one go, however many threads they touch', async () => {
    for (let i = 0; i < 105; i++) await rig.send();
    const page = rig.engine.listMessages({}, 100, null, false);
    expect(page.items).toHaveLength(100);
    expect(rig.engine.listMessages({}, 100, page.next, false).items).toHaveLength(5);
    expect(rig.engine.listThreads({ archived: false }, 100, null).items).toHaveLength(100);
  });

  test('end with null, also when the last one is full', async () => {
    for (let i = 0; i < 4; i++) await rig.send();
    const first = rig.engine.listMessages({}, 2, null, false);
    expect(first.next).not.toBeNull();
    expect(rig.engine.listMessages({}, 2, first.next, false).next).toBeNull();
  });
});

describe('threads', () => {
  test('are filtered by label, unread, direction, time and archive', async () => {
    const out = await rig.send({ body: { labels: ['a'] } });
    rig.clock.now += DAY;
    const inbound = await arrive(rig);
    rig.engine.updateMessage(inbound.message_id, { labels_add: ['b'] });
    const ids = (filter: Partial<Parameters<MailboxRig['engine']['listThreads']>[0]>): string[] =>
      rig.engine.listThreads({ archived: false, ...filter }, 10, null).items.map(({ id }) => id);
    expect(ids({})).toEqual([inbound.thread_id, out.thread_id]);
    expect(ids({ is_unread: true })).toEqual([inbound.thread_id]);
    expect(ids({ is_unread: false })).toEqual([out.thread_id]);
    expect(ids({ direction: 'inbound' })).toEqual([inbound.thread_id]);
    expect(ids({ label: 'a' })).toEqual([out.thread_id]);
    expect(ids({ after: rig.clock.now - 1 })).toEqual([inbound.thread_id]);
    expect(ids({ before: rig.clock.now })).toEqual([out.thread_id]);
    expect(ids({ archived: true })).toEqual([]);
    rig.sql.run('UPDATE threads SET archived = 1 WHERE id = ?', out.thread_id);
    expect(ids({ archived: true })).toEqual([out.thread_id]);
    expect(ids({})).toEqual([inbound.thread_id]);
  });

  test('show at most fifty people, without ourselves', async () => {
    const to = Array.from({ length: 60 }, (_, n) => ({ address: `p${n}@example.net`, name: `P ${n}` }));
    await arrive(rig, { parsed: { to: [...to, { address: 'desk@acme.example.com', name: '' }] } });
    const [thread] = rig.engine.listThreads({ archived: false }, 10, null).items;
    expect(thread?.participants).toHaveLength(50);
    expect(thread?.participants[0]).toEqual({ address: JO, name: 'Jo' });
    expect(thread?.participants.map(({ address }) => address)).not.toContain('desk@acme.example.com');
  });

  test('show each person once, whatever thread token or tag an answer was written to', async () => {
    const people = (): unknown => rig.engine.listThreads({ archived: false }, 10, null).items[0]?.participants;
    const ours = { address: 'desk+t01.zydzd25h@acme.example.com', name: 'Desk' };
    const tagged = { address: 'kim+news@example.net', name: 'Kim' };
    const [first, second] = ['lee+t0a.zydzd25h@agents.example', 'lee+t1b.zydzd25h@agents.example'];
    const { thread_id } = await arrive(rig, {
      parsed: {
        to: [ours, tagged],
        cc: [
          { address: 'desk+x@acme.example.com', name: '' },
          { address: first, name: '' },
        ],
      },
    });
    const lee = { address: 'lee@agents.example', name: '' };
    expect(people()).toEqual([{ address: JO, name: 'Jo' }, tagged, lee]);
    // As such lists were stored before.
    rig.sql.run(
      'UPDATE threads SET participants_json = ? WHERE id = ?',
      JSON.stringify([ours, { address: JO, name: 'Jo' }, { address: second, name: '' }, lee]),
      thread_id,
    );
    const seq = rig.sql.first<{ seq: number }>('SELECT seq FROM threads WHERE id = ?', thread_id)?.seq ?? 0;
    await arrive(rig, {
      request: { token: { kind: 'valid', seq, kid: '0' } },
      parsed: { from: { address: 'lee@agents.example', name: 'Lee' }, to: [ours] },
    });
    expect(people()).toEqual([
      { address: JO, name: 'Jo' },
      { address: 'lee@agents.example', name: 'Lee' },
    ]);
    // Lee is known by the token's address alone, so the mail is one of the thread.
    expect(rig.sql.all('SELECT flags_json FROM messages ORDER BY rowid DESC LIMIT 1')).toEqual([{ flags_json: '[]' }]);
  });

  test('that are not there are undefined', () => {
    expect(rig.engine.getThread(rig.newId('thr', 1), 10, null, BODIES)).toBeUndefined();
  });
});

describe('mail that is held back', () => {
  test.each(['quarantined', 'hidden', 'throttled'] as const)(
    '%s: nobody sees it but a reviewer who asks for it',
    async (status) => {
      const { message_id: id, thread_id } = await arrive(rig);
      const shown = await arrive(rig);
      rig.sql.run('UPDATE messages SET status = ? WHERE id = ?', status, id);
      rig.sql.run('UPDATE threads SET message_count = 0, unread_count = 0 WHERE id = ?', thread_id);
      expect(rig.engine.getMessage(id, BODIES, false)).toBeUndefined();
      expect(rig.engine.rawLocation(id, false)).toBeUndefined();
      expect(list()).toEqual([shown.message_id]);
      expect(list({}, true)).toEqual([shown.message_id]);
      expect(list({ q: 'open' }, true)).toEqual([shown.message_id]);
      expect(list({ status }, false)).toEqual([]);
      expect(rig.engine.getThread(thread_id, 10, null, BODIES)).toBeUndefined();
      expect(rig.engine.listThreads({ archived: false }, 10, null).items).toHaveLength(1);
      expect(list({ status }, true)).toEqual([id]);
      expect(rig.engine.getMessage(id, BODIES, true)?.id).toBe(id);
      expect(rig.engine.rawLocation(id, true)).toContain(id);
      expect(rig.engine.updateMessage(id, { read: true })).toMatchObject({ code: 'message_not_found' });
    },
  );

  test('its attachments are held back with it', async () => {
    const id = rig.newId('att', 1);
    const attachment = { filename: 'a', content_type: 'text/plain', size: 1, sha256: 'x', content_id: null };
    const { message_id } = await arrive(rig, {
      parsed: { attachments: [{ id, ...attachment, disposition: 'attachment' }] },
    });
    expect(rig.engine.attachmentLocation(message_id, id, false)).toMatchObject({ filename: 'a' });
    rig.sql.run("UPDATE messages SET status = 'quarantined'");
    expect(rig.engine.attachmentLocation(message_id, id, false)).toBeUndefined();
    expect(rig.engine.attachmentLocation(message_id, id, true)).toMatchObject({ filename: 'a' });
  });
});
