import type { SqlValue } from '@pmail/engine/sql.ts';
import { describe, expect, test } from 'vitest';
import { playToRest, type Scenario, type Scene, SECOND } from './cases/scenario.fixture.ts';
import { broken, type MailboxChange, type QuotaChange } from './mutant.fixture.ts';
import { RELAY_DOMAIN } from './population.ts';

/**
 * Every invariant has a checker that finds it broken: a part between the engines and their world is replaced by one that
 * does the wrong thing, and the run has to say which invariant does not hold. Without that part the same run is clean.
 */

interface Mutant {
  mailbox?: MailboxChange;
  quota?: QuotaChange;
  wiring?: Scenario['wiring'];
  scenario?: Partial<Scenario>;
  act?: (own: Scene) => Promise<void>;
}

const twice = async (own: Scene): Promise<void> => {
  const intent = await own.send('key');
  await own.wait(20 * SECOND);
  await own.request(intent);
};

/** Three sends, of which the last may be refused for good. */
async function sendThree(own: Scene): Promise<void> {
  for (const key of ['a', 'b', 'c']) {
    const intent = own.intend(key);
    const reply = await own.request(intent);
    if (!reply.ok && reply.code !== 'timeout') intent.refused = reply.code;
  }
}

/** The same mail twice; its reports come when both are uncertain. */
async function sendAlike(own: Scene, index: number): Promise<void> {
  const { delivery } = own.stage.deployment;
  delivery.pause();
  await Promise.all(['a', 'b'].map((key) => own.send(key, { subject: 'The same' }, index)));
  await own.wait(60 * SECOND);
  delivery.resume();
}

const startsWith = (binding: SqlValue | undefined, text: string): boolean => String(binding).startsWith(text);

/** A byte more than was stored, for every transport. */
const OTHER_BYTES: Scenario['wiring'] = {
  consumer: (world) => ({
    ...world,
    transports: Object.fromEntries(
      Object.entries(world.transports).map(([name, transport]) => [
        name,
        {
          ...transport,
          send: (message: Parameters<typeof transport.send>[0], ms: number) =>
            transport.send({ ...message, mime: Uint8Array.from([...message.mime, 0x21]) }, ms),
        },
      ]),
    ),
  }),
};

