import { describe, expect, test } from 'vitest';
import { HOUR, MINUTE, play, type Scene, SECOND } from './scenario.fixture.ts';

/** V1 to V9 and the reconciliation of uncertain sends: reports that come twice, early, late, many, or about nobody knows what. */

const LIVE = [{ mode: 'live', identities: 3 }] as const;
/** The identity whose provider names our own id in its reports. */
const NAMING = 2;

describe('reports', () => {
  test('V1 that each come several times count once', async () => {
    const scene = await play(
      {
        always: { event_duplicate: 1, copies: 2 },
        reports: ['deferred', 'delivered', 'complained'],
        meets: ['V1', 'V5'],
      },
      async (own) => void (await own.send('key')),
    );
    const [intent] = scene.intents;
    expect(intent && scene.row(intent).status).toBe('complained');
    expect(intent && scene.events(intent)).toEqual([
      'message.sent',
      'message.deferred',
      'message.delivered',
      'message.complained',
      'suppression.created',
    ]);
    expect(outcomes(scene)).toEqual(['complained', 'delivered']);
  });

  test('V3 that overtake the record of their own call wait for it', async () => {
    const scene = await play(
      {
        always: { event_early: 1 },
        faults: [{ call: /^outcome /, harm: 'late', ms: 20 * SECOND }],
        meets: ['V3'],
        reportsOnce: true,
      },
      async (own) => {
        const intent = await own.send('key');
        await own.wait(15 * SECOND);
        expect(own.row(intent).status).toBe('queued');
        await own.wait(2 * MINUTE);
        expect(own.row(intent).status).toBe('delivered');
      },
    );
    expect(scene.report.cases.get('V4')).toBeUndefined();
  });

  test('V4 about senders and ids that nobody knows change nothing, and end', async () => {
    const scene = await play(
      { always: { event_stray: 1 }, meets: ['V4'] },
      async (own) => void (await own.send('key')),
    );
    const [intent] = scene.intents;
    expect(intent && scene.events(intent)).toEqual(['message.sent', 'message.delivered']);
    expect(outcomes(scene)).toEqual(['delivered']);
  });

  test('V6 of a bounce after the delivery: bounced, suppressed, and counted as both', async () => {
    const scene = await play({ reports: ['delivered', 'bounced_hard'], meets: ['V6'] }, async (own) => {
      const intent = await own.send('key');
      await own.wait(MINUTE);
      expect(own.row(intent).status).toBe('bounced');
      const again = await own.send('again');
      expect(own.deliveries(again)).toEqual({ 'jo@example.net': 'suppressed' });
    });
    expect(outcomes(scene)).toEqual(['bounced', 'delivered']);
  });

  test.each(['event.in_transaction', 'event.applied', 'event.suppressed', 'event.outcome_recorded'] as const)(
    'V7 whose consumer dies at %s: row, list, window and event once each',
    async (crash) => {
      const scene = await play({ reports: ['bounced_hard'], faults: [{ crash }], meets: ['V7'] }, async (own) => {
        await own.send('key');
      });
      const [intent] = scene.intents;
      expect(intent && scene.events(intent)).toEqual(['message.sent', 'message.bounced', 'suppression.created']);
      expect(outcomes(scene)).toEqual(['bounced']);
      const listed = scene.stage.deployment.directory.all<{ reason: string }>('SELECT reason FROM suppressions');
      expect(listed).toEqual([{ reason: 'hard_bounce' }]);
    },
  );

  test('V9 of nearly a thousand recipients at one mailbox, each twice and more at once, are all applied once', async () => {
    const scene = await play(
      { reports: ['deferred', 'delivered'], always: { event_duplicate: 0.3 }, storm: HOUR, meets: ['V9', 'V1'] },
      async (own) => {
        const sends = Array.from({ length: 20 }, (_, n) => `key-${n}`);
        await Promise.all(sends.map((key) => own.send(key, { to: crowd(key) })));
      },
    );
    const { sql } = scene.stage.deployment.mailbox(scene.identity().identity_id);
    expect(sql.all('SELECT status, COUNT(*) AS n FROM deliveries GROUP BY status')).toEqual([
      { status: 'delivered', n: 20 * 48 },
    ]);
    // A deferral that comes after the delivery is no news, so of those there may be fewer.
    expect(sql.first("SELECT COUNT(*) AS n FROM outbox WHERE type = 'message.delivered'")).toEqual({ n: 20 * 48 });
  });
});

