import { reset } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { beforeAll, beforeEach } from 'vitest';
import { keepsStorage } from './storage.ts';

/** All migrations in one batch: one by one they took three times as long, before each of fifteen hundred tests. */
async function wipe(): Promise<void> {
  await reset();
  await env.DB.batch(env.TEST_MIGRATIONS.flatMap(({ queries }) => queries).map((query) => env.DB.prepare(query)));
}

// Storage is kept apart by file only; every test starts with an empty deployment unless its file says otherwise.
beforeAll(async () => {
  if (keepsStorage()) await wipe();
});
beforeEach(async () => {
  if (!keepsStorage()) await wipe();
});
