import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
/** What a bundle is made of; when none of it changed, the last bundle is taken. */
const INPUTS = ['apps/worker/src', 'packages', 'bench/bare', 'wrangler.toml', 'pnpm-lock.yaml'];

/** Bundles a Worker exactly as a deployment does. Returns the path of its entry module. */
export async function buildWorker(config = 'wrangler.toml'): Promise<string> {
  const out = join(ROOT, '.state', 'build', config.replace(/\W+/g, '-'));
  const main = /^main = "(.+)"/m.exec(await readFile(join(ROOT, config), 'utf8'))?.[1] ?? 'index.ts';
  const entry = join(out, basename(main).replace(/\.ts$/, '.js'));
  const key = await inputKey();
  const stored = await readFile(join(out, 'key'), 'utf8').catch(() => '');
  if (stored === key) return entry;
  const fresh = `${out}-${process.pid}`;
  await promisify(execFile)(
    process.execPath,
    [join(ROOT, 'node_modules/wrangler/bin/wrangler.js'), 'deploy', '--config', config, '--dry-run', '--outdir', fresh],
    { cwd: ROOT, env: { ...process.env, WRANGLER_SEND_METRICS: 'false', WRANGLER_HIDE_BANNER: 'true', CI: 'true' } },
  );
  await writeFile(join(fresh, 'key'), key);
  await rm(out, { recursive: true, force: true });
  await rename(fresh, out);
  return entry;
}

/** What a configuration file binds a Worker to, in the form that the local runtime takes; plain data. */
export async function workerOptions(config = 'wrangler.toml'): Promise<Record<string, unknown>> {
  const { unstable_getMiniflareWorkerOptions } = await import('wrangler');
  const { workerOptions: options } = unstable_getMiniflareWorkerOptions(join(ROOT, config));
  const { modulesRules: _rules, rootPath: _root, ...worker } = options as Record<string, unknown>;
  return worker;
}

async function inputKey(): Promise<string> {
  const hash = createHash('sha256');
  for (const input of INPUTS) {
    for (const file of await filesOf(join(ROOT, input))) {
      if (!file.endsWith('.ts') && !file.endsWith('.toml') && !file.endsWith('.yaml')) continue;
      if (file.endsWith('.test.ts') || file.includes('node_modules')) continue;
      hash.update(file.slice(ROOT.length)).update(await readFile(file));
    }
  }
  return hash.digest('hex');
}

async function filesOf(path: string): Promise<string[]> {
  if (!(await stat(path)).isDirectory()) return [path];
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

export async function ensureFolder(path: string): Promise<string> {
  await mkdir(path, { recursive: true });
  return path;
}
