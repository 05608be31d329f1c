import { describe, expect, test } from 'vitest';
import { isSigningPurpose, nextKid, SIGNING_KIDS, VERIFY_MS } from './signing.ts';

describe('the id of the next key', () => {
  test('is the first for the first key', () => {
    expect(nextKid(undefined, new Set())).toBe('0');
  });

  test('is the one after the key in use, and after the last the first', () => {
    expect(nextKid('0', new Set('0'))).toBe('1');
    expect(nextKid('9', new Set('9'))).toBe('a');
    expect(nextKid('z', new Set('z'))).toBe('0');
  });

  test('passes over those that are taken', () => {
    expect(nextKid('y', new Set('yz01'))).toBe('2');
    const allButOne = new Set(SIGNING_KIDS.filter((kid) => kid !== 'k'));
    for (const current of allButOne) expect(nextKid(current, allButOne)).toBe('k');
  });

  test('does not exist when all are taken', () => {
    expect(nextKid('3', new Set(SIGNING_KIDS))).toBeUndefined();
  });

  test('is a character that thread tokens can carry', () => {
    expect(SIGNING_KIDS.join('')).toMatch(/^[0-9a-hjkmnp-tv-z]{32}$/);
    expect(new Set(SIGNING_KIDS).size).toBe(32);
  });
});

test('a key that was replaced verifies for the time of its purpose', () => {
  const day = 86_400_000;
  expect(VERIFY_MS).toEqual({ thread: 90 * day, link: 7 * day, cursor: day });
});

test('purposes are known by name', () => {
  for (const text of ['thread', 'link', 'cursor']) expect(isSigningPurpose(text)).toBe(true);
  for (const text of ['', 'Thread', 'webhook', 'constructor']) expect(isSigningPurpose(text)).toBe(false);
});
