import { load, median, type Shot } from './load.ts';
import { type BenchService, startService } from './service.ts';

/** Whether a mailbox with 10,000 messages answers as quickly as an empty one: p50 of send, get and list, in turn. */

const MESSAGES = 10_000;
const ROUNDS = 7;
const ROUND_MS = 1_200;

export async function run(): Promise<void> {
  const service = await startService('growth', 2);
  try {
    const [full, empty] = service.identities;
    if (full === undefined || empty === undefined) throw new Error('two identities are needed');
    console.log(`filling a mailbox with ${MESSAGES} messages ...`);
    await fill(service, full.id);
    const known = { full: await someMessage(service, full.id), empty: await someMessage(service, empty.id) };
    let keys = 0;
    const shots: Record<string, (id: string, message: string) => Shot> = {
      send: (id) => sendShot(service, id, `growth-${++keys}`),
      get: (id, message) => ({
        method: 'GET',
        path: `/v1/identities/${id}/messages/${message}`,
        headers: auth(service),
      }),
      list: (id) => ({ method: 'GET', path: `/v1/identities/${id}/messages?limit=25`, headers: auth(service) }),
      threads: (id) => ({ method: 'GET', path: `/v1/identities/${id}/threads?limit=25`, headers: auth(service) }),
    };
    for (const [name, shot] of Object.entries(shots)) {
      const status = name === 'send' ? 202 : 200;
      const ratios: number[] = [];
      const times: { full: number[]; empty: number[] } = { full: [], empty: [] };
      for (let round = 0; round < ROUNDS; round++) {
        const a = await load(service.direct, 1, ROUND_MS, status, () => shot(full.id, known.full));
        const b = await load(service.direct, 1, ROUND_MS, status, () => shot(empty.id, known.empty));
        if (a.wrong + b.wrong > 0) throw new Error(`${name}: answers with another status`);
        ratios.push(a.p50 / b.p50);
        times.full.push(a.p50);
        times.empty.push(b.p50);
      }
      console.log(
        `${name.padEnd(8)} full ${median(times.full).toFixed(2)} ms, empty ${median(times.empty).toFixed(2)} ms, ratio ${median(ratios).toFixed(2)} (${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})`,
      );
    }
  } finally {
    await service.stop();
  }
}

function auth(service: BenchService): Record<string, string> {
  return { authorization: `Bearer ${service.key}` };
}

function sendShot(service: BenchService, id: string, key: string): Shot {
  return {
    method: 'POST',
    path: `/v1/identities/${id}/messages`,
    headers: { ...auth(service), 'content-type': 'application/json', 'idempotency-key': key },
    // An address whose script ends at once, so that nothing is left to do afterwards.
    body: JSON.stringify({ to: ['reject@simulator.invalid'], subject: `Growth ${key}`, text: 'One of many messages.' }),
  };
}

async function fill(service: BenchService, id: string): Promise<void> {
  let sent = 0;
  while (sent < MESSAGES) {
    const { answers, wrong } = await load(service.direct, 16, 5_000, 202, (n) =>
      sendShot(service, id, `fill-${sent}-${n}`),
    );
    if (wrong > 0) throw new Error(`${wrong} of ${answers} sends were not accepted`);
    sent += answers;
    console.log(`  ${sent}`);
  }
}

async function someMessage(service: BenchService, id: string): Promise<string> {
  const response = await fetch(`${service.direct}/v1/identities/${id}/messages`, {
    method: 'POST',
    headers: { ...auth(service), 'content-type': 'application/json', 'idempotency-key': `known-${id}` },
    body: JSON.stringify({ to: ['reject@simulator.invalid'], subject: 'Known', text: 'Known.' }),
  });
  return ((await response.json()) as { id: string }).id;
}
