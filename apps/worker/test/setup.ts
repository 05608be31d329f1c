import { applyD1Migrations, reset } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { beforeAll, beforeEach } from 'vitest';
import { keepsStorage } from './storage.ts';

async function wipe(): Promise<void> {
  await reset();
  await applyD1Migrations(env.DB, env.TEST_MIGRATIONS);
}

// Storage is kept apart by file only; every test starts with an empty deployment unless its file says otherwise.
beforeAll(async () => {
  if (keepsStorage()) await wipe();
});
beforeEach(async () => {
  if (!keepsStorage()) await wipe();
});