/** The invariant that the checkers must name, what is broken, and how. */
const MUTANTS: [string, string, Mutant][] = [
  [
    'I1',
    'a claim that nobody sees',
    {
      mailbox: { first: (query, [key]) => /FROM meta/.test(query) && startsWith(key, 'claim:') },
      scenario: { always: { copies: 2 } },
    },
  ],
  [
    'I1',
    'a claim that nobody sees, of a test tenant, whose transport is our own',
    {
      mailbox: { first: (query, [key]) => /FROM meta/.test(query) && startsWith(key, 'claim:') },
      scenario: { always: { copies: 2 }, tenants: [{ mode: 'test', identities: 2 }] },
      act: async (own) => void (await own.send('key', { to: ['delivered@simulator.invalid'] })),
    },
  ],
  [
    'I1',
    'a ledger that knows no key',
    {
      mailbox: { first: (query) => /FROM idempotency WHERE key_hash/.test(query) },
      act: twice,
    },
  ],
  [
    'I2',
    'a message that is accepted and nowhere noted as waiting',
    {
      mailbox: { run: (query, [key]) => /INTO meta/.test(query) && startsWith(key, 'dispatch:') },
    },
  ],
  [
    'I3',
    'a status that goes back',
    {
      mailbox: {
        bind: (query, bindings) =>
          /^UPDATE deliveries SET status = \?1/.test(query) ? ['queued', ...bindings.slice(1)] : bindings,
      },
    },
  ],
  [
    'I4',
    'releases that are never paid, of sends that say they have ended otherwise',
    {
      wiring: {
        quota: (world) => ({ ...world, sendState: async () => 'ended' }),
        mailbox: (ports) => ({
          ...ports,
          quota: {
            ...ports.quota,
            apply: async (task) => (task.op === 'release' ? undefined : ports.quota.apply(task)),
          },
        }),
      },
      act: async (own) => {
        own.stage.deployment.outbound.pause();
        const intent = await own.send('key');
        await own.remote().cancel(own.row(intent).id);
        own.stage.deployment.outbound.resume();
        await own.wait(SECOND);
      },
    },
  ],
  [
    'I4',
    'settlements that are applied each time they come',
    {
      quota: { first: (query) => /INTO applied/.test(query) && { fresh: 1 } },
      scenario: { faults: [{ call: /^quota settle/, harm: 'answer_lost' }] },
    },
  ],
  [
    'I4',
    'usage that is not counted',
    {
      quota: { first: (query, [metric]) => /INTO counters/.test(query) && startsWith(metric, 'usage:') },
    },
  ],
  [
    'I4',
    'a thread that does not count its messages',
    {
      mailbox: { run: (query) => /^UPDATE threads SET last_at/.test(query) },
    },
  ],
  [
    'I4',
    'people who are not counted',
    {
      mailbox: { run: (query) => /^INSERT INTO contacts/.test(query) },
    },
  ],
  [
    'I4',
    'a cap that nothing is counted against before it is full',
    {
      quota: { first: (query, [metric]) => /FROM counters WHERE metric/.test(query) && startsWith(metric, 'sends') },
      scenario: { tenants: [{ mode: 'live', identities: 2, policy: { tenant_daily_send_cap: 2 } }] },
      act: sendThree,
    },
  ],
  [
    'I4',
    'an allowance that is never used up',
    {
      quota: { first: (query, [key]) => /FROM meta/.test(query) && startsWith(key, 'billing_mode') },
      scenario: { tenants: [{ mode: 'live', identities: 2, granted: 2 }] },
      act: sendThree,
    },
  ],
  [
    'I5',
    'a ledger that gives another answer each time',
    {
      mailbox: { first: (query) => /FROM idempotency WHERE key_hash/.test(query) },
      act: twice,
    },
  ],
  ['I6', 'a transport that is handed other bytes', { wiring: OTHER_BYTES }],
  [
    'I6',
    'a fallback that changes more than whom the message is from',
    {
      wiring: OTHER_BYTES,
      act: async (own) => {
        own.stage.deployment.outbound.pause();
        await own.send('key', {}, 1);
        await own.stage.deployment.standing.setDomain(RELAY_DOMAIN, 'failing');
        own.stage.deployment.outbound.resume();
        await own.wait(20 * SECOND);
      },
    },
  ],
  [
    'I7',
    'a hold that its mailbox always wants to keep',
    {
      wiring: { quota: (world) => ({ ...world, sendState: async () => 'open' }) },
      scenario: { faults: [{ crash: 'submit.reserved' }] },
    },
  ],
  [
    'I7',
    'an alarm that is never set',
    {
      wiring: { mailbox: (ports) => ({ ...ports, alarm: { set: () => {} } }) },
    },
  ],
  [
    'I4',
    'reports that are counted each time they come',
    {
      quota: { first: (query) => /INTO outcome_events/.test(query) && { fresh: 1 } },
      scenario: { always: { event_duplicate: 1 } },
    },
  ],
  [
    'I2',
    'a name for our message in reports that nobody reads',
    {
      wiring: {
        consumer: (world) => ({
          ...world,
          mailbox: (route) => {
            const mailbox = world.mailbox(route);
            return {
              ...mailbox,
              applyEvent: (event) => mailbox.applyEvent({ ...event, our_message_id: null }),
            };
          },
        }),
      },
      scenario: { provider: ['accept_and_lose_answer'], tenants: [{ mode: 'live', identities: 3 }] },
      act: (own) => sendAlike(own, 2),
    },
  ],
  [
    'T3',
    'a report that takes the first of two that it could be about',
    {
      mailbox: { rewrite: (query) => query.replace('AND ? LIMIT 2', 'AND ? LIMIT 1') },
      scenario: { provider: ['accept_and_lose_answer'] },
      act: (own) => sendAlike(own, 0),
    },
  ],
  [
    'I9',
    'events that are handed on into nothing',
    {
      wiring: {
        mailbox: (ports) => ({
          ...ports,
          events: { ...ports.events, dispatch: async () => ({ taken: null, known: [] }) },
        }),
      },
    },
  ],
  [
    'I9',
    'events that leave numbers out',
    {
      mailbox: {
        bind: (query, bindings) =>
          /^INSERT INTO outbox/.test(query) ? [Number(bindings[0]) * 2, ...bindings.slice(1)] : bindings,
      },
    },
  ],
  [
    'I9',
    'an end that is told as something else',
    {
      mailbox: {
        bind: (query, bindings) =>
          /^INSERT INTO outbox/.test(query)
            ? bindings.map((value) =>
                typeof value === 'string' ? value.replace('message.delivered', 'message.deferred') : value,
              )
            : bindings,
      },
    },
  ],
  [
    'S2',
    'a sweep that finds no orphans',
    {
      wiring: {
        mailbox: (ports) => ({
          ...ports,
          blobs: { ...broken.blobs(ports.blobs), list: async () => ({ keys: [], more: false }) },
        }),
      },
      scenario: { faults: [{ crash: 'submit.stored' }] },
    },
  ],
  [
    'S14',
    'a thread whose lock is always free',
    {
      mailbox: {
        rewrite: (query) =>
          query.replace('SELECT * FROM threads WHERE seq', 'SELECT *, NULL AS lock_owner FROM threads WHERE seq'),
      },
      act: async (own) => {
        const first = await own.send('first');
        await own.wait(20 * SECOND);
        await Promise.all(['a', 'b'].map((key) => own.pursue(own.answer(key, first))));
      },
    },
  ],
  [
    'S14',
    'a cancel that sees no claim',
    {
      mailbox: { first: (query, [key]) => /FROM meta/.test(query) && startsWith(key, 'claim:') },
      act: async (own) => {
        own.stage.universe.atMark('consume.message_read', 1, () => {
          own
            .remote()
            .cancel(own.row(intent).id)
            .catch(() => undefined);
        });
        const intent = own.intend('key');
        await own.request(intent);
        await own.wait(20 * SECOND);
      },
    },
  ],
  [
    'C9',
    'a consumer to whom everybody is active',
    {
      wiring: {
        consumer: (world) => ({
          ...world,
          db: {
            batch: async (statements) => {
              const results = await world.db.batch(statements);
              return results.map((rows) =>
                rows.map((row) => (row['status'] === 'paused' ? { ...row, status: 'active' } : row)),
              );
            },
          },
        }),
      },
      act: async (own) => {
        own.stage.deployment.outbound.pause();
        await own.send('key');
        await own.stage.deployment.standing.pause(own.identity().identity_id);
        await own.wait(SECOND);
        own.stage.deployment.outbound.resume();
        await own.wait(20 * SECOND);
      },
    },
  ],
  [
    'C9',
    'a policy that lets suppressed recipients through',
    {
      mailbox: {
        bind: (query, bindings) =>
          /^INSERT INTO deliveries/.test(query)
            ? bindings.map((value) => (value === 'suppressed' ? 'queued' : value))
            : bindings,
      },
      act: async (own) => {
        const { deployment } = own.stage;
        const hash = await deployment.hashAddress('jo@example.net');
        await deployment.standing.suppress(own.identity().tenant_id, 'jo@example.net', hash);
        await own.wait(SECOND);
        await own.send('key', { to: ['jo@example.net', 'kim@example.net'] });
      },
    },
  ],
];

describe('the checkers find', () => {
  test.each(MUTANTS)('%s broken by %s', async (finds, _what, { mailbox, quota, wiring, scenario, act }) => {
    const run = (parts: Scenario['wiring']) =>
      playToRest(
        { meets: [], stepsMax: 20_000, ...scenario, ...(parts === undefined ? {} : { wiring: parts }) },
        act ?? (async (own) => void (await own.send('key', { to: ['a@example.net', 'b@example.net'] }))),
      );
    const sound = await run(undefined);
    expect(sound.report.violations).toEqual([]);
    const mutant = await run(broken.wiring(wiring, mailbox, quota));
    expect(mutant.report.violations.map(({ invariant }) => invariant)).toContain(finds);
  });
});
