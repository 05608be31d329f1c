import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/**
 * `npm run test:real`: the tests against programs that other people wrote and a user would meet. What is missing is
 * installed from Debian's packages where that is possible, else named.
 */

const root = fileURLToPath(new URL('..', import.meta.url));

interface Tool {
  /** A command that succeeds when the tool is there. */
  probe: [string, ...string[]];
  packages: string[];
  /** What is tested with it. */
  why: string;
}

const TOOLS: Tool[] = [
  {
    probe: ['python3', '-c', 'import email.policy'],
    packages: ['python3'],
    why: 'reading our mail with an independent parser',
  },
  {
    probe: ['sh', '-c', 'test -x /usr/sbin/postfix && test -x /usr/sbin/saslpasswd2'],
    packages: ['postfix', 'sasl2-bin', 'libsasl2-modules', 'libsasl2-modules-db'],
    why: 'sending by a relay that other people wrote',
  },
  { probe: ['curl', '--version'], packages: ['curl'], why: 'the requests of the tour' },
  { probe: ['jq', '--version'], packages: ['jq'], why: 'the requests of the tour' },
];

function works([command, ...args]: [string, ...string[]]): boolean {
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0;
}

function install(packages: string[]): boolean {
  const sudo = process.getuid?.() === 0 ? [] : ['sudo', '-n'];
  const run = (...args: string[]): boolean => {
    const [command = '', ...rest] = [...sudo, 'apt-get', ...args];
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    return spawnSync(command, rest, { stdio: ['ignore', 'ignore', 'inherit'], env }).status === 0;
  };
  return run('update', '-qq') && run('install', '-y', '-qq', '--no-install-recommends', ...packages);
}

const missing = TOOLS.filter(({ probe }) => !works(probe));
if (missing.length > 0) {
  const packages = missing.flatMap((tool) => tool.packages);
  console.log(`installing ${packages.join(', ')} ...`);
  install(packages);
}
const absent = TOOLS.filter(({ probe }) => !works(probe));
for (const { packages, why } of absent)
  console.error(`missing: ${packages.join(' ')} (${why}); install it and run this again`);

const { status } = spawnSync('vitest', ['run', ...process.argv.slice(2)], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, PM_REAL: '1' },
});
process.exitCode = absent.length > 0 ? 1 : (status ?? 1);
