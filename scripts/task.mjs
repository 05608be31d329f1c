// Runs the project's commands on a machine that has only node 20 and npm: installs what the lockfile says when that has
// not been done, puts the project's own node first on the PATH, and hands over. Plain JavaScript that node 20 can read.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const bin = join(root, 'node_modules', '.bin');
const stamp = join(root, 'node_modules', '.installed');

const PNPM = 'pnpm@12.21.0';

function fail(message) {
  console.error(message);
  process.exit(1);
}

/** Environment for everything that is started: our node first, and nobody asks questions or phones home. */
const env = {
  ...process.env,
  PATH: `${bin}:${process.env.PATH}`,
  WRANGLER_SEND_METRICS: 'false',
  WRANGLER_SEND_ERROR_REPORTS: 'false',
  WRANGLER_HIDE_BANNER: 'true',
  CLOUDFLARE_CF_FETCH_ENABLED: 'false',
};

function run(command, args) {
  const { status, error } = spawnSync(command, args, { cwd: root, env, stdio: 'inherit' });
  if (error) fail(`${command}: ${error.message}`);
  return status ?? 1;
}

function install() {
  const key = createHash('sha256')
    .update(readFileSync(join(root, 'pnpm-lock.yaml')))
    .digest('hex');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === key) return;
  console.log('installing ...');
  const status = run('npx', [
    '--yes',
    PNPM,
    'install',
    '--frozen-lockfile',
    '--reporter=append-only',
    '--loglevel=warn',
  ]);
  if (status !== 0) fail('the install failed');
  if (!existsSync(join(bin, 'node'))) {
    fail(
      'no node 24 for this platform came with the install; put node 24 or newer on the PATH and link it as node_modules/.bin/node',
    );
  }
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, key);
}

/** Each command as the steps it runs, one after the other; the first that fails ends it. */
const COMMANDS = {
  setup: () => [],
  demo: (args) => [['node', ['scripts/demo/main.ts', ...args]]],
  start: (args) => [['node', ['scripts/start.ts', ...args]]],
  test: (args) => [['vitest', ['run', ...args]]],
  'test:real': (args) => [['node', ['scripts/test-real.ts', ...args]]],
  check: () => [
    ['biome', ['check', '.']],
    ['oxlint', ['--type-aware', 'packages', 'apps', 'scripts', 'bench']],
    ['node', ['scripts/types.ts']],
    ['node', ['packages/contracts/scripts/generate.ts', '--check']],
    ['node', ['scripts/faults/main.ts', '--check']],
    // The rules of the house alone; what tests its tools is part of `npm test`.
    ['vitest', ['run', '--project', 'house', 'house-rules', 'schema-history', 'test-tables', 'mutants/patch']],
  ],
  fix: () => [['biome', ['check', '--write', '.']]],
  generate: () => [
    ['node', ['packages/contracts/scripts/generate.ts']],
    ['node', ['scripts/faults/main.ts']],
  ],
  sim: (args) => [['node', ['packages/sim/src/cli.ts', ...args]]],
  fuzz: (args) => [['node', ['scripts/fuzz/main.ts', ...args]]],
  kill: (args) => [['node', ['scripts/kill/main.ts', ...args]]],
  mutants: (args) => [['node', ['scripts/mutants/main.ts', ...args]]],
  soak: (args) => [['node', ['scripts/soak/main.ts', ...args]]],
  bench: (args) => [['node', ['bench/main.ts', ...args]]],
  bootstrap: (args) => [['node', ['scripts/bootstrap/main.ts', ...args]]],
};

const [name, ...args] = process.argv.slice(2);
if (name === 'reset') {
  rmSync(join(root, '.state'), { recursive: true, force: true });
  console.log('local state removed');
  process.exit(0);
}
const command = COMMANDS[name];
if (!command) fail(`no such command: ${name}`);
install();
for (const [program, programArgs] of command(args)) {
  const status = run(join(bin, program), programArgs);
  if (status !== 0) process.exit(status);
}
