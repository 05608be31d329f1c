import { expect, test } from 'vitest';
import { canHold, grants, PERMISSION_NAMES, PERMISSIONS } from './permissions.ts';

test('what each level may hold', () => {
  const of = (level: 'platform' | 'tenant' | 'identity') => PERMISSION_NAMES.filter((name) => canHold(level, name));
  expect(of('platform')).toEqual(PERMISSION_NAMES);
  expect(PERMISSION_NAMES.filter((name) => !canHold('tenant', name))).toEqual(['platform:ops', 'tenants:manage']);
  expect(of('identity')).toEqual([
    'identities:read',
    'identities:write',
    'domains:read',
    'domains:write',
    'messages:read',
    'messages:send',
    'messages:write',
    'attachments:read',
    'quarantine:review',
    'webhooks:read',
    'webhooks:manage',
    'keys:manage',
    'erasure:manage',
  ]);
});

test('only webhooks:manage brings another permission with it', () => {
  for (const held of PERMISSION_NAMES) {
    for (const wanted of PERMISSION_NAMES) {
      const expected = held === wanted || (held === 'webhooks:manage' && wanted === 'webhooks:read');
      expect(grants([held], wanted), `${held} for ${wanted}`).toBe(expected);
    }
  }
  expect(grants([], 'messages:read')).toBe(false);
});

test('every permission says what it allows', () => {
  for (const { allows } of Object.values(PERMISSIONS)) expect(allows).not.toBe('');
});
