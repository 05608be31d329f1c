import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Type-checks every package by its own settings: the rules, for one, must compile without any platform's types. */

const root = fileURLToPath(new URL('..', import.meta.url));

const projects = [
  ...readdirSync(join(root, 'packages')).map((name) => `packages/${name}`),
  ...readdirSync(join(root, 'apps')).map((name) => `apps/${name}`),
  'scripts',
  'bench',
  'bench/bare',
].filter((path) => existsSync(join(root, path, 'tsconfig.json')));

let broken = 0;
for (const project of projects) {
  const { status } = spawnSync(join(root, 'node_modules/.bin/tsc'), ['-p', project], { cwd: root, stdio: 'inherit' });
  if (status !== 0) {
    console.error(`types of ${project} are not right`);
    broken++;
  }
}
console.log(`types of ${projects.length} projects checked, ${broken} not right`);
process.exitCode = broken === 0 ? 0 : 1;
