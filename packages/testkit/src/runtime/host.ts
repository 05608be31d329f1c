import { createHmac } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PERMISSION_NAMES } from '@pmail/contracts/permissions.ts';
import { createIdFactory } from '@pmail/core/ids.ts';
import { parseApiKey } from '@pmail/core/keys/api-key.ts';
import { bootstrapIds, bootstrapStatements } from '@pmail/engine/directory/bootstrap.ts';
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare } from 'miniflare';
import { ROOT } from './build.ts';

/**
 * The process that holds the local runtime: workerd with the built Worker and its state on disk. It is a process of its
 * own so that it can be killed without warning, as a machine can be.
 */

export interface HostOptions {
  entry: string;
  /** Bindings and settings of wrangler.toml, as `workerOptions` reads them. */
  worker: Record<string, unknown>;
  state: string;
  port: number;
  vars: Record<string, string>;
  /** Platform key of a fresh state, as it is shown to whoever runs this. */
  platform_key: string;
  /** How often each cron fires, in ms; local crons never fire by themselves. */
  cron_ms: number;
  /** Whether queue messages are consumed; without it sends are accepted and stay queued. */
  consume: boolean;
  /** Port of the Worker itself, without the development server in front, or null. */
  direct_port: number | null;
  /** A second Worker beside it, for comparison, and its port. */
  bare: { entry: string; worker: Record<string, unknown>; port: number } | null;
  /** False: no rate limits, for loads that are not their subject. The local limiter also writes to disk for each call. */
  limits: boolean;
  /** Port at which the isolates' heaps can be asked for, or null: nobody listens. */
  inspector_port: number | null;
}

async function main(): Promise<void> {
  const options = JSON.parse(process.argv[2] ?? '{}') as HostOptions;
  const { worker } = options;
  if (!options.limits) {
    const names = Object.keys(worker['ratelimits'] as object);
    const open = Object.fromEntries(names.map((name) => [name, { name: 'limiter', entrypoint: 'OpenLimiter' }]));
    worker['serviceBindings'] = { ...(worker['serviceBindings'] as object | undefined), ...open };
    worker['ratelimits'] = {};
  }
  if (!options.consume) worker['queueConsumers'] = {};
  const bindings = { ...(worker['bindings'] as Record<string, unknown>), ...options.vars };
  const mf = new Miniflare(
    convertV4MiniflareOptions({
      resourcePersistencePath: options.state,
      host: '127.0.0.1',
      port: options.port,
      cf: false,
      ...(options.inspector_port === null ? {} : { inspectorHost: '127.0.0.1', inspectorPort: options.inspector_port }),
      log: new Log(LogLevel.ERROR),
      handleRuntimeStdio: (stdout: NodeJS.ReadableStream, stderr: NodeJS.ReadableStream) => {
        stdout.pipe(process.stdout);
        stderr.pipe(process.stderr);
      },
      workers: [
        {
          ...worker,
          bindings,
          name: 'pylota-mail',
          modules: true,
          scriptPath: options.entry,
          ...direct(options.direct_port),
        },
        ...(options.bare === null ? [] : [bareWorker(options.bare)]),
        ...(options.limits ? [] : [OPEN_LIMITER]),
      ],
    } as never),
  );
  await mf.ready;
  await migrate(mf);
  await seed(mf, options);
  const fire = async (cron: string): Promise<void> => {
    const target = (await mf.getWorker()) as unknown as { scheduled: (options: { cron: string }) => Promise<unknown> };
    await target.scheduled({ cron });
  };
  for (const cron of ['* * * * *', '*/15 * * * *']) {
    setInterval(() => {
      fire(cron).catch((error: unknown) => console.error(`cron ${cron} failed`, error));
    }, options.cron_ms).unref();
  }
  process.send?.({ ready: true });
  process.on('SIGTERM', () => {
    mf.dispose().then(
      () => process.exit(0),
      () => process.exit(1),
    );
  });
  // The parent gone means that nobody is left to stop this.
  process.on('disconnect', () => process.exit(0));
}

/** A limiter that lets everything through. */
const OPEN_LIMITER = {
  name: 'limiter',
  compatibilityDate: '2026-11-01',
  modules: [
    {
      type: 'ESModule',
      path: 'limiter.js',
      contents: `import { WorkerEntrypoint } from 'cloudflare:workers';
        export class OpenLimiter extends WorkerEntrypoint { limit() { return { success: true }; } }
        export default { fetch: () => new Response(null, { status: 404 }) };`,
    },
  ],
};

function direct(port: number | null): object {
  return port === null ? {} : { unsafeDirectSockets: [{ host: '127.0.0.1', port }] };
}

function bareWorker({ entry, worker, port }: NonNullable<HostOptions['bare']>): object {
  return { ...worker, name: 'bare', modules: true, scriptPath: entry, ...direct(port) };
}

/** Applies what is missing of the directory's migrations, remembered in the same table that wrangler uses. */
async function migrate(mf: Miniflare): Promise<void> {
  const db = await mf.getD1Database('DB');
  await db
    .prepare(
      'CREATE TABLE IF NOT EXISTS d1_migrations (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL)',
    )
    .run();
  const applied = new Set(
    (await db.prepare('SELECT name FROM d1_migrations').all<{ name: string }>()).results.map(({ name }) => name),
  );
  const folder = join(ROOT, 'migrations');
  for (const name of (await readdir(folder)).sort()) {
    if (!name.endsWith('.sql') || applied.has(name)) continue;
    // A second of loading, which a restart on the same state need not wait for.
    const { unstable_splitSqlQuery } = await import('wrangler');
    const statements = unstable_splitSqlQuery(await readFile(join(folder, name), 'utf8'));
    await db.batch([
      ...statements.map((text) => db.prepare(text)),
      db.prepare('INSERT INTO d1_migrations (name) VALUES (?)').bind(name),
    ]);
  }
}

/** The first rows of a fresh state; nothing when it has been used before. */
async function seed(mf: Miniflare, { platform_key: key, vars }: HostOptions): Promise<void> {
  const db = await mf.getD1Database('DB');
  const [used] = (await db.prepare('SELECT 1 AS one FROM api_keys LIMIT 1').all()).results;
  const parsed = parseApiKey(key);
  if (used !== undefined || parsed === undefined) return;
  const now = Date.now();
  const pepper = Buffer.from(vars['PM_KEY_PEPPER'] ?? '', 'base64');
  const statements = bootstrapStatements({
    ids: bootstrapIds(createIdFactory(Math.random), now),
    platform_domain: vars['PM_PLATFORM_DOMAIN'] ?? '',
    system: { name: 'Pylota Mail', local_part: 'no-reply', owner_email: `postmaster@${vars['PM_PLATFORM_DOMAIN']}` },
    domain_state: 'healthy',
    key: {
      lookup: parsed.lookup,
      hash: createHmac('sha256', pepper).update(key).digest('hex'),
      permissions: PERMISSION_NAMES,
      expires_at: null,
    },
    now,
  });
  await db.batch(statements.map(({ sql, bindings }) => db.prepare(sql).bind(...bindings)));
}

await main();
