import { defineConfig } from 'vitest/config';
import { testFiles } from './test-files.ts';

export default defineConfig({ test: { name: 'house', ...testFiles('.') } });
