import { parseArgs } from 'node:util';
import { fuzzRelay } from '@pmail/testkit/smtp/fuzz.ts';

/** `npm run fuzz`: random servers against the exchange with a relay, by default a million of them. */

const { values } = parseArgs({ options: { inputs: { type: 'string' }, seed: { type: 'string' } } });
const inputs = Number(values.inputs ?? 1_000_000);
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
if (!Number.isSafeInteger(inputs) || inputs < 1 || !Number.isSafeInteger(seed)) {
  console.error('usage: npm run fuzz -- [--inputs N] [--seed S]');
  process.exit(1);
}

const PART = 50_000;
const ends: Record<string, number> = {};
let dots = 0;
let events = 0;
console.log(`${inputs} inputs, seed ${seed}`);
for (let from = 0; from < inputs; from += PART) {
  const part = fuzzRelay(Math.min(PART, inputs - from), seed, from);
  for (const [kind, count] of Object.entries(part.ends)) ends[kind] = (ends[kind] ?? 0) + count;
  dots += part.dots;
  events += part.events;
}
const shares = Object.entries(ends)
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .map(([kind, count]) => `${count} ${kind}`);
console.log(
  `${inputs} inputs, seed ${seed}: nothing untrue in ${events} events (${shares.join(', ')}; ${dots} final dots)`,
);
