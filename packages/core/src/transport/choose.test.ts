import { describe, expect, it } from 'vitest';
import { OUTBOUND_KINDS, type OutboundKind } from '../message/request.ts';
import { address, platformAddress } from '../policy/context.fixture.ts';
import type { DomainState, TransportKind } from '../policy/types.ts';
import { decideTransport, localAddress, type TransportDecision, type TransportFacts, testProvider } from './choose.ts';

const STATES: DomainState[] = [
  'pending',
  'verifying',
  'healthy',
  'degraded',
  'failing',
  'suspended',
  'removing',
  'removed',
];
const TRANSPORTS: TransportKind[] = ['cloudflare', 'ses', 'smtp'];
const FROM = 'desk@acme.example.com';
const PLATFORM = platformAddress();

interface Case {
  state: DomainState;
  transport: TransportKind;
  kind: OutboundKind;
  mode: 'live' | 'test';
  fallback: boolean;
  paused: boolean;
  /** State of the platform domain; undefined when the identity has no platform address. */
  platform: DomainState | undefined;
}

const CASES: Case[] = STATES.flatMap((state) =>
  TRANSPORTS.flatMap((transport) =>
    OUTBOUND_KINDS.flatMap((kind) =>
      (['live', 'test'] as const).flatMap((mode) =>
        [true, false].flatMap((fallback) =>
          [true, false].flatMap((paused) =>
            [...STATES, undefined].map((platform) => ({ state, transport, kind, mode, fallback, paused, platform })),
          ),
        ),
      ),
    ),
  ),
);

function decide(given: Case, recipients = ['jo@example.net']): TransportDecision {
  const { state, transport, mode, fallback, paused, platform } = given;
  const facts: TransportFacts = {
    tenant_mode: mode,
    addresses: [
      address({ domain: { state, transport } }),
      ...(platform === undefined ? [] : [platformAddress({ domain: { state: platform } })]),
    ],
    domain_fallback: fallback,
    ses_sending_paused: paused,
  };
  return decideTransport(facts, { from: FROM, kind: given.kind, recipients });
}

/** The table of the design as a list of rows, the first that fits wins. */
function oracle({ state, transport, kind, mode, fallback, paused, platform }: Case): unknown {
  const leaves = (provider: string): string => (mode === 'test' ? 'loopback' : provider);
  if (state === 'pending' || state === 'verifying') return { kind: 'wait' };
  if (state === 'removing' || state === 'removed') return { kind: 'rejected', reason: 'sender_domain_unavailable' };
  const broken = state === 'failing' || state === 'suspended' || (transport === 'ses' && paused);
  if (broken) {
    const possible = fallback && kind !== 'marketing' && (platform === 'healthy' || platform === 'degraded');
    if (!possible) return { kind: 'failed', reason: 'domain_failing_no_fallback' };
    const from = platformAddress({ domain: { state: platform } });
    return { kind: 'fallback', provider: leaves('cloudflare'), from };
  }
  if (kind === 'marketing' && transport === 'cloudflare') return { kind: 'rejected', reason: 'marketing_needs_ses' };
  return { kind: 'send', provider: leaves(transport) };
}

describe('which way a message leaves', () => {
  it.each(STATES)('follows the table for every combination on a domain that is %s', (state) => {
    for (const given of CASES.filter((entry) => entry.state === state)) {
      expect({ given, decision: decide(given) }).toEqual({ given, decision: oracle(given) });
    }
  });

  it('is never a real provider for a test tenant', () => {
    for (const given of CASES.filter(({ mode }) => mode === 'test')) {
      for (const recipients of [['delivered@simulator.invalid'], ['kim@acme.example.com'], ['jo@example.net'], []]) {
        const decision = decide(given, recipients);
        if ('provider' in decision) expect(['simulator', 'loopback']).toContain(decision.provider);
      }
    }
  });

  it('is never a test provider for a live tenant, not even to the simulator', () => {
    for (const given of CASES.filter(({ mode }) => mode === 'live')) {
      const decision = decide(given, ['delivered@simulator.invalid']);
      if ('provider' in decision) expect(['cloudflare', 'ses', 'smtp']).toContain(decision.provider);
    }
  });

  it('is none when the From address is no longer one of the identity', () => {
    const facts: TransportFacts = {
      tenant_mode: 'live',
      addresses: [PLATFORM],
      domain_fallback: true,
      ses_sending_paused: false,
    };
    expect(decideTransport(facts, { from: FROM, kind: 'transactional', recipients: [] })).toEqual({
      kind: 'rejected',
      reason: 'sender_domain_unavailable',
    });
  });
});

describe('the fallback', () => {
  it('always leaves by Cloudflare, whatever the broken domain uses', () => {
    for (const transport of TRANSPORTS) {
      const decision = decide({
        state: 'failing',
        transport,
        kind: 'transactional',
        mode: 'live',
        fallback: true,
        paused: false,
        platform: 'healthy',
      });
      expect(decision).toEqual({ kind: 'fallback', provider: 'cloudflare', from: PLATFORM });
    }
  });

  it('does not exist for the platform domain itself', () => {
    const facts: TransportFacts = {
      tenant_mode: 'live',
      addresses: [platformAddress({ domain: { state: 'failing' } })],
      domain_fallback: true,
      ses_sending_paused: false,
    };
    expect(decideTransport(facts, { from: PLATFORM.address, kind: 'transactional', recipients: [] })).toEqual({
      kind: 'failed',
      reason: 'domain_failing_no_fallback',
    });
  });

  it('does not go to a retired platform address', () => {
    const facts: TransportFacts = {
      tenant_mode: 'live',
      addresses: [address({ domain: { state: 'suspended' } }), platformAddress({ status: 'retired' })],
      domain_fallback: true,
      ses_sending_paused: false,
    };
    expect(decideTransport(facts, { from: FROM, kind: 'transactional', recipients: [] }).kind).toBe('failed');
  });

  it('is not taken because SES is paused when the domain sends another way', () => {
    for (const transport of ['cloudflare', 'smtp'] as const) {
      const given = { state: 'healthy', kind: 'transactional', mode: 'live', fallback: true } as const;
      expect(decide({ ...given, transport, paused: true, platform: 'healthy' })).toEqual({
        kind: 'send',
        provider: transport,
      });
    }
  });
});

describe('the test providers', () => {
  it('are the simulator as soon as one recipient is there, else loopback', () => {
    expect(testProvider(['kim@acme.example.com'])).toBe('loopback');
    expect(testProvider(['kim@acme.example.com', 'bounce+1@simulator.invalid'])).toBe('simulator');
    expect(testProvider([])).toBe('loopback');
    expect(testProvider(['a@x.simulator.invalid'])).toBe('loopback');
  });

  it('take a tag off to find the local address', () => {
    expect(localAddress('kim+tag@acme.example.com')).toBe('kim@acme.example.com');
    expect(localAddress('kim@acme.example.com')).toBe('kim@acme.example.com');
  });
});
