import { readdirSync } from 'node:fs';
import { readOptions } from '@pmail/testkit/options.ts';

/** `npm run bench [-- NAME]`: each benchmark prints ratios against a floor or rival measured in the same run. */

const names = readdirSync(new URL('.', import.meta.url))
  .filter((name) => name.endsWith('.bench.ts'))
  .map((name) => name.replace('.bench.ts', ''));

const USAGE = `npm run bench [-- NAME ...]
    ratios, each against its floor or a rival in the same run: ${names.join(', ')} (all)`;

const wanted = readOptions(USAGE, (args) => {
  const unknown = args.find((name) => !names.includes(name));
  if (unknown !== undefined) throw new Error(`There is no benchmark '${unknown}'`);
  return args;
});
for (const name of wanted.length === 0 ? names : wanted) {
  console.log(`\n== ${name}`);
  const { run } = (await import(`./${name}.bench.ts`)) as { run: () => Promise<void> };
  await run();
}
