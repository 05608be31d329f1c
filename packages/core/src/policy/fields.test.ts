import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DEFAULT_POLICY, effectivePolicy, type PolicyPatch } from './document.ts';
import {
  type FieldAccess,
  fieldAccess,
  POLICY_FIELDS,
  type PolicyField,
  type PolicyWrite,
  type StoredPolicy,
  withoutZone,
  writePolicy,
} from './fields.ts';

const EMPTY: StoredPolicy = { patch: {}, ceilings: {} };

function written(
  change: PolicyPatch,
  writer: 'platform' | 'tenant',
  stored = EMPTY,
  deployment: PolicyPatch = {},
): PolicyWrite {
  const result = writePolicy(deployment, stored, change, writer);
  if (!result.ok) throw new Error(`${result.code} ${JSON.stringify(result.details)}`);
  return result.value;
}

function refusal(
  change: PolicyPatch,
  writer: 'platform' | 'tenant',
  stored = EMPTY,
  deployment: PolicyPatch = {},
): unknown {
  const result = writePolicy(deployment, stored, change, writer);
  return result.ok ? null : { code: result.code, ...result.details };
}

function leaves(tree: object, prefix = ''): string[] {
  return Object.entries(tree).flatMap(([name, value]: [string, unknown]) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? leaves(value, `${prefix}${name}.`)
      : [`${prefix}${name}`],
  );
}

const byClass = (wanted: string): PolicyField[] =>
  (Object.keys(POLICY_FIELDS) as PolicyField[]).filter((field) => POLICY_FIELDS[field] === wanted);

/** A change of one field. */
function one(field: PolicyField, value: unknown): PolicyPatch {
  const [head = '', leaf] = field.split('.');
  return { [head]: leaf === undefined ? value : { [leaf]: value } };
}

function presetOf(field: PolicyField): unknown {
  const [head = '', leaf] = field.split('.');
  const value = (DEFAULT_POLICY as unknown as Record<string, unknown>)[head];
  return leaf === undefined ? value : (value as Record<string, unknown>)[leaf];
}

test('the table has every field of the document, in its order', () => {
  expect(Object.keys(POLICY_FIELDS)).toEqual(leaves(DEFAULT_POLICY));
});

describe('platform keys', () => {
  test.each(Object.keys(POLICY_FIELDS) as PolicyField[])('may set %s', (field) => {
    // Null, the preset of one of them, would not set it.
    const change = one(field, presetOf(field) ?? 30);
    expect(written(change, 'platform').patch).toEqual(change);
  });

  test('go above the deployment, and what they set on a lower field becomes its ceiling', () => {
    const change = { identity_daily_send_cap: 9_000, auto_reply: { allowed: false }, webhook_text_bytes: 1 };
    expect(written(change, 'platform')).toEqual({
      patch: change,
      ceilings: { identity_daily_send_cap: 9_000, 'auto_reply.allowed': false },
      fields: ['identity_daily_send_cap', 'auto_reply.allowed', 'webhook_text_bytes'],
    });
  });

  test('lift their ceiling with null', () => {
    const stored = written({ max_recipients: 3, abuse: { bounce_rate_pause: 0.01 } }, 'platform');
    expect(written({ max_recipients: null, abuse: null }, 'platform', stored)).toEqual({
      patch: {},
      ceilings: {},
      fields: ['max_recipients', 'abuse.bounce_rate_pause'],
    });
  });

  test('see no ceilings', () => {
    for (const access of fieldAccess({}, { max_recipients: 3 }, 'platform')) {
      expect(access).toMatchObject({ writable: true, ceiling: null, ceiling_source: null });
    }
  });
});

