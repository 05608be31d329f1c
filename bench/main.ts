import { readdirSync } from 'node:fs';

/** `npm run bench [-- NAME]`: each benchmark prints ratios against a floor or rival measured in the same run. */

const names = readdirSync(new URL('.', import.meta.url))
  .filter((name) => name.endsWith('.bench.ts'))
  .map((name) => name.replace('.bench.ts', ''));

const wanted = process.argv.slice(2);
for (const name of wanted) {
  if (names.includes(name)) continue;
  console.error(`no such benchmark: ${name}; there are ${names.join(', ')}`);
  process.exit(1);
}
for (const name of wanted.length === 0 ? names : wanted) {
  console.log(`\n== ${name}`);
  const { run } = (await import(`./${name}.bench.ts`)) as { run: () => Promise<void> };
  await run();
}
