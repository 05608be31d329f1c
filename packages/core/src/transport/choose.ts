import { type Address, withoutDetail } from '../address/address.ts';
import type { OutboundKind } from '../message/request.ts';
import type { AddressFacts } from '../policy/types.ts';
import { isSimulatorAddress } from './simulator-scripts.ts';
import type { Provider } from './types.ts';

/** The directory's view at the moment a message is about to leave. */
export interface TransportFacts {
  tenant_mode: 'live' | 'test';
  addresses: AddressFacts[];
  domain_fallback: boolean;
  /** The platform check found that SES has paused sending for the account. */
  ses_sending_paused: boolean;
}

export type TransportDecision =
  | { kind: 'send'; provider: Provider }
  /** From the identity's platform address, by Cloudflare. */
  | { kind: 'fallback'; provider: Provider; from: AddressFacts }
  /** The domain went back to an unproven state after acceptance: nothing leaves until it is proven again. */
  | { kind: 'wait' }
  | { kind: 'failed'; reason: 'domain_failing_no_fallback' }
  | { kind: 'rejected'; reason: 'sender_domain_unavailable' | 'marketing_needs_ses' };

/**
 * Which transport a message leaves by, from the present state of its From domain.
 *
 * A test tenant's message never gets a real provider: whatever the domain says, the answer is a test transport.
 */
export function decideTransport(
  facts: TransportFacts,
  message: { from: Address; kind: OutboundKind; recipients: Address[] },
): TransportDecision {
  const from = facts.addresses.find(({ address }) => address === message.from);
  if (from === undefined) return { kind: 'rejected', reason: 'sender_domain_unavailable' };
  const decision = decideByDomain(facts, from, message.kind);
  if (facts.tenant_mode === 'live' || (decision.kind !== 'send' && decision.kind !== 'fallback')) return decision;
  return { ...decision, provider: testProvider(message.recipients) };
}

/** Simulator when any recipient is its, else loopback; both run under one provider id. */
export function testProvider(recipients: Address[]): 'simulator' | 'loopback' {
  return recipients.some(isSimulatorAddress) ? 'simulator' : 'loopback';
}

function decideByDomain(facts: TransportFacts, from: AddressFacts, kind: OutboundKind): TransportDecision {
  const { state, transport } = from.domain;
  switch (state) {
    case 'pending':
    case 'verifying':
      return { kind: 'wait' };
    case 'removing':
    case 'removed':
      return { kind: 'rejected', reason: 'sender_domain_unavailable' };
    case 'failing':
    case 'suspended':
      return fallback(facts, from, kind);
    case 'healthy':
    case 'degraded':
      if (transport === 'ses' && facts.ses_sending_paused) return fallback(facts, from, kind);
      if (transport === 'cloudflare' && kind === 'marketing')
        return { kind: 'rejected', reason: 'marketing_needs_ses' };
      return { kind: 'send', provider: transport };
  }
}

function fallback(facts: TransportFacts, from: AddressFacts, kind: OutboundKind): TransportDecision {
  const platform = facts.addresses.find(({ domain, status }) => domain.is_platform && status !== 'retired');
  // The platform domain has nothing to fall back to, and marketing must not move to a transactional provider.
  const possible =
    facts.domain_fallback &&
    kind !== 'marketing' &&
    !from.domain.is_platform &&
    platform !== undefined &&
    (platform.domain.state === 'healthy' || platform.domain.state === 'degraded');
  return possible
    ? { kind: 'fallback', provider: 'cloudflare', from: platform }
    : { kind: 'failed', reason: 'domain_failing_no_fallback' };
}

/** The address of this deployment that a recipient means, `+tag` taken off. */
export function localAddress(recipient: Address): Address {
  return withoutDetail(recipient);
}
