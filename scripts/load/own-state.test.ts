import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StateInUse, takeState } from '@pmail/testkit/runtime/lock.ts';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ownState } from './own-state.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pmail-own-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

test('a second run takes nothing away from the first, and says who runs and what to do', () => {
  const first = ownState('npm run kill', folder);
  const mailbox = join(first.service, 'mailbox.sqlite');
  writeFileSync(mailbox, 'mail');
  expect(() => ownState('npm run kill', folder)).toThrow(StateInUse);
  expect(() => ownState('npm run kill', folder)).toThrow(
    `npm run kill runs already: process ${process.pid} works in ${folder}; stop it first, or wait until it has ended`,
  );
  expect(existsSync(mailbox)).toBe(true);
  first.release();
});

test('the next run begins with nothing, also after one that was killed', async () => {
  const gone = spawn(process.execPath, ['-e', '']);
  await once(gone, 'exit');
  writeFileSync(join(folder, 'lock'), String(gone.pid));
  writeFileSync(join(folder, 'round-1.json'), '[]');
  const own = ownState('npm run soak', folder);
  expect(readdirSync(folder).sort()).toEqual(['lock', 'service']);
  expect(readdirSync(own.service)).toEqual([]);
  own.release();
});

test('the runtime of the run can take its own part', () => {
  const own = ownState('npm run soak', folder);
  takeState(own.service).release();
  own.release();
});
