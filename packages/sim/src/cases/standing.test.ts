import type { DomainState } from '@pmail/core/policy/types.ts';
import { describe, expect, test } from 'vitest';
import type { Intent } from '../client.ts';
import { PLATFORM_DOMAIN, RELAY_DOMAIN } from '../population.ts';
import { DAY, type Ended, HOUR, MINUTE, play, type Scenario, type Scene, SECOND } from './scenario.fixture.ts';

/**
 * C9: the identity is paused, the tenant suspended, a recipient suppressed or the domain changed after a send was accepted
 * and before it is claimed. The pointer is lost in each, so that the claim comes five minutes after the acceptance.
 */

/** One tenant with an identity at the platform, at a relay and at SES. */
const THREE = [{ mode: 'live' as const, identities: 3 }];

const EMPTY = { used: 0, held: 0, counted: 0 };

type EndedWith = Ended & { intent: Intent };

/** Accepts a send, does something to who sends, and lets it come to rest. */
async function after(
  change: (own: Scene, intent: Intent) => Promise<void>,
  more: Partial<Scenario> = {},
): Promise<EndedWith> {
  const scene = await play(
    { faults: [{ call: /^send to pm-outbound/, harm: 'lost' }], meets: ['E2'], ...more },
    async (own) => {
      const intent = own.intend('key');
      expect(await own.request(intent)).toMatchObject({ ok: true, message: { status: 'queued' } });
      await change(own, intent);
    },
  );
  const [intent] = scene.intents;
  if (intent === undefined) throw new Error('nothing was sent');
  return Object.assign(scene, { intent });
}

/** Canceled by the service, with its reason in the audit, given back, and never handed to anybody. */
function expectCanceled(scene: EndedWith, reason: string): void {
  expect(scene.row(scene.intent).status).toBe('canceled');
  expect(scene.events(scene.intent)).toEqual(['message.canceled']);
  const audit = scene.audit(scene.intent);
  expect(audit.map(({ action }) => action)).toEqual(['message.cancel']);
  expect(JSON.parse(audit[0]?.details_json ?? '')).toEqual({ reason, actor: 'system' });
  expect(scene.stage.deployment.provider.log).toEqual([]);
  expect(scene.books).toEqual(EMPTY);
}

describe('C9 the identity is paused after acceptance', () => {
  test('C9 the message is canceled, told of, audited and given back, and its key goes on answering', async () => {
    const scene = await after(
      async (own, intent) => {
        await own.stage.deployment.standing.pause(own.identity().identity_id);
        await own.wait(10 * MINUTE);
        expect(await own.request(intent)).toMatchObject({ ok: true, deduplicated: true });
        const later = own.intend('later');
        expect(await own.request(later)).toMatchObject({ ok: false, code: 'identity_paused' });
        later.refused = 'identity_paused';
      },
      { meets: ['C9 paused'] },
    );
    expectCanceled(scene, 'identity_paused');
  });

  test('C9 and let go on before the claim: the message is sent', async () => {
    const scene = await after(async (own) => {
      const { standing } = own.stage.deployment;
      await standing.pause(own.identity().identity_id);
      await own.wait(MINUTE);
      await standing.unpause(own.identity().identity_id);
    });
    expect(scene.row(scene.intent).status).toBe('delivered');
    expect(scene.stage.deployment.provider.log).toHaveLength(1);
  });

  test('C9 after the claim: the call that is under way goes on, and is recorded', async () => {
    const scene = await play({ meets: [] }, async (own) => {
      const intent = own.intend('key');
      own.stage.universe.atMark('consume.claimed', 1, () => {
        own.stage.deployment.standing.pause(own.identity().identity_id).catch(() => undefined);
      });
      await own.request(intent);
    });
    const [intent] = scene.intents;
    expect(intent && scene.row(intent).status).toBe('delivered');
    expect(scene.books).toEqual({ used: 1, held: 0, counted: 1 });
  });

  test('C9 between the attempts of a relay that put some off: they wait, and fail when their day is over', async () => {
    const to = ['a@example.net', 'b@example.net', 'c@example.net'];
    const scene = await play(
      { provider: ['partial', 'accept'], meets: ['C9 paused', 'T4'], storm: HOUR },
      async (own) => {
        const intent = await own.send('key', { to }, 1);
        await own.wait(10 * SECOND);
        expect(own.deliveries(intent)['c@example.net']).toBe('queued');
        await own.stage.deployment.standing.pause(own.identity(1).identity_id);
      },
    );
    const [intent] = scene.intents;
    expect(intent && scene.deliveries(intent)).toEqual({
      'a@example.net': 'delivered',
      'b@example.net': 'rejected',
      'c@example.net': 'failed',
    });
    expect(scene.stage.deployment.provider.log).toHaveLength(1);
    expect(scene.books).toEqual({ used: 1, held: 0, counted: 1 });
  });
});

