import { defineConfig } from 'vitest/config';
import { testFiles } from '../../scripts/test-files.ts';

// Some of these tests start the real runtime and wait for what it does by itself.
export default defineConfig({
  test: { name: 'testkit', ...testFiles('src'), testTimeout: 90_000, hookTimeout: 60_000 },
});
