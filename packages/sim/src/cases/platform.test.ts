import { describe, expect, test } from 'vitest';
import type { CaseId } from '../case-list.ts';
import { HOUR, MINUTE, play, type Scene, SECOND } from './scenario.fixture.ts';

/** P: what the platform may do at any time. Objects move, old instances linger, parts are away, power goes. */

const ONE = { used: 1, held: 0, counted: 1 };

/** Moves the mailbox the moment that a mark is reached. */
function evictAt(own: Scene, mark: Parameters<Scene['stage']['universe']['atMark']>[0]): void {
  own.stage.universe.atMark(mark, 1, () => own.stage.deployment.mailbox(own.identity().identity_id).evict(false));
}

describe('P1 an object is evicted between two awaits', () => {
  test('P1 of a submit while its calls are open: the client hears nothing, and its repeat is accepted once', async () => {
    const slow = { call: /^(put|reserve)/, harm: 'late', ms: 2 * SECOND, times: 2 } as const;
    const scene = await play({ faults: [slow], meets: ['P1'] }, async (own) => {
      evictAt(own, 'submit.composed');
      const intent = own.intend('key');
      expect(await own.request(intent)).toEqual({ ok: false, code: 'timeout' });
      expect(own.find(intent)).toBeUndefined();
      expect(await own.request(intent)).toMatchObject({ ok: true, deduplicated: false });
    });
    expect(scene.stage.deployment.provider.log).toHaveLength(1);
    expect(scene.books).toEqual(ONE);
  });

  // From there to its end a submit waits for nobody, so an eviction finds it done and no call in the object.
  test.each(['submit.stored', 'submit.reserved'] as const)(
    'a submit that is past its last wait, at %s, is not cut off: the answer stands, and its repeat hears the same',
    async (mark) => {
      const scene = await play({ meets: [] }, async (own) => {
        evictAt(own, mark);
        const intent = own.intend('key');
        expect(await own.request(intent)).toMatchObject({ ok: true, deduplicated: false });
        const { id } = own.row(intent);
        expect(await own.request(intent)).toMatchObject({ ok: true, deduplicated: true, message: { id } });
      });
      expect(scene.report.history.join('\n')).toContain('evicted: mailbox');
      expect(scene.report.cases.has('P1')).toBe(false);
      expect(scene.stage.deployment.provider.log).toHaveLength(1);
      expect(scene.books).toEqual(ONE);
    },
  );

  test.each([
    ['the put', /^reserve/, /^put /],
    ['the reservation', /^put /, /^reserve/],
  ] as const)(
    'P1 of a submit while %s alone is open: its client hears nothing, and its repeat is accepted once',
    async (_which, done, open) => {
      const slow = { call: open, harm: 'answer_late', ms: 10 * SECOND } as const;
      const scene = await play({ faults: [slow], meets: ['P1'] }, async (own) => {
        const intent = own.intend('key');
        const first = own.request(intent);
        await own.wait(2 * SECOND);
        // The other has its answer by then, and so has what made the entry in the registry of work.
        expect(done.test('put ') ? own.stored('/out/') : [own.books.held]).toHaveLength(1);
        own.stage.deployment.mailbox(intent.identity.identity_id).evict(false);
        expect(await first).toEqual({ ok: false, code: 'timeout' });
        expect(await own.request(intent)).toMatchObject({ ok: true, deduplicated: false });
      });
      expect(scene.stage.deployment.provider.log).toHaveLength(1);
      expect(scene.stored('/out/')).toHaveLength(1);
      expect(scene.books).toEqual(ONE);
    },
  );

  test('P1 of two requests with one key, which a new instance cannot know of each other: one message', async () => {
    const slow = { call: /^put /, harm: 'answer_late', ms: 10 * SECOND } as const;
    const scene = await play({ faults: [slow], meets: ['P1'] }, async (own) => {
      const intent = own.intend('key');
      const first = own.request(intent);
      await own.wait(2 * SECOND);
      own.stage.deployment.mailbox(intent.identity.identity_id).evict(false);
      const second = own.request(intent);
      expect(await first).toEqual({ ok: false, code: 'timeout' });
      expect(await second).toMatchObject({ ok: true, deduplicated: false });
    });
    expect(scene.stage.deployment.provider.log).toHaveLength(1);
    expect(scene.books).toEqual(ONE);
  });
});

