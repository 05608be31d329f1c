import { median } from './load.ts';
import { type BenchService, startService } from './service.ts';

/**
 * A flood of reports about one mailbox: 10,000 of them, and every tenth of them twice, through the queue of provider
 * events. All must be applied and none twice. Against it, in turn, two floors without any of the service: bare updates of
 * the same rows by an object that does nothing else, called once for each as the consumer calls a mailbox; and the same
 * behind a directory read and before a count in a second object. What a report sets off afterwards, the index of events and
 * the fan-out to subscribers, is in the figure of the service alone.
 */

const REPORTS = 10_000;
const ROUNDS = 5;
const PER_MESSAGE = 49;
const PER_ROUND = REPORTS / ROUNDS;

interface Recipient {
  message_id: string;
  address: string;
}

export async function run(): Promise<void> {
  const service = await startService('events', 1, { bare: true });
  try {
    const [identity] = service.identities;
    if (identity === undefined) throw new Error('no identity');
    console.log(`sending to ${REPORTS} recipients of one mailbox, each of whom is put off ...`);
    const recipients = await send(service, identity.id);
    await settled(service, identity.id, 'submitted');
    await fetch(`${service.runtime.bare}/prepare?count=${REPORTS}`, { method: 'POST' });
    const rates: { reports: number; updates: number; calls: number }[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const from = round * PER_ROUND;
      const about = recipients.slice(from, from + PER_ROUND);
      const reports = await flood(service, identity, about, round);
      const updates = await bare(service, 'updates', from + 1, from + 1 + PER_ROUND);
      const calls = await bare(service, 'reports', from + 1, from + 1 + PER_ROUND);
      rates.push({ reports, updates, calls });
      const line = [reports, updates, calls].map((rate) => rate.toFixed(0).padStart(5));
      console.log(
        `  round ${round + 1}: ${line[0]} reports/s, ${line[1]} bare updates/s, ${line[2]} with read and count/s`,
      );
    }
    await verify(service, identity.id, recipients);
    console.log(`rate: reports / bare updates of the same rows            ${ratio(rates, 'updates')}`);
    console.log(`rate: reports / those with directory read and a count    ${ratio(rates, 'calls')}`);
  } finally {
    await service.stop();
  }
}

function headers(service: BenchService): Record<string, string> {
  return { authorization: `Bearer ${service.key}`, 'content-type': 'application/json' };
}

async function get<T>(service: BenchService, path: string): Promise<T> {
  const response = await fetch(`${service.direct}${path}`, { headers: headers(service) });
  if (response.status !== 200) throw new Error(`${path}: ${response.status}`);
  return (await response.json()) as T;
}

async function send(service: BenchService, identity: string): Promise<Recipient[]> {
  const recipients: Recipient[] = [];
  for (let n = 0; recipients.length < REPORTS; n++) {
    const count = Math.min(PER_MESSAGE, REPORTS - recipients.length);
    const to = Array.from({ length: count }, (_, index) => `deferred+${n}.${index}@simulator.invalid`);
    const response = await fetch(`${service.direct}/v1/identities/${identity}/messages`, {
      method: 'POST',
      headers: { ...headers(service), 'idempotency-key': `flood-${n}` },
      body: JSON.stringify({ to, subject: `Flood ${n}`, text: 'One of many.' }),
    });
    if (response.status !== 202) throw new Error(`not accepted: ${response.status} ${await response.text()}`);
    const { id } = (await response.json()) as { id: string };
    recipients.push(...to.map((address) => ({ message_id: id, address })));
  }
  return recipients;
}

/** Waits until no message of the mailbox has the status. */
async function settled(service: BenchService, identity: string, status: string): Promise<void> {
  for (const state of ['queued', status]) {
    for (;;) {
      const path = `/v1/identities/${identity}/messages?status=${state}&limit=1`;
      const { data } = await get<{ data: unknown[] }>(service, path);
      if (data.length === 0) break;
      await pause(50);
    }
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

/** Puts reports into the queue and waits until the last of them has been applied. Answers reports per second. */
async function flood(
  service: BenchService,
  identity: BenchService['identities'][number],
  about: Recipient[],
  round: number,
): Promise<number> {
  const bodies = about.map(({ message_id, address }, n) => ({
    type: 'cf.email.sending.message.delivered',
    source: { type: 'email.sending', zoneId: 'z', domain: 'agents.example' },
    payload: {
      eventId: `flood-${round}-${n}`,
      messageId: `test-${message_id.slice(4).toLowerCase()}`,
      sender: identity.address,
      recipient: address,
      terminal: true,
      delivery: { status: 'delivered', smtpStatusCode: '250', smtpEnhancedStatusCode: '2.0.0', smtpResponse: 'OK' },
    },
    metadata: { eventSchemaVersion: 1, eventTimestamp: new Date().toISOString() },
  }));
  const twice = bodies.flatMap((body, n) => (n % 10 === 0 ? [body, body] : [body]));
  const started = performance.now();
  for (let at = 0; at < twice.length; at += 100) {
    const response = await fetch(`${service.runtime.bare}/flood`, {
      method: 'POST',
      body: JSON.stringify(twice.slice(at, at + 100)),
    });
    if (response.status !== 202) throw new Error(`not taken by the queue: ${response.status}`);
  }
  const ids = [...new Set(about.map(({ message_id }) => message_id))];
  const wanted = new Set(about.map(({ address }) => address));
  for (const id of ids) {
    for (;;) {
      const { deliveries } = await get<{ deliveries: { address: string; status: string }[] }>(
        service,
        `/v1/identities/${identity.id}/messages/${id}`,
      );
      if (deliveries.every(({ address, status }) => !wanted.has(address) || status === 'delivered')) break;
      await pause(50);
    }
  }
  return twice.length / ((performance.now() - started) / 1_000);
}

/** Bare calls for the given rows, one after the other. Answers calls per second. */
async function bare(service: BenchService, part: 'updates' | 'reports', from: number, to: number): Promise<number> {
  const started = performance.now();
  const response = await fetch(`${service.runtime.bare}/${part}?from=${from}&to=${to}`, { method: 'POST' });
  if (response.status !== 202) throw new Error(`bare ${part}: ${response.status}`);
  return (to - from) / ((performance.now() - started) / 1_000);
}

function ratio<F extends 'updates' | 'calls'>(rates: ({ reports: number } & Record<F, number>)[], floor: F): string {
  const all = rates.map((rate) => rate.reports / rate[floor]);
  return `${median(all).toFixed(2)} (${Math.min(...all).toFixed(2)} to ${Math.max(...all).toFixed(2)})`;
}

/** Every recipient is delivered, and each was told exactly once. */
async function verify(service: BenchService, identity: string, recipients: Recipient[]): Promise<void> {
  await settled(service, identity, 'deferred');
  const told = new Map<string, number>();
  let cursor = '';
  do {
    const page = await get<{ data: { data: { recipient: string } }[]; next_cursor: string | null }>(
      service,
      `/v1/events?type=message.delivered&include=data&limit=100${cursor === '' ? '' : `&cursor=${cursor}`}`,
    );
    for (const { data } of page.data) told.set(data.recipient, (told.get(data.recipient) ?? 0) + 1);
    cursor = page.next_cursor ?? '';
  } while (cursor !== '');
  const missing = recipients.filter(({ address }) => !told.has(address)).length;
  const again = [...told.values()].filter((count) => count > 1).length;
  console.log(`${recipients.length} reports: ${told.size} told, ${missing} missing, ${again} told twice`);
  if (missing + again > 0) throw new Error('reports were lost or applied twice');
}
