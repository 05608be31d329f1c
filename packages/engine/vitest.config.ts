import { defineConfig } from 'vitest/config';
import { testFiles } from '../../scripts/test-files.ts';

export default defineConfig({ test: { name: 'engine', ...testFiles('src') } });
