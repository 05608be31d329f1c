import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '@pmail/testkit/runtime/build.ts';
import { Runtime } from '@pmail/testkit/runtime/runtime.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { prepare } from './load/place.ts';

/** Every command of docs/tour.md, in a shell, against the local service, in the order of the page. */

const folder = mkdtempSync(join(tmpdir(), 'pmail-tour-'));
let runtime: Runtime;

beforeAll(async () => {
  runtime = await Runtime.start({ state: join(folder, 'state'), vars: { PM_WEBHOOK_LOOPBACK: 'on' } });
}, 60_000);

afterAll(async () => {
  await runtime.stop();
  rmSync(folder, { recursive: true });
});

interface Outcome {
  code: number | null;
  output: string;
}

/** Runs the commands as one script that ends at the first that fails. */
function shell(commands: string, env: Record<string, string>): Promise<Outcome> {
  const child = spawn('bash', ['-euo', 'pipefail', '-c', commands], { cwd: folder, env: { ...process.env, ...env } });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, output }));
  });
}

test('the tour works as it is written', async () => {
  const page = readFileSync(join(ROOT, 'docs', 'tour.md'), 'utf8');
  const blocks = [...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, commands = '']) => commands);
  expect(blocks.length).toBeGreaterThan(5);
  const { key, tenant, sender, desk } = await prepare(runtime);
  const { code, output } = await shell(blocks.join('\n'), {
    API: runtime.url,
    PLATFORM_KEY: runtime.secrets.platform_key,
    KEY: key,
    TENANT: tenant,
    SENDER: sender.id,
    DESK: desk.id,
    DESK_ADDRESS: desk.address,
  });
  expect(code, output).toBe(0);
  // What failed without ending the script still shows as an error of the API.
  expect(output).not.toContain('"error"');
}, 90_000);
