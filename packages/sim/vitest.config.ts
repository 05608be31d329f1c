import { defineConfig } from 'vitest/config';
import { testFiles } from '../../scripts/test-files.ts';

export default defineConfig({ test: { name: 'sim', ...testFiles('src'), testTimeout: 30_000 } });
