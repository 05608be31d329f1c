import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { StateInUse, takeState } from './lock.ts';

/** Two services on one state. */

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pmail-lock-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

test('the second one is told who runs, until the first gives the state back', () => {
  const first = takeState(folder);
  expect(() => takeState(folder)).toThrow(StateInUse);
  expect(() => takeState(folder)).toThrow(String(process.pid));
  first.release();
  takeState(folder).release();
  expect(existsSync(join(folder, 'lock'))).toBe(false);
});

test('a process that was killed leaves nothing locked', async () => {
  const gone = spawn(process.execPath, ['-e', '']);
  await once(gone, 'exit');
  writeFileSync(join(folder, 'lock'), String(gone.pid));
  const lock = takeState(folder);
  expect(readFileSync(join(folder, 'lock'), 'utf8')).toBe(String(process.pid));
  lock.release();
});

test("a lock that was cut short in its writing is nobody's", () => {
  writeFileSync(join(folder, 'lock'), '');
  takeState(folder).release();
});
