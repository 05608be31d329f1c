import { describe, expect, test } from 'vitest';
import { disables, isFinal, judgeStatus, WEBHOOK_ERRORS } from './outcome.ts';

test.each([
  [200, null],
  [204, null],
  [299, null],
  [101, 'status_5xx'],
  [301, 'redirect'],
  [302, 'redirect'],
  [304, 'redirect'],
  [308, 'redirect'],
  [400, 'status_4xx'],
  [404, 'status_4xx'],
  [410, 'status_410'],
  [429, 'status_4xx'],
  [499, 'status_4xx'],
  [500, 'status_5xx'],
  [503, 'status_5xx'],
  [599, 'status_5xx'],
] as const)('status %i is %s', (status, error) => {
  expect(judgeStatus(status)).toEqual({ http_status: status, error });
});

test('only three errors end a delivery at once', () => {
  expect(WEBHOOK_ERRORS.filter(isFinal)).toEqual(['status_410', 'event_unavailable', 'endpoint_disabled']);
});

describe('an endpoint is disabled', () => {
  const NOW = 1_000_000_000_000;
  const DAY = 86_400_000;

  test('at once when it says that it is gone', () => {
    expect(disables('status_410', { count: 1, first_at: NOW }, NOW)).toBe('gone');
  });

  test.each([
    [100, DAY, 'failing'],
    [5_000, 3 * DAY, 'failing'],
    [99, 30 * DAY, null],
    [100, DAY - 1, null],
    [5_000, 0, null],
  ] as const)('after %i failures over %i ms: %s', (count, age, expected) => {
    expect(disables('status_5xx', { count, first_at: NOW - age }, NOW)).toBe(expected);
  });
});