describe('tenant keys', () => {
  test.each(byClass('free'))('may set %s', (field) => {
    expect(refusal(one(field, presetOf(field)), 'tenant')).toBeNull();
  });

  test.each(byClass('platform'))('may not set %s, not even to null', (field) => {
    const answer = { code: 'scope_denied', field, reason: 'not_writable' };
    expect(refusal(one(field, presetOf(field)), 'tenant')).toEqual(answer);
    expect(refusal(one(field, null), 'tenant')).toEqual(answer);
  });

  test.each(byClass('lower'))('may set %s up to the deployment, not above', (field) => {
    const preset = presetOf(field) as number | boolean;
    const [low, high] = typeof preset === 'boolean' ? [false, true] : [0, preset * 2];
    const deployment = typeof preset === 'boolean' ? one(field, false) : {};
    expect(refusal(one(field, low), 'tenant', EMPTY, deployment)).toBeNull();
    expect(refusal(one(field, high), 'tenant', EMPTY, deployment)).toEqual({
      code: 'scope_denied',
      field,
      reason: 'above_ceiling',
      ceiling: typeof preset === 'boolean' ? false : preset,
      ceiling_source: 'deployment',
    });
  });

  test('stand under what a platform key last set, where that is lower', () => {
    const stored = written({ max_recipients: 3 }, 'platform');
    expect(refusal({ max_recipients: 4 }, 'tenant', stored)).toEqual({
      code: 'scope_denied',
      field: 'max_recipients',
      reason: 'above_ceiling',
      ceiling: 3,
      ceiling_source: 'platform',
    });
    const lowered = written({ max_recipients: 2 }, 'tenant', stored);
    expect(lowered.ceilings).toEqual({ max_recipients: 3 });
    expect(written({ max_recipients: 3 }, 'tenant', lowered).patch).toEqual({ max_recipients: 3 });
  });

  test('gain nothing from a platform value above the deployment', () => {
    const stored = written({ max_recipients: 40 }, 'platform');
    expect(refusal({ max_recipients: 11 }, 'tenant', stored)).toMatchObject({
      ceiling: 10,
      ceiling_source: 'deployment',
    });
  });

  test('cannot get above a ceiling by going back to the deployment', () => {
    const stored = written({ max_recipients: 3 }, 'platform');
    expect(refusal({ max_recipients: null }, 'tenant', stored)).toMatchObject({ reason: 'above_ceiling', ceiling: 3 });
  });

  test('go back to the deployment with null, for a field or a group', () => {
    const stored = written({ max_recipients: 2, quarantine: { spam_threshold: 0.1, on_auth_fail: false } }, 'tenant');
    const back = written({ max_recipients: null, quarantine: null }, 'tenant', stored);
    expect(back).toEqual({
      patch: {},
      ceilings: {},
      fields: ['max_recipients', 'quarantine.on_auth_fail', 'quarantine.spam_threshold'],
    });
  });

  test('set nothing at all when one field is refused', () => {
    expect(refusal({ domain_fallback: false, domains: { allow_create_zone: true } }, 'tenant')).toMatchObject({
      field: 'domains.allow_create_zone',
    });
  });

  test('see what they may do', () => {
    const rows = fieldAccess({ max_recipients: 8 }, { max_recipients: 3, tenant_daily_send_cap: 9_999 }, 'tenant');
    const row = (field: PolicyField): FieldAccess | undefined => rows.find((entry) => entry.field === field);
    expect(row('max_recipients')).toMatchObject({ writable: true, ceiling: 3, ceiling_source: 'platform' });
    expect(row('tenant_daily_send_cap')).toMatchObject({ ceiling: 5_000, ceiling_source: 'deployment' });
    expect(row('auto_reply.allowed')).toMatchObject({ ceiling: true, ceiling_source: 'deployment' });
    expect(row('domains.cloudflare_zones')).toMatchObject({ class: 'platform', writable: false, ceiling: null });
    expect(row('ai_disclosure.text')).toMatchObject({ class: 'free', writable: true, ceiling: null });
  });
});

describe('the stored document', () => {
  test('groups merge, lists replace', () => {
    const stored = written(
      { ai_disclosure: { mode: 'footer' }, domains: { cloudflare_zones: ['a.example'] } },
      'platform',
    );
    const next = written(
      { ai_disclosure: { text: 'By a machine.' }, domains: { cloudflare_zones: ['b.example'] } },
      'platform',
      stored,
    );
    expect(next.patch).toEqual({
      ai_disclosure: { mode: 'footer', text: 'By a machine.' },
      domains: { cloudflare_zones: ['b.example'] },
    });
  });

  test('a write of what stands there changes nothing', () => {
    const stored = written({ max_recipients: 3, domains: { cloudflare_zones: ['a.example'] } }, 'platform');
    expect(
      written({ max_recipients: 3, domains: { cloudflare_zones: ['A.example'] } }, 'platform', stored).fields,
    ).toEqual([]);
    expect(written({ link_ttl_hours: null }, 'tenant').fields).toEqual([]);
  });

  test('nulls that were stored count as nothing', () => {
    const stored: StoredPolicy = { patch: { retention: { raw_days: null }, domains: null }, ceilings: {} };
    expect(written({ link_ttl_hours: 1 }, 'tenant', stored).patch).toEqual({ link_ttl_hours: 1 });
  });

  test('zones are DNS names, each once, in lower case', () => {
    const zones = ['Example.COM', 'example.com', 'b\u00fccher.example'];
    expect(written({ domains: { cloudflare_zones: zones } }, 'platform').patch.domains).toEqual({
      cloudflare_zones: ['example.com', 'xn--bcher-kva.example'],
    });
    expect(refusal({ domains: { cloudflare_zones: ['a.example', 'nope', 'x y.example'] } }, 'platform')).toEqual({
      code: 'invalid_request',
      errors: [1, 2].map((index) => ({
        path: `policy.domains.cloudflare_zones[${index}]`,
        message: expect.any(String) as string,
      })),
    });
  });

  test('no row of writes by a tenant gets a lower field above its ceiling', () => {
    const value = fc.option(fc.integer({ min: 0, max: 60 }), { nil: null });
    const write = fc.record({ writer: fc.constantFrom('platform', 'tenant'), value }) as fc.Arbitrary<{
      writer: 'platform' | 'tenant';
      value: number | null;
    }>;
    fc.assert(
      fc.property(fc.array(write, { maxLength: 12 }), fc.integer({ min: 1, max: 49 }), (writes, preset) => {
        const deployment = { max_recipients: preset };
        let stored = EMPTY;
        for (const { writer, value: wanted } of writes) {
          const result = writePolicy(deployment, stored, { max_recipients: wanted }, writer);
          if (!result.ok) continue;
          stored = result.value;
          const { max_recipients: now } = effectivePolicy(deployment, stored.patch);
          if (writer === 'tenant') {
            expect(now).toBeLessThanOrEqual(Math.min(preset, Number(stored.ceilings.max_recipients ?? preset)));
          } else expect(now).toBe(wanted ?? preset);
        }
      }),
    );
  });
});

test('a domain loses its zone unless another zone that stays holds it too', () => {
  const domains = ['acme.example', 'mail.acme.example', 'x.mail.acme.example', 'notacme.example', 'other.example'].map(
    (name) => ({ name }),
  );
  const lost = withoutZone(domains, ['acme.example', 'other.example'], ['mail.acme.example', 'other.example']);
  expect(lost).toEqual([{ name: 'acme.example' }]);
  expect(withoutZone(domains, ['acme.example'], ['acme.example'])).toEqual([]);
});