describe('C9 the tenant is suspended after acceptance', () => {
  test('C9 the message is canceled for that reason, though its identities are paused with the tenant', async () => {
    const scene = await after(
      async (own) => {
        await own.stage.deployment.standing.suspend(own.identity().tenant_id);
        await own.wait(10 * MINUTE);
        const later = own.intend('later');
        expect(await own.request(later)).toMatchObject({ ok: false, code: 'tenant_suspended' });
        later.refused = 'tenant_suspended';
      },
      { meets: ['C9 suspended'] },
    );
    expectCanceled(scene, 'tenant_suspended');
  });

  test('C9 the consumer that cancels dies before its audit entry: the next one writes it, once', async () => {
    const scene = await after(
      async (own) => {
        await own.stage.deployment.standing.suspend(own.identity().tenant_id);
      },
      {
        faults: [
          { call: /^send to pm-outbound/, harm: 'lost' },
          { call: /^stop /, harm: 'answer_lost' },
        ],
        meets: ['C9 suspended'],
      },
    );
    expectCanceled(scene, 'tenant_suspended');
  });
});

describe('C9 a recipient is suppressed after acceptance', () => {
  test('C9 the message goes as it was accepted, and the next one does not go to that recipient', async () => {
    const to = ['jo@example.net', 'kim@example.net'];
    const scene = await play(
      { faults: [{ call: /^send to pm-outbound/, harm: 'lost' }], meets: ['C9 suppressed'] },
      async (own) => {
        await own.send('before', { to });
        const { deployment } = own.stage;
        const hash = await deployment.hashAddress('jo@example.net');
        await deployment.standing.suppress(own.identity().tenant_id, 'jo@example.net', hash);
        await own.send('after', { to });
        await own.send('only', { to: ['jo@example.net'] });
      },
    );
    const [before, then, only] = scene.intents;
    expect(before && scene.deliveries(before)).toEqual({
      'jo@example.net': 'delivered',
      'kim@example.net': 'delivered',
    });
    expect(then && scene.deliveries(then)).toEqual({ 'jo@example.net': 'suppressed', 'kim@example.net': 'delivered' });
    expect(only && scene.row(only).status).toBe('suppressed');
    expect(only && scene.calls(only)).toEqual([]);
    expect(scene.books).toEqual({ used: 3, held: 0, counted: 2 });
  });
});

