import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeApiKey } from '@pmail/core/keys/api-key.ts';
import { buildWorker, ensureFolder, workerOptions } from './build.ts';
import { endChild } from './end-child.ts';
import type { HostOptions } from './host.ts';
import { takeState } from './lock.ts';

/** A local service with state on disk, which can be stopped, killed and started again on the same state. */

export interface RuntimeOptions {
  /** Folder of the state; kept between runs. */
  state: string;
  port?: number;
  vars?: Record<string, string>;
  cron_ms?: number;
  /** False: no rate limits. */
  limits?: boolean;
  /** False: sends are accepted and stay queued, for measuring acceptance alone. */
  consume?: boolean;
  /** Whether the Worker is also reachable without the development server in front. */
  direct?: boolean;
  /** Entry of a second Worker to run beside it. */
  bare?: string;
  /** Whether the isolates' heaps can be asked for. */
  inspector?: boolean;
}

/** Made once per state and kept with it. */
export interface Secrets {
  PM_MASTER_KEY: string;
  PM_KEY_PEPPER: string;
  PM_HASH_KEY: string;
  /** The first key of a fresh state. */
  platform_key: string;
}

export class Runtime {
  readonly url: string;
  readonly port: number;
  readonly state: string;
  readonly secrets: Secrets;
  readonly #options: HostOptions;
  #child: ChildProcess | undefined;

  private constructor(options: HostOptions, secrets: Secrets) {
    this.#options = options;
    this.secrets = secrets;
    this.port = options.port;
    this.state = dirname(options.state);
    this.url = `http://127.0.0.1:${options.port}`;
  }

  static async start(options: RuntimeOptions): Promise<Runtime> {
    await ensureFolder(options.state);
    const port = options.port ?? (await freePort());
    const secrets = await readSecrets(join(options.state, 'secrets.json'));
    const { platform_key, ...keys } = secrets;
    const runtime = new Runtime(
      {
        entry: await buildWorker(),
        worker: await workerOptions(),
        state: join(options.state, 'runtime'),
        port,
        platform_key,
        cron_ms: options.cron_ms ?? 60_000,
        limits: options.limits ?? true,
        consume: options.consume ?? true,
        inspector_port: options.inspector === true ? await freePort() : null,
        direct_port: options.direct === true ? await freePort() : null,
        bare:
          options.bare === undefined
            ? null
            : { entry: options.bare, worker: await workerOptions('bench/bare/wrangler.toml'), port: await freePort() },
        vars: {
          PM_ENV: 'local',
          PM_JURISDICTION: 'default',
          PM_PLATFORM_DOMAIN: 'agents.example',
          PM_API_HOST: `127.0.0.1:${port}`,
          PM_LOG_LEVEL: 'warn',
          ...keys,
          ...options.vars,
        },
      },
      secrets,
    );
    await runtime.start();
    return runtime;
  }

  /** The Worker itself, where `direct` was asked for. */
  get direct(): string {
    return `http://127.0.0.1:${this.#options.direct_port ?? this.port}`;
  }

  /** The second Worker, where there is one. */
  get bare(): string {
    return `http://127.0.0.1:${this.#options.bare?.port ?? 0}`;
  }

  /** Port of the inspector. @throws where it was not asked for */
  get inspectorPort(): number {
    const port = this.#options.inspector_port;
    if (port === null) throw new Error('the runtime was started without an inspector');
    return port;
  }

  /** Id of the process, which leads the group of everything it started. @throws when it does not run */
  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error('the runtime does not run');
    return pid;
  }

  /** Starts the process again, on the state that is there. */
  async start(): Promise<void> {
    const lock = takeState(this.state);
    const host = fileURLToPath(new URL('./host.ts', import.meta.url));
    const child = spawn(process.execPath, [host, JSON.stringify(this.#options)], {
      // Its own process group, so that a kill takes workerd along.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    this.#child = child;
    const log = createWriteStream(join(this.state, 'runtime.log'), { flags: 'a' });
    child.stdout?.pipe(log, { end: false });
    child.stderr?.pipe(log, { end: false });
    child.once('exit', () => lock.release());
    await new Promise<void>((resolve, reject) => {
      child.once('message', () => resolve());
      child.once('exit', (code) =>
        reject(new Error(`the runtime ended with ${code}; see ${join(this.state, 'runtime.log')}`)),
      );
      child.once('error', reject);
    });
  }

  /** SIGKILL to the runtime and everything it started. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  async stop(): Promise<void> {
    await this.#end('SIGTERM');
  }

  async #end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child !== undefined) await endChild(child, signal);
  }
}

async function readSecrets(path: string): Promise<Secrets> {
  const known = await readFile(path, 'utf8').catch(() => undefined);
  if (known !== undefined) return JSON.parse(known) as Secrets;
  const secret = (): string => randomBytes(32).toString('base64');
  const { key } = makeApiKey('live', randomBytes(40));
  const secrets = {
    PM_MASTER_KEY: secret(),
    PM_KEY_PEPPER: secret(),
    PM_HASH_KEY: secret(),
    platform_key: key,
  };
  await writeFile(path, JSON.stringify(secrets), { mode: 0o600 });
  return secrets;
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  await new Promise((resolve) => {
    server.close(resolve);
  });
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
