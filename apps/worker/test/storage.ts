import { vi } from 'vitest';

let kept = false;

/**
 * For a file whose tests share one deployment: storage is wiped before the first of them and not between them. Such
 * tests wait for real queues and alarms, so they get the time for it.
 */
export function keepStorage(): void {
  kept = true;
  vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });
}

export function keepsStorage(): boolean {
  return kept;
}
