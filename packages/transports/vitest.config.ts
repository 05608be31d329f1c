import { defineConfig } from 'vitest/config';

export default defineConfig({ test: { name: 'transports', include: ['src/**/*.test.ts'] } });