describe('P4 an old instance goes on after another has taken its place', () => {
  /** Moves the mailbox of the one intent after a while, and lets its old instance linger. */
  const moveAfter = (own: Scene, ms: number): void => {
    const host = own.stage.deployment.mailbox(own.identity().identity_id);
    own.stage.universe.scheduler.after(ms, () => host.evict(true));
  };

  test('P4 with a submit whose store answers only then: it cannot commit, and the new one has the message once', async () => {
    const slow = { call: /^put /, harm: 'answer_late', ms: 10 * SECOND } as const;
    const scene = await play({ faults: [slow], meets: ['P1', 'P4'] }, async (own) => {
      moveAfter(own, 2 * SECOND);
      const intent = own.intend('key');
      expect(await own.request(intent)).toEqual({ ok: false, code: 'timeout' });
      expect(await own.request(intent)).toMatchObject({ ok: true, deduplicated: false });
      await own.wait(20 * SECOND);
      expect(own.sql(intent).all("SELECT id FROM messages WHERE direction = 'outbound'")).toHaveLength(1);
      // What the old one has reserved and stored is left over until its time is up.
      expect(own.books).toMatchObject({ held: 1, counted: 2 });
      expect(own.stored('/out/')).toHaveLength(2);
    });
    expect(scene.stage.deployment.provider.log).toHaveLength(1);
    expect(scene.books).toEqual(ONE);
    expect(scene.stored('/out/')).toHaveLength(1);
  });

  test('P4 with a submit whose repeat has been accepted: it takes nothing away from the message that stands', async () => {
    // The old one hears that the quota is full only when its successor has committed, and would clean up after itself.
    const tenants = [{ mode: 'live', identities: 2, policy: { tenant_daily_send_cap: 1 } }] as const;
    const slow = { call: /^reserve/, harm: 'late', ms: 10 * SECOND } as const;
    const scene = await play({ tenants: [...tenants], faults: [slow], meets: ['P1', 'P4'] }, async (own) => {
      moveAfter(own, 2 * SECOND);
      const intent = own.intend('key');
      await own.request(intent);
      expect(await own.request(intent)).toMatchObject({ ok: true, deduplicated: false });
      await own.wait(20 * SECOND);
      expect(own.row(intent).status).toBe('delivered');
    });
    expect(scene.books).toEqual(ONE);
    expect(scene.stage.deployment.provider.log).toHaveLength(1);
  });

  test('P4 with its dispatch alarm: its pointer is one too many, and the message leaves once', async () => {
    const faults = [
      { call: /^send to pm-outbound/, harm: 'lost' },
      { call: /^send to pm-outbound/, harm: 'answer_late', ms: 10 * SECOND, nth: 2 },
    ] as const;
    const scene = await play({ faults, meets: ['P4', 'E2'] }, async (own) => {
      const intent = await own.send('key');
      moveAfter(own, 5 * MINUTE + 5 * SECOND);
      await own.wait(15 * MINUTE);
      expect(own.row(intent).status).toBe('delivered');
    });
    expect(scene.stage.deployment.provider.log).toHaveLength(1);
  });

  test('P4 with a debt to the quota that it pays once more: it counts once', async () => {
    const slow = { call: /^quota settle/, harm: 'answer_late', ms: 10 * SECOND } as const;
    const scene = await play({ faults: [slow], meets: ['P4'] }, async (own) => {
      await own.send('key');
      moveAfter(own, 5 * SECOND);
      await own.wait(5 * MINUTE);
    });
    expect(scene.books).toEqual(ONE);
  });
});

describe('P6 a part is down for an hour', () => {
  const parts: [string, RegExp, { ok: boolean; code?: string; deduplicated?: boolean }][] = [
    ['the directory', /^directory/, { ok: false, code: 'timeout' }],
    ['the object store', /^(put|get|list|inspect|delete)\b/, { ok: false, code: 'unavailable' }],
    // What is accepted waits in the mailbox, and nobody who sends has to know.
    ['the queues', /^send to /, { ok: true, deduplicated: false }],
  ];

  test.each(parts)(
    'P6 %s: what was accepted before is sent, what comes meanwhile is refused or sent later',
    async (_part, label, reply) => {
      const met: CaseId[] = ['P6'];
      const scene = await play({ meets: met, storm: 2 * HOUR }, async (own) => {
        const before = await own.send('before');
        own.stage.universe.outage(label, HOUR, met);
        const during = own.intend('during');
        expect(await own.request(during)).toMatchObject(reply);
        await own.wait(HOUR - MINUTE);
        expect(await own.request(during)).toMatchObject(reply.ok ? { ok: true, deduplicated: true } : reply);
        await own.wait(2 * MINUTE);
        await own.pursue(during);
        await own.wait(20 * MINUTE);
        expect([before, during].map((intent) => own.row(intent).status)).toEqual(['delivered', 'delivered']);
      });
      expect(scene.intents.map((intent) => scene.calls(intent).length)).toEqual([1, 1]);
      expect(scene.books).toEqual({ used: 2, held: 0, counted: 2 });
    },
  );
});

describe('P8 power goes', () => {
  test.each([
    ['and the queues forget what they held', true],
    ['and the queues keep what they held', false],
  ])('P8 at any moment of a send, %s: accepted once, called at most once, and at rest', async (_how, forgets) => {
    // A send takes about seven seconds from its request to its last report.
    const ends = new Set<string>();
    for (let ms = 20; ms < 7 * SECOND; ms += 170) {
      const scene = await play({ meets: [], storm: HOUR }, async (own) => {
        own.stage.universe.scheduler.after(ms, () => own.stage.deployment.powerLoss(forgets));
        await own.send('key');
        await own.wait(30 * MINUTE);
      });
      const [intent] = scene.intents;
      const { log } = scene.stage.deployment.provider;
      expect(log.length).toBeLessThanOrEqual(1);
      const end = log.some(({ accepted }) => accepted.length > 0) ? 'delivered' : 'uncertain';
      expect(intent && scene.row(intent).status, `power lost after ${ms} ms`).toBe(end);
      ends.add(end);
    }
    expect(ends).toEqual(new Set(['delivered', 'uncertain']));
  });
});
