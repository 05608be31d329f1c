import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

/** The rules of the house, as the README states them. A change that breaks one fails here, not in a review. */

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Who may import whom, beside itself. */
const ALLOWED: Record<string, readonly string[]> = {
  'packages/core': [],
  'packages/engine': ['core'],
  'packages/contracts': ['core'],
  'packages/mime': ['core'],
  'packages/transports': ['core'],
  'packages/client': ['contracts', 'core'],
  'packages/testkit': ['core', 'engine', 'contracts', 'mime', 'transports', 'client'],
  'packages/sim': ['core', 'engine', 'contracts', 'mime', 'transports', 'client', 'testkit'],
  'apps/worker': ['core', 'engine', 'contracts', 'mime', 'transports'],
  'apps/cli': ['core', 'engine', 'contracts', 'client'],
  bench: ['core', 'engine', 'contracts', 'mime', 'transports', 'client', 'testkit', 'sim'],
  scripts: ['core', 'engine', 'contracts', 'mime', 'transports', 'client', 'testkit', 'sim'],
};

/** Pure libraries that the rules may use. */
const CORE_LIBRARIES = ['tldts', 'ulid'];

const LINES_MAX = 400;

interface Source {
  path: string;
  text: string;
  /** Every specifier it imports; `type` when nothing of it is left at run time. */
  imports: { specifier: string; typeOnly: boolean }[];
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (['node_modules', 'dist', '.state', '.wrangler', '.git'].includes(entry.name)) return [];
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesBelow(path) : [path];
  });
}

