import { describe, expect, test } from 'vitest';
import type { SimTenant } from '../population.ts';
import { HOUR, MINUTE, play, type Scene, SECOND } from './scenario.fixture.ts';

/** The tenant's quota: reserved and not used, not heard, not there. At rest it holds nothing and counts what was sent. */

const TIGHT: SimTenant = { mode: 'live', identities: 2, granted: 3, policy: { tenant_daily_send_cap: 1 } };

const EMPTY = { used: 0, held: 0, counted: 0 };
const ONE = { used: 1, held: 0, counted: 1 };

describe('S10 the quota is reserved and the commit fails', () => {
  test.each([
    ['the process dies before it', { crash: 'submit.reserved' }],
    ['it dies inside it', { crash: 'submit.in_transaction' }],
    ['a statement throws', { statement: /INTO idempotency/ }],
  ] as const)(
    'S10 %s, and nobody repeats the send: hold and count go back when the hold is over',
    async (_how, fault) => {
      const scene = await play({ faults: [fault], meets: ['S10'] }, async (own) => {
        const intent = own.intend('key');
        expect(await own.request(intent)).toEqual({ ok: false, code: 'timeout' });
        intent.refused = 'unavailable';
        expect(own.books).toEqual({ used: 0, held: 1, counted: 1 });
        await own.wait(9 * MINUTE);
        expect(own.books).toEqual({ used: 0, held: 1, counted: 1 });
        await own.wait(2 * MINUTE);
        expect(own.books).toEqual(EMPTY);
      });
      expect(scene.stored('/out/')).toEqual([]);
      expect(scene.stage.deployment.provider.log).toEqual([]);
    },
  );

  test('S10 and the day has room for one: the repeat waits for that room, and gets it', async () => {
    const scene = await play(
      { faults: [{ crash: 'submit.reserved' }], tenants: [TIGHT], meets: ['S10'] },
      async (own) => {
        const intent = own.intend('key');
        await own.request(intent);
        expect(await own.request(intent)).toMatchObject({ ok: false, code: 'daily_cap_reached' });
        await own.wait(11 * MINUTE);
        expect(await own.request(intent)).toMatchObject({ ok: true, deduplicated: false });
      },
    );
    expect(scene.books).toEqual(ONE);
  });
});

describe("S11 the quota's answer is lost", () => {
  test.each(['answer_lost', 'lost'] as const)(
    'S11 (%s): the send is refused, exactly what was taken goes back, and the repeat takes it once',
    async (harm) => {
      const scene = await play(
        { faults: [{ call: /^reserve/, harm }], tenants: [TIGHT], meets: ['S11'] },
        async (own) => {
          const intent = own.intend('key');
          expect(await own.request(intent)).toMatchObject({
            ok: false,
            code: 'unavailable',
            details: { step: 'quota' },
          });
          expect(own.books).toEqual(EMPTY);
          expect(await own.request(intent)).toMatchObject({ ok: true, deduplicated: false });
        },
      );
      expect(scene.books).toEqual(ONE);
    },
  );

  test('S11 together with the answer to the release: the release is repeated, and applied once', async () => {
    const scene = await play(
      {
        faults: [
          { call: /^reserve/, harm: 'answer_lost' },
          { call: /^quota release/, harm: 'answer_lost', times: 2 },
        ],
        meets: ['S11'],
      },
      async (own) => {
        const [first, second] = [own.intend('first'), own.intend('second')];
        await own.request(first);
        await own.request(second);
        first.refused = 'unavailable';
        await own.wait(2 * MINUTE);
      },
    );
    expect(scene.books).toEqual(ONE);
  });

  test('S11 comes after the client has given up: the send was accepted, and its repeat hears so', async () => {
    const slow = { call: /^reserve/, harm: 'answer_late', ms: 45 * SECOND } as const;
    const scene = await play({ faults: [slow], meets: [] }, async (own) => {
      const intent = own.intend('key');
      expect(await own.request(intent)).toEqual({ ok: false, code: 'timeout' });
      await own.wait(30 * SECOND);
      expect(await own.request(intent)).toMatchObject({ ok: true, deduplicated: true });
    });
    expect(scene.books).toEqual(ONE);
  });
});