describe('a report about an uncertain send', () => {
  test('T3 settles the only one that it can be about', async () => {
    const scene = await play(
      { provider: ['accept_and_lose_answer'], meets: ['T3 one'], reportsOnce: true },
      async (own) => {
        await own.send('key');
      },
    );
    const [intent] = scene.intents;
    expect(intent && scene.row(intent)).toMatchObject({ status: 'delivered', flags_json: '["reconciled"]' });
    expect(intent && scene.events(intent)).toEqual(['message.uncertain', 'message.reconciled', 'message.delivered']);
    expect(scene.books).toEqual({ used: 1, held: 0, counted: 1 });
  });

  test('T3 settles none of two that it can be about: a person has to', async () => {
    const scene = await play(
      { provider: ['accept_and_lose_answer'], meets: ['T3 several', 'V4'], reportsOnce: true },
      async (own) => {
        // The same mail twice under two keys. The reports come when both are uncertain.
        own.stage.deployment.delivery.pause();
        await Promise.all(['a', 'b'].map((key) => own.send(key, { subject: 'The same' })));
        await own.wait(MINUTE);
        own.stage.deployment.delivery.resume();
      },
    );
    const { sql } = scene.stage.deployment.mailbox(scene.identity().identity_id);
    expect(sql.all("SELECT status, flags_json FROM messages WHERE direction = 'outbound'")).toEqual([
      { status: 'uncertain', flags_json: '[]' },
      { status: 'uncertain', flags_json: '[]' },
    ]);
    expect(scene.books).toEqual({ used: 0, held: 0, counted: 2 });
  });

  test('T3 is orphaned when nothing uncertain is like it', async () => {
    const scene = await play(
      {
        provider: ['accept_and_lose_answer'],
        faults: [{ crash: 'consume.message_read' }],
        meets: ['V4', 'C5'],
        storm: HOUR,
        reportsOnce: true,
      },
      async (own) => {
        await own.send('key', { to: ['a@example.net'] });
        // What the provider reports is of another, whom a person has settled before the report comes.
        own.stage.deployment.delivery.pause();
        const other = await own.send('other');
        await own.wait(40 * SECOND);
        await own.remote().resolve(own.row(other).id, 'not_sent');
        own.stage.deployment.delivery.resume();
      },
    );
    expect(scene.intents.map((intent) => scene.row(intent).status)).toEqual(['uncertain', 'failed']);
  });

  test('T3 that names our own id settles that one, though two are alike', async () => {
    const scene = await play(
      { provider: ['accept_and_lose_answer'], tenants: [...LIVE], meets: ['T3 named'], reportsOnce: true },
      async (own) => {
        own.stage.deployment.delivery.pause();
        await Promise.all(['a', 'b'].map((key) => own.send(key, { subject: 'The same' }, NAMING)));
        await own.wait(MINUTE);
        own.stage.deployment.delivery.resume();
      },
    );
    const { sql } = scene.stage.deployment.mailbox(scene.identity(NAMING).identity_id);
    expect(sql.all("SELECT status, flags_json FROM messages WHERE direction = 'outbound'")).toEqual([
      { status: 'delivered', flags_json: '["reconciled"]' },
      { status: 'delivered', flags_json: '["reconciled"]' },
    ]);
    expect(scene.books).toEqual({ used: 2, held: 0, counted: 2 });
  });

  test('O5 that names it lands after the word of a person, whichever that was', async () => {
    const scene = await play(
      { provider: ['accept_and_lose_answer'], tenants: [...LIVE], meets: ['O5'] },
      async (own) => {
        own.stage.deployment.delivery.pause();
        const intent = await own.send('key', {}, NAMING);
        await own.wait(40 * SECOND);
        expect(await own.remote(NAMING).resolve(own.row(intent).id, 'sent')).toMatchObject({ ok: true });
        own.stage.deployment.delivery.resume();
        await own.wait(MINUTE);
        expect(own.row(intent).status).toBe('delivered');
      },
    );
    expect(scene.books).toEqual({ used: 1, held: 0, counted: 1 });
  });
});

describe('O5 a test send that broke off after one of its copies', () => {
  test('O5 the copy that arrived is delivered, the other is what a person says, for good', async () => {
    const scene = await play(
      {
        tenants: [{ mode: 'test', identities: 2 }],
        faults: [{ call: /^send to pm-inbound/, harm: 'lost', nth: 2 }],
        meets: [],
      },
      async (own) => {
        const intent = await own.send('key', { to: ['agent0.t0@agents.example', 'agent1.t0@agents.example'] });
        await own.wait(MINUTE);
        expect(own.deliveries(intent)).toEqual({
          'agent0.t0@agents.example': 'delivered',
          'agent1.t0@agents.example': 'uncertain',
        });
        expect(await own.remote().resolve(own.row(intent).id, 'sent')).toMatchObject({ ok: true });
      },
    );
    const [intent] = scene.intents;
    expect(intent && scene.deliveries(intent)['agent1.t0@agents.example']).toBe('submitted');
  });
});

function crowd(key: string): string[] {
  return Array.from({ length: 48 }, (_, n) => `${key}-${n}@example.net`);
}

/** The kinds in the abuse windows of the first tenant, sorted. */
function outcomes(scene: Scene): string[] {
  const { sql } = scene.stage.deployment.quota(scene.identity().tenant_id);
  return sql.all<{ outcome: string }>('SELECT outcome FROM outcomes ORDER BY outcome').map(({ outcome }) => outcome);
}
