import { type LoadResult, load, median } from './load.ts';
import { startService } from './service.ts';

/**
 * What an accepted send costs, against two floors in the same run: a bare Durable Object that writes the same rows, and a
 * bare Worker that puts the same object beside the same directory read before that. Rounds alternate, so that a machine
 * that changes its speed changes all of them. Nothing is consumed meanwhile: this is the time to `202`, not to delivery.
 */

const ROUNDS = 5;
const ROUND_MS = 2_500;
const CLIENTS = 16;
const OBJECTS = 8;

const TEXT = 'Hello Jo, your table for two on Friday at seven is booked. See you then. '.repeat(8);

export async function run(): Promise<void> {
  const service = await startService('accept', OBJECTS, { bare: true, consume: false });
  let keys = 0;
  const send = (n: number) => ({
    method: 'POST' as const,
    path: `/v1/identities/${service.identities[n % OBJECTS]?.id}/messages`,
    headers: {
      authorization: `Bearer ${service.key}`,
      'content-type': 'application/json',
      'idempotency-key': `bench-${++keys}`,
    },
    body: JSON.stringify({ to: ['timeout@simulator.invalid'], subject: 'Your booking', text: TEXT }),
  });
  const bare = (part: string) => (n: number) => ({
    method: 'POST' as const,
    path: `/${part}?object=${n % OBJECTS}`,
    body: JSON.stringify({ text: TEXT }),
  });
  const { bare: bareUrl } = service.runtime;
  const parts = {
    send: (clients: number) => load(service.direct, clients, ROUND_MS, 202, send),
    writes: (clients: number) => load(bareUrl, clients, ROUND_MS, 202, bare('writes')),
    floor: (clients: number) => load(bareUrl, clients, ROUND_MS, 202, bare('floor')),
  };
  try {
    for (const part of Object.values(parts)) await part(CLIENTS);
    const busy = await alternate(parts, CLIENTS);
    const alone = await alternate(parts, 1);
    report(busy, alone);
    await whereTheTimeGoes(bareUrl, bare, alone);
  } finally {
    await service.stop();
  }
}

type Name = 'send' | 'writes' | 'floor';
type Results = Record<Name, LoadResult[]>;

async function alternate(
  parts: Record<Name, (clients: number) => Promise<LoadResult>>,
  clients: number,
): Promise<Results> {
  const results: Results = { send: [], writes: [], floor: [] };
  for (let round = 0; round < ROUNDS; round++) {
    for (const name of Object.keys(parts) as Name[]) results[name].push(await parts[name](clients));
  }
  return results;
}

function ratios(a: LoadResult[], b: LoadResult[], value: (result: LoadResult) => number): string {
  const all = a.map((result, index) => value(result) / value(b[index] ?? result));
  return `${median(all).toFixed(2)} (${Math.min(...all).toFixed(2)} to ${Math.max(...all).toFixed(2)})`;
}

function report(busy: Results, alone: Results): void {
  const line = (name: Name): string => {
    const rate = median(busy[name].map((result) => result.rate)).toFixed(0);
    const p50 = median(alone[name].map((result) => result.p50)).toFixed(2);
    return `  ${name.padEnd(8)} ${rate.padStart(6)}/s with ${CLIENTS} clients   p50 ${p50.padStart(6)} ms with one`;
  };
  for (const name of ['send', 'floor', 'writes'] as const) console.log(line(name));
  const wrong = [...busy.send, ...alone.send].reduce((sum, result) => sum + result.wrong, 0);
  if (wrong > 0) console.log(`  ${wrong} sends were not accepted`);
  console.log(
    `rate: send / bare object with the same writes        ${ratios(busy.send, busy.writes, ({ rate }) => rate)}   aim at least 0.7`,
  );
  console.log(
    `rate: send / bare worker with put, read and writes   ${ratios(busy.send, busy.floor, ({ rate }) => rate)}`,
  );
  console.log(
    `p50:  send / bare worker with put, read and writes   ${ratios(alone.send, alone.floor, ({ p50 }) => p50)}   aim at most 1.3`,
  );
}

/** The parts of the floor one by one, each with one client. */
async function whereTheTimeGoes(
  url: string,
  bare: (part: string) => (n: number) => { method: 'POST'; path: string; body: string },
  alone: Results,
): Promise<void> {
  console.log('where the time goes, p50 with one client:');
  for (const [part, text] of [
    ['nothing', 'a request that does nothing'],
    ['call', 'and a call to an object'],
    ['read', 'and the directory read'],
    ['put', 'and the object put'],
    ['writes', 'and an object with the same writes'],
    ['floor', 'put beside read, then the writes'],
  ] as const) {
    const { p50 } = await load(url, 1, 1_500, 202, bare(part));
    console.log(`  ${text.padEnd(40)} ${p50.toFixed(2)} ms`);
  }
  console.log(`  ${'a send'.padEnd(40)} ${median(alone.send.map(({ p50 }) => p50)).toFixed(2)} ms`);
}
