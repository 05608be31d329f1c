/// <reference types="@cloudflare/vitest-plugin/types" />
import type { D1Migration } from 'cloudflare:test';
import type { Env as WorkerEnv } from '../src/env.ts';

declare global {
  interface ImportMeta {
    /** Files as the bundler finds them. */
    glob: (pattern: string, options: { query: '?raw'; import: 'default'; eager: true }) => Record<string, string>;
  }

  /** What `cloudflare:workers` gives a test: the bindings of the Worker and the schema of the directory. */
  namespace Cloudflare {
    interface Env extends WorkerEnv {
      TEST_MIGRATIONS: D1Migration[];
    }
  }
}
