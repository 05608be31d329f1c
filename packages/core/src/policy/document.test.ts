import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DEFAULT_POLICY, effectivePolicy, type PolicyPatch } from './document.ts';

describe('the defaults', () => {
  it('are those of the design', () => {
    expect(DEFAULT_POLICY).toEqual({
      identity_daily_send_cap: 500,
      tenant_daily_send_cap: 5_000,
      max_recipients: 10,
      send_allowlist_only: false,
      large_attachments: 'refuse',
      link_ttl_hours: 72,
      ai_disclosure: { mode: 'none', text: 'Written with help from an AI assistant.' },
      auto_reply: { allowed: true, max_automatic_exchanges: 2 },
      abuse: { complaint_rate_pause: 0.003, bounce_rate_pause: 0.05 },
      domain_fallback: true,
      domains: { allow_create_zone: false, cloudflare_zones: [] },
      webhook_text_bytes: 16_384,
      retention: { raw_days: 90, message_days: null, events_days: 30 },
      quarantine: { on_auth_fail: true, spam_threshold: 0.8 },
      inbound: { per_sender_per_hour: 60, ses_bounce_retired: true },
    });
  });

  it('stand alone when nothing is set', () => {
    expect(effectivePolicy({}, {})).toEqual(DEFAULT_POLICY);
  });
});

describe('layers', () => {
  it('the tenant wins over the deployment, the deployment over the defaults', () => {
    const policy = effectivePolicy(
      { max_recipients: 20, link_ttl_hours: 24, auto_reply: { allowed: false } },
      { max_recipients: 5, auto_reply: { max_automatic_exchanges: 1 } },
    );
    expect(policy).toEqual({
      ...DEFAULT_POLICY,
      max_recipients: 5,
      link_ttl_hours: 24,
      auto_reply: { allowed: false, max_automatic_exchanges: 1 },
    });
  });

  it('a value of false, 0 or an empty text counts', () => {
    const policy = effectivePolicy(
      {},
      { domain_fallback: false, identity_daily_send_cap: 0, ai_disclosure: { text: '' } },
    );
    expect(policy.domain_fallback).toBe(false);
    expect(policy.identity_daily_send_cap).toBe(0);
    expect(policy.ai_disclosure).toEqual({ mode: 'none', text: '' });
  });

  it('arrays replace, they do not add up', () => {
    const policy = effectivePolicy(
      { domains: { cloudflare_zones: ['a.example', 'b.example'] } },
      { domains: { cloudflare_zones: ['c.example'] } },
    );
    expect(policy.domains).toEqual({ allow_create_zone: false, cloudflare_zones: ['c.example'] });
    expect(
      effectivePolicy({ domains: { cloudflare_zones: ['a.example'] } }, { domains: { cloudflare_zones: [] } }).domains
        .cloudflare_zones,
    ).toEqual([]);
  });
});

describe('null', () => {
  it('of the tenant resets a field to what the deployment says', () => {
    const deployment: PolicyPatch = { max_recipients: 20, retention: { raw_days: 7 } };
    expect(effectivePolicy(deployment, { max_recipients: null }).max_recipients).toBe(20);
    expect(effectivePolicy(deployment, { retention: { raw_days: null } }).retention.raw_days).toBe(7);
  });

  it('of the deployment resets a field to the default', () => {
    expect(effectivePolicy({ max_recipients: null }, {}).max_recipients).toBe(10);
  });

  it('resets a whole group', () => {
    expect(effectivePolicy({}, { ai_disclosure: null })).toEqual(DEFAULT_POLICY);
    const deployment: PolicyPatch = { ai_disclosure: { mode: 'header' } };
    expect(effectivePolicy(deployment, { ai_disclosure: null }).ai_disclosure.mode).toBe('header');
  });
});

describe('what does not belong', () => {
  it('names the policy does not know are dropped, at every level', () => {
    const patch = JSON.parse('{"unknown":1,"__proto__":{"x":1},"retention":{"raw_days":5,"years":3}}') as PolicyPatch;
    const policy = effectivePolicy(patch, patch);
    expect(policy).toEqual({ ...DEFAULT_POLICY, retention: { ...DEFAULT_POLICY.retention, raw_days: 5 } });
    expect(Object.keys(policy)).toEqual(Object.keys(DEFAULT_POLICY));
    expect('x' in policy).toBe(false);
  });

  it('a bare value for a group changes nothing', () => {
    for (const value of [true, 1, 'x', []]) expect(effectivePolicy({}, { retention: value })).toEqual(DEFAULT_POLICY);
  });

  it('merging never changes the defaults or the patches', () => {
    const before = JSON.stringify(DEFAULT_POLICY);
    const deployment: PolicyPatch = { retention: { raw_days: 1 }, domains: { cloudflare_zones: ['a.example'] } };
    const tenant: PolicyPatch = { retention: { raw_days: 2 }, domains: { cloudflare_zones: ['b.example'] } };
    const patches = JSON.stringify([deployment, tenant]);
    effectivePolicy(deployment, tenant);
    expect(JSON.stringify(DEFAULT_POLICY)).toBe(before);
    expect(JSON.stringify([deployment, tenant])).toBe(patches);
  });

  it('every result has the fields of the policy, whatever the patches hold', () => {
    const patch = fc.dictionary(
      fc.oneof(fc.constantFrom(...Object.keys(DEFAULT_POLICY)), fc.string()),
      fc.jsonValue() as fc.Arbitrary<unknown>,
    );
    fc.assert(
      fc.property(patch, patch, (deployment, tenant) => {
        expect(Object.keys(effectivePolicy(deployment, tenant))).toEqual(Object.keys(DEFAULT_POLICY));
      }),
    );
  });
});
