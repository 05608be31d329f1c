import { env } from 'cloudflare:workers';
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { Walk, type Way } from './deaths.ts';
import { letter, post } from './mail.ts';
import { MarkLab } from './mark-lab.ts';
import { keepStorage } from './storage.ts';
import { send } from './support.ts';

/**
 * Every mark that a send passes: whatever is at work dies there, before what it wrote was on disk and after. Then the
 * queue brings its message again, alarms go off, and the client repeats its request.
 */

keepStorage();

const walk = new Walk('a send');
let own: MarkLab;

beforeAll(async () => {
  own = await MarkLab.make();
});
beforeEach(() => own.begin());
afterEach(() => {
  vi.restoreAllMocks();
});

/** Somebody whose sends die at this mark. */
async function dying({ mark, when }: Way, nth = 1): Promise<string> {
  const from = await own.somebody();
  own.deaths.plan(mark, when, nth);
  return from;
}

/** One message, which ended so and was handed over so often; its key answers with it, and the counts are right. */
async function expectOne(from: string, id: string, status = 'delivered', calls = 1): Promise<void> {
  expect(await own.status(from, id)).toBe(status);
  expect(own.taken().map(({ message_id: taken }) => taken)).toEqual(Array.from({ length: calls }, () => id));
  expect(await own.sends(from)).toMatchObject({ id, deduplicated: true, refused: 0 });
  await own.expectBooks(from);
}

describe('a mailbox that dies while it takes a send', () => {
  async function expectNew(way: Way): Promise<void> {
    const from = await dying(way);
    const sent = await own.sends(from);
    own.expectDied(way.mark);
    expect(sent).toMatchObject({ refused: 1, deduplicated: false });
    await own.rest(from);
    await expectOne(from, sent.id);
  }

  test.each(walk.at('submit.planned', 'submit.composed'))(
    'at $mark, $when, has nothing of it: the repeat is the first (S1, P1)',
    expectNew,
  );

  test.each(walk.at('submit.stored', 'submit.reserved'))(
    'at $mark, $when, leaves a copy and a hold: the repeat is the first, and the hold goes back (S2, S10, P1)',
    expectNew,
  );

  test.each(walk.at('submit.in_transaction', 'submit.committed'))(
    'at $mark, $when, has all of it or nothing: the repeat makes one message of it (S5, S6, E1, P1)',
    async (way) => {
      const from = await dying(way);
      const sent = await own.sends(from);
      own.expectDied(way.mark);
      expect(sent).toMatchObject({ refused: 1, deduplicated: way.when === 'after the commit' });
      await own.rest(from);
      await expectOne(from, sent.id);
    },
  );

  test.each(walk.at('submit.enqueued'))(
    'at $mark, $when, has it in its queue already: it is sent once (E3, P1)',
    async (way) => {
      const from = await dying(way);
      const sent = await own.sends(from);
      await own.rest(from);
      own.expectDied(way.mark);
      await expectOne(from, sent.id);
    },
  );

  test.each(walk.at('submit.release_recorded'))(
    'at $mark, $when, which the object store has failed: what was reserved goes back (S3, P1)',
    async (way) => {
      const from = await dying(way);
      vi.spyOn(env.BLOBS, 'put').mockRejectedValueOnce(new Error('the store is away'));
      const sent = await own.sends(from);
      own.expectDied(way.mark);
      expect(sent).toMatchObject({ refused: 1, deduplicated: false });
      await own.rest(from);
      await expectOne(from, sent.id);
    },
  );
});

test.each(walk.at('dispatch.before_send', 'dispatch.after_send'))(
  'a mailbox that dies at $mark, $when, queues again what its queue has lost (E4, E5, P1)',
  async (way) => {
    const from = await dying(way);
    const { id } = await own.sends(from);
    await own.queued();
    own.jobs = [];
    await own.rest(from);
    own.expectDied(way.mark);
    await expectOne(from, id);
  },
);

