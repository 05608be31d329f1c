import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { testFiles } from '../../scripts/test-files.ts';
import { trustTestAuthority } from './test/relay/authority.ts';

trustTestAuthority();
const { cloudflareTest, readD1Migrations } = await import('@cloudflare/vitest-plugin');

/** The Worker in its own runtime, with the bindings of wrangler.toml and settings of a test deployment. */

const root = join(import.meta.dirname, '../..');

/** A secret of the form the service wants; what it says does not matter. */
const secret = (fill: number): string => Buffer.alloc(32, fill).toString('base64');

export default defineConfig({
  plugins: [
    cloudflareTest(async () => ({
      wrangler: { configPath: join(root, 'wrangler.toml') },
      miniflare: {
        bindings: {
          PM_ENV: 'local',
          PM_JURISDICTION: 'default',
          PM_LOG_LEVEL: 'error',
          PM_PLATFORM_DOMAIN: 'agents.example',
          PM_API_HOST: 'api.example',
          PM_RELAY_LOOPBACK: 'on',
          PM_MASTER_KEY: secret(1),
          PM_KEY_PEPPER: secret(2),
          PM_HASH_KEY: secret(3),
          TEST_MIGRATIONS: await readD1Migrations(join(root, 'migrations')),
        },
      },
    })),
  ],
  test: {
    name: 'worker',
    ...testFiles('test'),
    setupFiles: ['./test/setup.ts'],
    globalSetup: ['./test/relay/server.ts'],
    // Bundled first: one of its own dependencies requires a module that only bundlers know to leave out.
    deps: { optimizer: { ssr: { enabled: true, include: ['@pmail/mime > sanitize-html'] } } },
  },
});
