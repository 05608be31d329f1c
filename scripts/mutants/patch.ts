import { createHash } from 'node:crypto';

/** A deliberate breakage: what is replaced in which file. */
export interface Patch {
  /** Name of the patch's file. */
  name: string;
  /** What is broken, as the table says it. */
  title: string;
  /**
   * Where it is looked for: in schedules of the simulator, and where none of them finds it in its scenarios; in those
   * alone; in the kill test.
   */
  level: 'simulator' | 'scenario' | 'kill';
  /** Ids of what may be said not to hold: a failure of another kind would be found by luck. */
  finds: string[];
  changes: Change[];
  /** Of everything that a result depends on; another title is no other breakage. */
  hash: string;
}

export interface Change {
  file: string;
  search: string;
  replace: string;
}

/**
 * Reads a patch: `title:`, `finds:` and `level:` lines, then for each change a line `@@ file`, the code that stands there, a line
 * `@@ with`, what takes its place, and a line `@@ end`.
 *
 * @throws when the text is not one
 */
export function parsePatch(name: string, text: string): Patch {
  const head = text.slice(0, text.search(/^@@ /m));
  const field = (key: string): string | undefined => new RegExp(`^${key}: (.+)$`, 'm').exec(head)?.[1];
  const title = field('title');
  const level = field('level') ?? 'simulator';
  if (title === undefined) throw new Error(`${name} has no title`);
  if (level !== 'simulator' && level !== 'scenario' && level !== 'kill')
    throw new Error(`${name}: no such level: ${level}`);
  const finds = field('finds')?.split(' ') ?? [];
  if (finds.length === 0) throw new Error(`${name} does not say what is to be found`);
  const changes = [...text.matchAll(/^@@ (\S+\.\w+)\n(.*?)\n@@ with\n(.*?)\n?@@ end$/gms)].map(
    ([, file = '', search = '', replace = '']) => ({ file, search, replace }),
  );
  if (changes.length === 0 || changes.length !== text.match(/^@@ end$/gm)?.length) {
    throw new Error(`${name} has no whole change`);
  }
  const hash = createHash('sha256')
    .update(JSON.stringify([level, finds, changes]))
    .digest('hex')
    .slice(0, 16);
  return { name, title, level, finds, changes, hash };
}

/**
 * The source with the change made. White space may differ, so that a patch outlives another line break, and nothing else.
 *
 * @throws when the code is not there, or more than once
 */
export function applyChange(source: string, { file, search, replace }: Change): string {
  const words = search.trim().split(/\s+/);
  const pattern = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('\\s+');
  const found = [...source.matchAll(new RegExp(pattern, 'g'))];
  const [only] = found;
  if (only === undefined) throw new Error(`${file} has no such code any more: ${words.slice(0, 12).join(' ')} ...`);
  if (found.length > 1) throw new Error(`${file} has it ${found.length} times: ${words.slice(0, 12).join(' ')} ...`);
  return source.slice(0, only.index) + replace.trim() + source.slice(only.index + only[0].length);
}
