import { describe, expect, it } from 'vitest';
import type { OutboundKind } from '../../message/request.ts';
import { address, runStep } from '../context.fixture.ts';
import type { TransportKind } from '../types.ts';
import { transportUsable } from './15-transport-usable.ts';

function check(
  transport: TransportKind,
  kind: OutboundKind = 'transactional',
  deployment = { ses_configured: true, smtp_enabled: true },
) {
  return runStep(transportUsable, { directory: { deployment } }, { kind, from: address({ domain: { transport } }) })
    .refusal;
}

function unavailable(reason: string) {
  return { ok: false, code: 'transport_unavailable', details: { reason } };
}

describe('step 15: the transport can be used', () => {
  it.each(['cloudflare', 'ses', 'smtp'] as const)('lets a configured transport pass: %s', (transport) => {
    expect(check(transport)).toBeNull();
    expect(check(transport, 'auto_reply')).toBeNull();
  });

  it('refuses SES without its secrets', () => {
    expect(check('ses', 'transactional', { ses_configured: false, smtp_enabled: true })).toEqual(
      unavailable('ses_not_configured'),
    );
  });

  it('refuses a relay where relays are off', () => {
    expect(check('smtp', 'transactional', { ses_configured: true, smtp_enabled: false })).toEqual(
      unavailable('smtp_relay_disabled'),
    );
  });

  it('needs neither of them for Cloudflare', () => {
    expect(check('cloudflare', 'transactional', { ses_configured: false, smtp_enabled: false })).toBeNull();
  });

  it('sends marketing by SES or a relay only', () => {
    expect(check('ses', 'marketing')).toBeNull();
    expect(check('smtp', 'marketing')).toBeNull();
    expect(check('cloudflare', 'marketing')).toEqual(unavailable('marketing_needs_ses'));
  });
});