describe('a consumer that dies', () => {
  async function expectEnd(way: Way, status: string, calls: number): Promise<void> {
    const from = await dying(way);
    const { id } = await own.sends(from);
    await own.rest(from);
    own.expectDied(way.mark);
    await expectOne(from, id, status, calls);
  }

  test.each(walk.at('consume.start', 'consume.scope_read'))(
    'at $mark has done nothing: the next one sends (C8)',
    (way) => expectEnd(way, 'delivered', 1),
  );

  test.each(walk.at('consume.claimed', 'consume.message_read'))(
    'at $mark, with its claim, leaves a message that nobody sends any more: uncertain (C5)',
    (way) => expectEnd(way, 'uncertain', 0),
  );

  test.each(walk.at('consume.transport_done'))(
    'at $mark, with the answer to its call, leaves an uncertain message, and no second call (O1, T9)',
    (way) => expectEnd(way, 'uncertain', 1),
  );

  test.each(walk.at('consume.recorded'))(
    'at $mark, before it could say so, is followed by one with nothing to do (O4)',
    (way) => expectEnd(way, 'delivered', 1),
  );

  test.each(walk.at('consume.requeued'))(
    'at $mark has put its message off twice: it is sent once (C2, T10)',
    async (way) => {
      const from = await dying(way);
      const { id } = await own.sends(from);
      await own.queued();
      vi.spyOn(env.BLOBS, 'get').mockRejectedValueOnce(new Error('the store is away'));
      await own.rest(from);
      own.expectDied(way.mark);
      await expectOne(from, id);
    },
  );
});

describe('a mailbox that dies while a consumer', () => {
  async function expectDelivered(way: Way): Promise<void> {
    const from = await dying(way);
    const { id } = await own.sends(from);
    await own.rest(from);
    own.expectDied(way.mark);
    await expectOne(from, id);
  }

  test.each(walk.at('claim.in_transaction', 'claim.committed'))(
    'claims, at $mark, $when: it asks again with its token, and sends (C4, C7, P1)',
    expectDelivered,
  );

  test.each(walk.at('outcome.in_transaction', 'outcome.committed'))(
    'reports, at $mark, $when: it reports again (O2, O3, P1)',
    expectDelivered,
  );

  test.each(walk.at('quota_task.before_call', 'quota_task.after_call'))(
    'waits for what is owed to the quota, at $mark, $when: it is counted once (O2, P1)',
    expectDelivered,
  );
});

test.each(walk.at('claim.expired'))(
  'a mailbox that dies at $mark, $when, ends a claim of a dead consumer all the same (C5, P1)',
  async ({ mark, when }) => {
    const from = await dying({ mark: 'consume.claimed', when: 'as a consumer' });
    const { id } = await own.sends(from);
    await own.queued();
    await own.deliver();
    own.expectDied('consume.claimed');
    own.deaths.plan(mark, when);
    await own.rest(from);
    own.expectDied('consume.claimed', mark);
    await expectOne(from, id, 'uncertain', 0);
  },
);

describe('a quota that dies', () => {
  test.each(walk.at('quota.in_transaction'))(
    'at $mark of the reservation, $when, refuses the send: its repeat is held once (S10, S11, P1)',
    async (way) => {
      const from = await dying(way);
      const sent = await own.sends(from);
      own.expectDied(way.mark);
      expect(sent).toMatchObject({ refused: 1, deduplicated: false });
      await own.rest(from);
      await expectOne(from, sent.id);
    },
  );

  test.each(([2, 3] as const).flatMap((nth) => walk.at('quota.in_transaction').map((way) => ({ ...way, nth }))))(
    'at $mark #$nth, of what a send has used or how it ended, $when, counts it once (S12, V7, P1)',
    async ({ nth, ...way }) => {
      const from = await dying(way, nth);
      const { id } = await own.sends(from);
      await own.rest(from);
      own.expectDied(way.mark);
      await expectOne(from, id);
      expect(await own.outcomes(from)).toEqual(['delivered']);
    },
  );

  test.each(walk.at('quota.hold_expired'))(
    'at $mark, $when, gives the hold of a send that never came to be back once (S10, P1)',
    async ({ mark, when }) => {
      const from = await dying({ mark: 'submit.reserved', when: 'after the commit' });
      expect((await post(own.lab.key, from, letter(), `key of ${from}`)).status).toBeGreaterThanOrEqual(500);
      own.deaths.plan(mark, when);
      await own.rest(from);
      own.expectDied('submit.reserved', mark);
      await own.expectBooks(from);
      const { id, deduplicated } = await own.sends(from);
      expect(deduplicated).toBe(false);
      await own.rest(from);
      await expectOne(from, id);
    },
  );
});

