import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const OUT = join(ROOT, '.state', 'build');

/** What the bundle is made of; when none of it changed, the last bundle is taken. */
const INPUTS = [
  'apps/worker/src',
  'packages/core/src',
  'packages/engine/src',
  'packages/contracts/src',
  'packages/mime/src',
  'packages/transports/src',
  'wrangler.toml',
  'pnpm-lock.yaml',
];

/** Bundles the Worker exactly as a deployment does. Returns the path of its entry module. */
export async function buildWorker(): Promise<string> {
  const entry = join(OUT, 'index.js');
  const key = await inputKey();
  const stored = await readFile(join(OUT, 'key'), 'utf8').catch(() => '');
  if (stored === key) return entry;
  const fresh = `${OUT}-${process.pid}`;
  await promisify(execFile)(
    process.execPath,
    [join(ROOT, 'node_modules/wrangler/bin/wrangler.js'), 'deploy', '--dry-run', '--outdir', fresh],
    { cwd: ROOT, env: { ...process.env, WRANGLER_SEND_METRICS: 'false', WRANGLER_HIDE_BANNER: 'true', CI: 'true' } },
  );
  await writeFile(join(fresh, 'key'), key);
  await rm(OUT, { recursive: true, force: true });
  await rename(fresh, OUT);
  return entry;
}

async function inputKey(): Promise<string> {
  const hash = createHash('sha256');
  for (const input of INPUTS) {
    for (const file of await filesOf(join(ROOT, input))) {
      if (file.endsWith('.test.ts')) continue;
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
