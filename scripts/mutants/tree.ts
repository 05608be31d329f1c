import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { applyChange, type Patch } from './patch.ts';

/** A copy of the tree in which breakages are made, one after the other. The working tree is only read. */
export class Tree {
  readonly root: string;
  readonly #changed = new Map<string, string>();

  /** @param from the tree that is copied; @param root where to, below `from`, so that links into it still hold */
  constructor(from: string, root: string) {
    this.root = root;
    rmSync(root, { recursive: true, force: true });
    mkdirSync(join(root, 'node_modules'), { recursive: true });
    const listed = spawnSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
      cwd: from,
      encoding: 'utf8',
      maxBuffer: 2 ** 26,
    });
    if (listed.status !== 0) throw new Error('the files of the tree could not be listed');
    for (const file of listed.stdout.split('\n')) {
      // What was deleted and is not committed yet is still listed.
      if (!existsSync(join(from, file)) || /^(docs|examples)\/|\.md$/.test(file) || file === '') continue;
      cpSync(join(from, file), join(root, file));
    }
    // Third-party packages stay where they are; the project's own are linked inside of the copy.
    for (const name of readdirSync(join(from, 'node_modules'))) {
      if (name === '@pmail') cpSync(join(from, 'node_modules', name), join(root, 'node_modules', name), LINKS);
      else symlinkSync(join(from, 'node_modules', name), join(root, 'node_modules', name));
    }
    for (const home of ['packages', 'apps']) {
      for (const name of readdirSync(join(from, home))) {
        try {
          cpSync(join(from, home, name, 'node_modules'), join(root, home, name, 'node_modules'), LINKS);
        } catch (error) {
          if ((error as { code?: string }).code !== 'ENOENT') throw error;
        }
      }
    }
  }

  /** @throws when the patch does not apply, with the tree as it was */
  apply(patch: Patch): void {
    try {
      for (const change of patch.changes) {
        const path = join(this.root, change.file);
        const source = readFileSync(path, 'utf8');
        const next = applyChange(source, change);
        if (!this.#changed.has(path)) this.#changed.set(path, source);
        writeFileSync(path, next);
      }
    } catch (error) {
      this.restore();
      throw error;
    }
  }

  restore(): void {
    for (const [path, source] of this.#changed) writeFileSync(path, source);
    this.#changed.clear();
  }
}

/** Only the links themselves: what they lead to is not copied. */
const LINKS = { recursive: true, verbatimSymlinks: true, filter: (path: string) => !path.includes('.vite') };
