import { expect, test } from 'vitest';
import { isFinal, judgeStatus, WEBHOOK_ERRORS } from './outcome.ts';

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
