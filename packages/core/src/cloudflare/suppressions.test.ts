import { describe, expect, test } from 'vitest';
import { suppressionIn, suppressionsPath } from './suppressions.ts';

const JO = 'jo@example.net';
const SENDER = 'desk@acme.example.com';

const entry = (changes: object = {}): object => ({
  id: '182bd5e5-6e1a-4fe4-a799-aa6d9a6ab26e',
  email: JO,
  reason: 'hard_bounce',
  created_at: '2026-11-29T08:00:00Z',
  expires_at: '2026-12-06T08:00:00Z',
  read_only: false,
  scope: { type: 'account' },
  ...changes,
});
const found = (...result: object[]) => suppressionIn({ success: true, errors: [], result }, JO, SENDER);

test('the question is about one address, whatever is in it', () => {
  expect(suppressionsPath({ id: 'a/b', token: 't' }, 'jo+x&y=z@example.net')).toBe(
    '/client/v4/accounts/a%2Fb/email/sending/suppressions?email=jo%2Bx%26y%3Dz%40example.net',
  );
});

describe('an entry', () => {
  test('says why and for how long', () => {
    expect(found(entry())).toEqual({ address: JO, reason: 'hard_bounce', expires_at: Date.UTC(2026, 11, 6, 8) });
  });

  test.each([
    ['for ever', { expires_at: null }],
    ['of an API that knew no scopes', { scope: undefined, expires_at: null }],
    ['of the sending domain', { scope: { type: 'sending_domain', value: 'acme.example.com' }, expires_at: null }],
    ['in other letters', { email: 'JO@Example.net', expires_at: null }],
    ['with a time that is none', { expires_at: 'soon' }],
  ])('%s counts', (_what, changes) => {
    expect(found(entry(changes))).toMatchObject({ address: JO, expires_at: null });
  });

  test.each([
    ['of another address', { email: 'kim@example.net' }],
    ['of another sending domain', { scope: { type: 'sending_domain', value: 'other.example.com' } }],
    ['of a domain above', { scope: { type: 'sending_domain', value: 'example.com' } }],
    ['of a scope that nobody knows', { scope: { type: 'moon' } }],
    ['without an address', { email: null }],
  ])('%s does not', (_what, changes) => {
    expect(found(entry(changes))).toBeNull();
  });

  test('without a reason is of an unknown one', () => {
    expect(found(entry({ reason: '' }))).toMatchObject({ reason: 'unknown' });
  });

  test('of several the one that lasts longest counts', () => {
    const soon = entry({ reason: 'soft_bounce', expires_at: '2026-12-01T08:00:00Z' });
    const ever = entry({ reason: 'complaint', expires_at: null });
    expect(found(soon, entry())).toMatchObject({ reason: 'hard_bounce' });
    expect(found(soon, ever, entry())).toMatchObject({ reason: 'complaint' });
  });
});

test.each([
  [null],
  ['text'],
  [{}],
  [{ success: true }],
  [{ success: false, result: [entry()] }],
  [{ success: true, result: [null, 7, []] }],
])('an answer like %j tells nothing', (body) => {
  expect(suppressionIn(body, JO, SENDER)).toBeNull();
});