describe('a person', () => {
  /** Asks until it is no fault of ours. */
  async function asks(route: 'messages.cancel' | 'messages.resolve', from: string, id: string): Promise<number[]> {
    const params = { identity_id: from, message_id: id };
    const body = route === 'messages.resolve' ? { body: { outcome: 'sent' } } : {};
    const heard: number[] = [];
    while (heard.length < 5 && (heard.at(-1) ?? 500) >= 500) {
      heard.push((await send(own.lab.key, route, { params, ...body })).status);
    }
    return heard;
  }

  test.each(walk.at('cancel.in_transaction', 'cancel.committed'))(
    'cancels, and the mailbox dies at $mark, $when: asking again cancels, or hears that it is done (S14, P1)',
    async ({ mark, when }) => {
      const from = await dying({ mark, when });
      const { id } = await own.sends(from);
      await own.queued();
      expect(await asks('messages.cancel', from, id)).toEqual([500, when === 'after the commit' ? 409 : 200]);
      own.expectDied(mark);
      await own.rest(from);
      await expectOne(from, id, 'canceled', 0);
    },
  );

  test.each(walk.at('resolve.in_transaction', 'resolve.committed'))(
    'settles an uncertain send, and the mailbox dies at $mark, $when: it is settled and counted once (O5, P1)',
    async ({ mark, when }) => {
      const from = await dying({ mark, when });
      const { id } = await own.sends(from, { to: ['timeout@simulator.invalid'] });
      await own.rest(from);
      expect(await own.status(from, id)).toBe('uncertain');
      expect(await asks('messages.resolve', from, id)).toEqual([500, when === 'after the commit' ? 409 : 200]);
      own.expectDied(mark);
      await own.rest(from);
      expect(await own.status(from, id)).toBe('submitted');
      expect(await own.sends(from, { to: ['timeout@simulator.invalid'] })).toMatchObject({ id, deduplicated: true });
      await own.expectBooks(from);
    },
  );
});

describe('with a provider that refuses', () => {
  const to = ['jo@example.net', 'kim@example.org'];

  /** A message to the outside, which the provider answers so at first. */
  async function mails(way: Way, code: string): Promise<{ from: string; id: string; again: () => Promise<unknown> }> {
    const from = await own.somebody('live');
    own.suppressAtProvider('kim@example.org');
    own.answers = [Object.assign(new Error(code), { code })];
    own.deaths.plan(way.mark, way.when);
    const mail = { to: code === 'E_RECIPIENT_SUPPRESSED' ? to : to.slice(0, 1) };
    const { id } = await own.sends(from, mail, own.live.key);
    await own.rest(from);
    own.expectDied(way.mark);
    // The next test begins with nobody on the list.
    await own.forgetSuppressions();
    return { from, id, again: () => own.sends(from, mail, own.live.key) };
  }

  test.each(walk.at('consume.suppressed_synced'))(
    'a consumer that dies at $mark makes no second call, and nobody else does (C5)',
    async (way) => {
      const { from, id, again } = await mails(way, 'E_RECIPIENT_SUPPRESSED');
      expect(await own.status(from, id, own.live.key)).toBe('uncertain');
      expect(own.mailed.map((mail) => mail.to)).toEqual([to]);
      expect(await again()).toMatchObject({ id, deduplicated: true });
      await own.expectBooks(from);
    },
  );

  test.each(walk.at('round.in_transaction', 'round.committed'))(
    'a mailbox that dies at $mark, $when, lets the others have the message, once (C4, T4, P1)',
    async (way) => {
      const { from, id, again } = await mails(way, 'E_RECIPIENT_SUPPRESSED');
      expect(await own.status(from, id, own.live.key)).toBe('submitted');
      // Of two calls the first is proven to have sent nothing.
      expect(own.mailed.map((mail) => mail.to)).toEqual([to, to.slice(0, 1)]);
      expect(await again()).toMatchObject({ id, deduplicated: true });
      await own.expectBooks(from);
    },
  );

  test.each(walk.at('consume.check_asked'))(
    'a consumer that dies at $mark leaves what it has recorded (O4)',
    async (way) => {
      const { from, id, again } = await mails(way, 'E_SENDER_DOMAIN_NOT_AVAILABLE');
      expect(await own.status(from, id, own.live.key)).toBe('rejected');
      expect(own.mailed).toHaveLength(1);
      expect(await again()).toMatchObject({ id, deduplicated: true });
      await own.expectBooks(from);
    },
  );
});

test('every mark of a send has been died at', () => {
  expect(walk.left()).toEqual([]);
});