function readSource(path: string): Source {
  const text = readFileSync(path, 'utf8');
  const imports = [...text.matchAll(/^(?:import|export)\s+(type\s+)?(?:[^'";]*?\sfrom\s+)?'([^']+)'/gm)].map(
    ([statement, type, specifier = '']) => ({
      specifier,
      typeOnly: type !== undefined || /^import\s*\{(?:\s*type\s[^,}]*,?)+\s*\}/.test(statement),
    }),
  );
  const dynamic = [...text.matchAll(/import\('([^']+)'\)/g)].map(([, specifier = '']) => ({
    specifier,
    typeOnly: false,
  }));
  return { path: relative(ROOT, path), text, imports: [...imports, ...dynamic] };
}

const sources = ['packages', 'apps', 'scripts', 'bench']
  .flatMap((folder) => filesBelow(join(ROOT, folder)))
  .filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts'))
  .map(readSource);

const isTest = ({ path }: Source): boolean => /\.(test|fixture|config)\.ts$|test-support\.ts$|\/test\//.test(path);
const isGenerated = ({ path }: Source): boolean => /\.generated\.ts$|\/data\//.test(path);
const product = sources.filter((source) => !isTest(source));

function homeOf(path: string): string {
  return Object.keys(ALLOWED).find((home) => path.startsWith(`${home}/`)) ?? '';
}

describe('house rules', () => {
  it('finds the sources', () => {
    expect(product.length).toBeGreaterThan(150);
    expect(product.flatMap(({ imports }) => imports).length).toBeGreaterThan(800);
  });

  it('imports only what the house allows', () => {
    const broken = product.flatMap(({ path, imports }) =>
      imports.flatMap(({ specifier }) => {
        const target = /^@pmail\/([a-z]+)\//.exec(specifier)?.[1];
        if (target === undefined) return [];
        const home = homeOf(path);
        const itself = home === `packages/${target}`;
        return itself || ALLOWED[home]?.includes(target) === true ? [] : [`${path} imports ${specifier}`];
      }),
    );
    expect(broken).toEqual([]);
  });

  it('nobody imports an app, and nobody reaches into another package by a relative path', () => {
    const broken = sources
      .filter(({ path }) => !path.endsWith('.config.ts'))
      .flatMap(({ path, imports }) =>
        imports.flatMap(({ specifier }) => {
          if (/^@pmail\/(worker|cli)(\/|$)/.test(specifier)) return [`${path} imports ${specifier}`];
          if (!specifier.startsWith('.')) return [];
          const target = relative(ROOT, resolve(ROOT, dirname(path), specifier));
          return homeOf(target) === homeOf(path) || !target.includes('/') ? [] : [`${path} reaches ${target}`];
        }),
      );
    expect(broken).toEqual([]);
  });

  it('the rules import nothing but each other and two pure libraries, and read neither clock nor chance', () => {
    const core = product.filter(({ path }) => path.startsWith('packages/core/'));
    const imported = core.flatMap(({ path, imports }) =>
      imports
        .filter(({ specifier }) => !specifier.startsWith('.') && !CORE_LIBRARIES.includes(specifier))
        .map(({ specifier }) => `${path} imports ${specifier}`),
    );
    const impure = core.flatMap(({ path, text }) =>
      [/Date\.now\(/, /new Date\(\)/, /Math\.random\(/, /performance\.now\(/, /\bsetTimeout\(/, /\bfetch\(/]
        .filter((pattern) => pattern.test(text))
        .map((pattern) => `${path} uses ${pattern.source}`),
    );
    expect([...imported, ...impure]).toEqual([]);
  });

  it('SQL stands in the engine and nowhere else', () => {
    const sql = /\b(SELECT\s+[\w*(,. ]+\s+FROM|INSERT\s+(OR\s+\w+\s+)?INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM)\b/;
    const broken = product
      .filter(({ path }) => /^(packages\/(core|contracts|mime|transports|client)|apps\/worker)\//.test(path))
      .filter(({ text }) => sql.test(text))
      .map(({ path }) => path);
    expect(broken).toEqual([]);
  });

  it(`no source file is over ${LINES_MAX} lines`, () => {
    const long = sources
      .filter((source) => !isGenerated(source) && source.text.split('\n').length > LINES_MAX + 1)
      .map(({ path, text }) => `${path}: ${text.split('\n').length}`);
    expect(long).toEqual([]);
  });

  it('has no circles', () => {
    const edges = new Map<string, string[]>();
    for (const { path, imports } of sources) {
      const targets = imports
        // What is imported only as a type is gone at run time and cannot make a circle.
        .filter(({ typeOnly }) => !typeOnly)
        .flatMap(({ specifier }) => {
          if (specifier.startsWith('.')) return [relative(ROOT, resolve(ROOT, dirname(path), specifier))];
          const match = /^@pmail\/([a-z]+)\/(.+)$/.exec(specifier);
          return match === null ? [] : [`packages/${match[1]}/src/${match[2]}`];
        });
      edges.set(path, targets);
    }
    expect(circles(edges)).toEqual([]);
  });

  it('names no bound twice: numbers of limits stand in the limits module', () => {
    const limits = readFileSync(join(ROOT, 'packages/core/src/limits.ts'), 'utf8');
    expect(limits).toContain('composed_bytes_max');
    const broken = product
      .filter(
        ({ path }) => !path.endsWith('/limits.ts') && /^(packages\/(core|engine|transports)|apps\/worker)\//.test(path),
      )
      .flatMap(({ path, text }) =>
        [/\b5_?242_?880\b/, /\b2_?048\b/, /\b330_?000\b/]
          .filter((n) => n.test(text))
          .map((n) => `${path}: ${n.source}`),
      );
    expect(broken).toEqual([]);
  });

  it('the README names only what is there', () => {
    const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
    const paths = [...readme.matchAll(/`((?:packages|apps|docs|examples|migrations|scripts|bench)\/[\w./-]*)`/g)].map(
      ([, path = '']) => path,
    );
    expect(paths.length).toBeGreaterThan(20);
    expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });
});

/** Circles in a graph, each as the path that closes it. */
function circles(edges: Map<string, string[]>): string[] {
  const done = new Set<string>();
  const found: string[] = [];
  const visit = (node: string, trail: string[]): void => {
    const at = trail.indexOf(node);
    if (at >= 0) {
      found.push([...trail.slice(at), node].join(' -> '));
      return;
    }
    if (done.has(node)) return;
    for (const next of edges.get(node) ?? []) visit(next, [...trail, node]);
    done.add(node);
  };
  for (const node of edges.keys()) visit(node, []);
  return found;
}
