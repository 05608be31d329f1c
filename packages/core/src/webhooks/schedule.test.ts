import { expect, test } from 'vitest';
import { WEBHOOK_ATTEMPTS_MAX, webhookWaitMs } from './schedule.ts';

test('thirteen attempts, with the waits of the design between them', () => {
  const waits = Array.from({ length: WEBHOOK_ATTEMPTS_MAX }, (_, index) => webhookWaitMs(index + 1, 0.5));
  const minutes = waits.map((wait) => (wait === null ? null : wait / 60_000));
  expect(minutes).toEqual([0.5, 2, 10, 30, 60, 120, 240, 480, 720, 720, 720, 1_140, null]);
});

test('a wait is spread by a tenth', () => {
  expect(webhookWaitMs(1, 0)).toBe(27_000);
  expect(webhookWaitMs(1, 1)).toBe(33_000);
  expect(webhookWaitMs(12, 0.25)).toBe(19 * 3_600_000 * 0.95);
});
