import type { WebhookWorld } from '@pmail/engine/webhooks/world.ts';
import { describe, expect, test } from 'vitest';
import { playToRest, type Scenario, type Scene, SECOND } from './cases/scenario.fixture.ts';
import type { ReceiverPlan } from './receivers.ts';

/** The checkers of webhooks find what is broken on the way to a subscriber, each time with a part that does it wrong. */

interface Mutant {
  webhooks: (world: WebhookWorld) => WebhookWorld;
  plan?: ReceiverPlan;
  inside?: boolean;
  scenario?: Partial<Scenario>;
  /** What is done after the send. */
  after?: (own: Scene) => Promise<void>;
}

type Statements = Parameters<WebhookWorld['db']['batch']>[0];

/** A directory that is given other statements. */
function otherwise(world: WebhookWorld, change: (statements: Statements) => Statements): WebhookWorld {
  return { ...world, db: { batch: (statements) => world.db.batch(change(statements)) } };
}

function rewritten(world: WebhookWorld, from: RegExp, to: string): WebhookWorld {
  return otherwise(world, (statements) => statements.map((one) => ({ ...one, sql: one.sql.replace(from, to) })));
}

const isFanOut = (statements: Statements): boolean => statements.some(({ sql }) => /SET fanned_out_at/.test(sql));

const MUTANTS: [string, string, Mutant][] = [
  [
    'V10',
    'a fan-out that writes down the first endpoint alone',
    {
      webhooks: (world) => otherwise(world, (all) => (isFanOut(all) ? [...all.slice(0, 1), ...all.slice(-1)] : all)),
    },
  ],
  [
    'V10',
    'a fan-out that dies after it has said that it was done, and before it was',
    {
      webhooks: (world) => ({
        ...world,
        db: {
          batch: async (statements) => {
            if (!isFanOut(statements)) return world.db.batch(statements);
            await world.db.batch(statements.slice(-1));
            world.mark('webhook.fanned_out');
            return world.db.batch(
              statements.map((one) => ({ ...one, sql: one.sql.replace(/AND fanned_out_at IS NULL/g, '') })),
            );
          },
        },
      }),
      scenario: { faults: [{ crash: 'webhook.fanned_out' }] },
    },
  ],
  [
    'V10',
    'an attempt that is recorded before the call',
    {
      webhooks: (world) => ({
        ...world,
        post: async (...request) => {
          world.post(...request).catch(() => undefined);
          return { ok: true, status: 200 };
        },
      }),
      scenario: { faults: [{ crash: 'webhook.recorded' }] },
    },
  ],
  [
    'V10',
    'events that are written anew for each attempt',
    {
      webhooks: (world) => ({
        ...world,
        readEvent: async (row) => {
          const text = await world.readEvent(row);
          return text === null ? null : JSON.stringify({ attempt_at: world.now(), ...JSON.parse(text) });
        },
      }),
    },
  ],
  [
    'V10',
    'signatures with a secret of before',
    { webhooks: (world) => ({ ...world, secrets: async () => [`whsec_${'A'.repeat(43)}=`] }) },
  ],
  [
    'V10',
    'runs that take up what another has in hand',
    {
      webhooks: (world) => rewritten(world, /\(taken_until IS NULL OR NOT \([^)]*\)\)/, '1'),
      plan: ['take_slowly'],
      scenario: { always: { copies: 2 } },
    },
  ],
  [
    'V10',
    'endpoints that are always on',
    {
      webhooks: (world) => ({
        ...world,
        db: {
          batch: async (statements) => {
            const results = await world.db.batch(statements);
            return results.map((rows) => rows.map((row) => ('enabled' in row ? { ...row, enabled: 1 } : row)));
          },
        },
      }),
      plan: ['fail', 'take'],
      after: async (own) => {
        const [receiver] = own.stage.deployment.subscribers.receivers.all;
        if (receiver === undefined) throw new Error('no receiver');
        await own.stage.deployment.subscribers.turn(receiver.endpoint_id, false);
      },
    },
  ],
  ['V10', 'waits of any length', { webhooks: (world) => ({ ...world, random: () => 4 }), plan: ['fail', 'take'] }],
  [
    'V10',
    'deliveries that are given up after the first failure',
    {
      webhooks: (world) => ({ ...world, waits: { ...world.waits, webhook_wait_ms_max: 1 } }),
      plan: ['fail', 'take'],
    },
  ],
  [
    'V10',
    'addresses that nobody looks at',
    { webhooks: (world) => ({ ...world, resolve: async () => ['93.184.215.14'] }), inside: true },
  ],
  [
    'V10',
    'an endpoint that is gone and stays on',
    {
      webhooks: (world) => rewritten(world, /SET enabled = 0, disabled_reason = 'failing'/, 'SET enabled = enabled'),
      plan: ['gone'],
    },
  ],
  [
    'I7',
    'a sweep that finds nothing',
    {
      webhooks: (world) => rewritten(world, /WHERE nth <= \?/, 'WHERE nth < 0 AND nth <= ?'),
      scenario: { faults: [{ call: /^begin webhook/, harm: 'lost' }] },
    },
  ],
];

describe('the checkers of webhooks find', () => {
  test.each(MUTANTS)(
    '%s broken by %s',
    async (finds, _what, { webhooks, plan = ['take'], inside = false, scenario, after }) => {
      const run = (wiring: Scenario['wiring']) =>
        playToRest(
          {
            meets: [],
            stepsMax: 40_000,
            waits: { webhook_wait_ms_max: 60 * SECOND },
            ...scenario,
            ...(wiring === undefined ? {} : { wiring }),
          },
          async (own) => {
            const { subscribers } = own.stage.deployment;
            const { tenant_id } = own.identity();
            await subscribers.add({ tenant_id, plan, inside });
            await subscribers.add({ tenant_id, plan: ['take'] });
            await own.send('key');
            await own.wait(20 * SECOND);
            await after?.(own);
          },
        );
      const sound = await run(undefined);
      expect(sound.report.violations).toEqual([]);
      const mutant = await run({ webhooks });
      expect(mutant.report.violations.map(({ invariant }) => invariant)).toContain(finds);
    },
  );
});