describe('S12 the quota object is down', () => {
  const down = ({ stage }: Scene, ms: number): void => stage.universe.outage(/^(reserve|quota )/, ms, ['S12']);

  test('S12 nothing is accepted meanwhile, nothing is kept of what was refused, and it goes on afterwards', async () => {
    const scene = await play({ meets: ['S12'] }, async (own) => {
      down(own, MINUTE);
      const intent = own.intend('key');
      expect(await own.request(intent)).toMatchObject({ ok: false, code: 'unavailable', details: { step: 'quota' } });
      expect(own.find(intent)).toBeUndefined();
      await own.pursue(intent);
      expect(intent.answers).toHaveLength(1);
    });
    expect(scene.books).toEqual(ONE);
    expect(scene.stored('/out/')).toHaveLength(1);
  });

  test('S12 for longer than a hold lasts: what was accepted before is sent, keeps its hold, and is counted when it is back', async () => {
    const scene = await play({ meets: ['S12'], storm: HOUR }, async (own) => {
      const intent = await own.send('key');
      down(own, 30 * MINUTE);
      await own.wait(29 * MINUTE);
      expect(own.row(intent).status).toBe('delivered');
      expect(own.books).toEqual({ used: 0, held: 1, counted: 1 });
      await own.wait(2 * MINUTE);
      expect(own.books).toEqual(ONE);
    });
    expect(scene.books).toEqual(ONE);
  });

  test('S12 for longer than a hold lasts: a send canceled meanwhile gives its place in the day back', async () => {
    const scene = await play({ faults: [{ crash: 'submit.committed' }], meets: ['S12'], storm: HOUR }, async (own) => {
      const intent = own.intend('key');
      await own.request(intent);
      down(own, 30 * MINUTE);
      expect(await own.remote().cancel(own.row(intent).id)).toMatchObject({ ok: true });
      await own.wait(20 * MINUTE);
      expect(own.books).toEqual(EMPTY);
      await own.request(intent);
    });
    expect(scene.books).toEqual(EMPTY);
  });

  test('S12 a replay needs no quota: the first answer comes all the same', async () => {
    await play({ meets: [] }, async (own) => {
      const intent = await own.send('key');
      down(own, MINUTE);
      expect(await own.request(intent)).toMatchObject({ ok: true, deduplicated: true });
    });
  });
});

describe('K4 the edge of a quota day', () => {
  test.each([
    ['an ordinary night', Date.UTC(2026, 9, 14, 22)],
    ['the day of 25 hours begins', Date.UTC(2026, 9, 24, 22)],
    ['the day of 25 hours ends', Date.UTC(2026, 9, 25, 23)],
    ['the day of 23 hours begins', Date.UTC(2027, 2, 27, 23)],
    ['the day of 23 hours ends', Date.UTC(2027, 2, 28, 22)],
  ])('K4 %s: the cap is full until local midnight, and free a second later', async (_night, midnight) => {
    const scene = await play(
      { start: midnight - 10 * MINUTE, tenants: [{ ...TIGHT, granted: 9 }], meets: ['K4'] },
      async (own) => {
        await own.send('before');
        const intent = own.intend('after');
        expect(await own.request(intent)).toMatchObject({
          ok: false,
          code: 'daily_cap_reached',
          details: { cap: 'tenant', resets_at: new Date(midnight).toISOString() },
        });
        await own.wait(midnight - own.now - 2 * SECOND);
        expect(await own.request(intent)).toMatchObject({ ok: false, code: 'daily_cap_reached' });
        await own.wait(midnight - own.now);
        expect(await own.request(intent)).toMatchObject({ ok: true });
      },
    );
    expect(scene.books).toEqual({ used: 2, held: 0, counted: 2 });
  });
});