describe('C9 the domain changes after acceptance', () => {
  const turns = (state: DomainState) => async (own: Scene) => {
    await own.stage.deployment.standing.setDomain(PLATFORM_DOMAIN, state);
    await own.wait(10 * MINUTE);
  };

  test.each(['failing', 'suspended'] as const)(
    'C9 to %s, and nothing to fall back to: it fails, unsent',
    async (state) => {
      const scene = await after(turns(state), { meets: ['C9 domain'] });
      expect(scene.row(scene.intent)).toMatchObject({ status: 'failed', status_reason: 'domain_failing_no_fallback' });
      expect(scene.events(scene.intent)).toEqual(['message.failed']);
      expect(scene.stage.deployment.provider.log).toEqual([]);
      expect(scene.books).toEqual({ used: 0, held: 0, counted: 1 });
    },
  );

  test.each([
    ['failing', 1],
    ['suspended', 2],
  ] as const)(
    'C9 to %s, and the identity has a platform address: it leaves from there, marked as such (I6)',
    async (state, index) => {
      const scene = await play(
        { faults: [{ call: /^send to pm-outbound/, harm: 'lost' }], meets: ['E2', 'C9 fallback'], tenants: THREE },
        async (own) => {
          const { address } = own.identity(index);
          await own.send('key', {}, index);
          await own.stage.deployment.standing.setDomain(address.split('@')[1] ?? '', state);
          await own.wait(10 * MINUTE);
        },
      );
      const [intent] = scene.intents;
      if (intent === undefined) throw new Error('nothing was sent');
      const [call, ...more] = scene.calls(intent);
      expect(call).toMatchObject({ provider: 'cloudflare', from: `agent${index}.t0@${PLATFORM_DOMAIN}` });
      expect(call?.reply_to).toMatch(new RegExp(`^agent${index}\\.t0\\+t[^@]+@${PLATFORM_DOMAIN}$`));
      expect(more).toEqual([]);
      const row = scene.row(intent);
      expect([row.status, JSON.parse(row.flags_json)]).toEqual(['delivered', ['sent_via_fallback']]);
      expect(scene.sql(intent).all('SELECT fallback_pinned FROM threads')).toEqual([{ fallback_pinned: 1 }]);
      expect(scene.books).toEqual({ used: 1, held: 0, counted: 1 });
    },
  );

  test('C9 to failing between the attempts of a relay: who was put off gets it from the platform address', async () => {
    const to = ['a@example.net', 'b@example.net', 'c@example.net'];
    const scene = await play({ provider: ['partial', 'accept'], meets: ['T4', 'C9 fallback'] }, async (own) => {
      await own.send('key', { to }, 1);
      await own.wait(10 * SECOND);
      await own.stage.deployment.standing.setDomain(RELAY_DOMAIN, 'failing');
      await own.wait(5 * MINUTE);
    });
    const [intent] = scene.intents;
    expect(intent && scene.calls(intent).map(({ provider, recipients }) => [provider, recipients])).toEqual([
      ['smtp', to],
      ['cloudflare', ['c@example.net']],
    ]);
    expect(intent && scene.deliveries(intent)).toEqual({
      'a@example.net': 'delivered',
      'b@example.net': 'rejected',
      'c@example.net': 'delivered',
    });
    expect(scene.books).toEqual({ used: 2, held: 0, counted: 1 });
  });

  test.each(['removing', 'removed'] as const)('C9 to %s: it is rejected, unsent', async (state) => {
    const scene = await after(turns(state), { meets: ['C9 domain'] });
    expect(scene.row(scene.intent)).toMatchObject({ status: 'rejected', status_reason: 'sender_domain_unavailable' });
    expect(scene.events(scene.intent)).toEqual(['message.rejected']);
    expect(scene.stage.deployment.provider.log).toEqual([]);
  });

  test.each(['pending', 'verifying'] as const)(
    'C9 to %s for a while: it waits without a claim, and goes',
    async (state) => {
      const scene = await after(
        async (own, intent) => {
          await turns(state)(own);
          expect(own.row(intent).status).toBe('queued');
          expect(own.sql(intent).all('SELECT token FROM attempts')).toEqual([]);
          expect(own.books.held).toBe(1);
          await own.stage.deployment.standing.setDomain(PLATFORM_DOMAIN, 'healthy');
        },
        { meets: ['C9 domain'] },
      );
      expect(scene.row(scene.intent).status).toBe('delivered');
      expect(scene.stage.deployment.provider.log).toHaveLength(1);
      expect(scene.books).toEqual({ used: 1, held: 0, counted: 1 });
    },
  );

  test('C9 to verifying for good: it fails when its day is over', async () => {
    const scene = await after(turns('verifying'), { meets: ['C9 domain'] });
    expect(scene.row(scene.intent)).toMatchObject({ status: 'failed', status_reason: 'quota_exhausted' });
    expect(scene.report.virtual_ms).toBeLessThan(DAY + HOUR);
    expect(scene.stage.deployment.provider.log).toEqual([]);
    expect(scene.books).toEqual({ used: 0, held: 0, counted: 1 });
  });

  test('C9 to degraded: it goes', async () => {
    const scene = await after(turns('degraded'));
    expect(scene.row(scene.intent).status).toBe('delivered');
  });
});
