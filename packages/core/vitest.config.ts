import { defineConfig } from 'vitest/config';
import { testFiles } from '../../scripts/test-files.ts';

// One process for many files: nothing here keeps state of its own, and starting one for each took most of the time.
export default defineConfig({ test: { name: 'core', ...testFiles('src'), isolate: false } });
