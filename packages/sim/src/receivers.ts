import { utf8 } from '@pmail/core/hash.ts';
import type { EventId } from '@pmail/core/ids.ts';
import { signWebhook } from '@pmail/core/webhooks/signature.ts';
import type { EndpointId } from '@pmail/engine/webhooks/endpoints.ts';
import type { PostAnswer } from '@pmail/engine/webhooks/world.ts';
import type { CaseId } from './case-list.ts';
import type { Process } from './process.ts';
import type { Universe } from './universe.ts';

/** What a receiver does with one request, and which case that is. */
export const RECEIVER_ACTS = {
  take: null,
  take_slowly: null,
  /** More than anybody would read; what counts is the status before it. */
  take_and_talk: 'V10 talks',
  hang: 'V10 hangs',
  fail: 'V10 fails',
  refuse: 'V10 fails',
  gone: 'V10 gone',
  redirect: 'V10 redirects',
  close: 'V10 closes',
} as const satisfies Record<string, CaseId | null>;

export type ReceiverAct = keyof typeof RECEIVER_ACTS;

/** A receiver by what it does with the requests about one event, in order; the last goes on for ever. */
export type ReceiverPlan = readonly ReceiverAct[];

const STATUS: Record<ReceiverAct, number | 'timeout' | 'connect'> = {
  take: 200,
  take_slowly: 202,
  take_and_talk: 200,
  hang: 'timeout',
  fail: 500,
  refuse: 404,
  gone: 410,
  redirect: 302,
  close: 'connect',
};

/** How long it takes to answer, in ms. A request is given up after fifteen seconds. */
function takes(act: ReceiverAct, universe: Universe): number {
  if (act === 'hang') return 15_000;
  return act === 'take_slowly' ? universe.between(5_000, 14_000) : universe.between(5, 500);
}

/** One request as its receiver has it. */
export interface PostRecord {
  endpoint_id: EndpointId;
  event_id: EventId;
  body: string;
  /** Whether the signature is that of these bytes under the endpoint's secret, and the time of it is now. */
  genuine: boolean;
  /** When the run began that made it, when it came, and when the answer left, by the clocks of the service. */
  begun_at: number;
  at: number;
  ended_at: number;
  answer: number | 'timeout' | 'connect';
}

export interface Receiver {
  endpoint_id: EndpointId;
  host: string;
  secret: string;
  plan: ReceiverPlan;
  /** Its name leads to an address inside a network, where nothing may be sent. */
  inside: boolean;
}

/** Programs of customers that are told of events, each with its own idea of how to answer. */
export class Receivers {
  readonly log: PostRecord[] = [];
  readonly #universe: Universe;
  readonly #byHost = new Map<string, Receiver>();

  constructor(universe: Universe) {
    this.#universe = universe;
  }

  get all(): readonly Receiver[] {
    return [...this.#byHost.values()];
  }

  add(receiver: Receiver): void {
    this.#byHost.set(receiver.host, receiver);
  }

  byId(id: EndpointId): Receiver {
    const receiver = this.all.find(({ endpoint_id }) => endpoint_id === id);
    if (receiver === undefined) throw new Error(`no receiver ${id}`);
    return receiver;
  }

  addressesOf(host: string): string[] {
    const receiver = this.#byHost.get(host);
    if (receiver === undefined) return [];
    if (receiver.inside) this.#universe.meet('V10 inside');
    return [receiver.inside ? '10.0.0.7' : '93.184.215.14'];
  }

  async post(
    process: Process,
    begunAt: number,
    url: string,
    headers: Record<string, string>,
    bytes: Uint8Array,
  ): Promise<PostAnswer> {
    const universe = this.#universe;
    const receiver = this.#byHost.get(new URL(url).hostname);
    if (receiver === undefined) return { ok: false, error: 'connect' };
    await universe.sleep(process, universe.between(5, 100));
    const eventId = (headers['webhook-id'] ?? '') as EventId;
    const body = Uint8Array.from(bytes);
    const nth = this.of(receiver.endpoint_id, eventId).length;
    const act = receiver.plan[Math.min(nth, receiver.plan.length - 1)] ?? 'take';
    const record: PostRecord = {
      endpoint_id: receiver.endpoint_id,
      event_id: eventId,
      body: new TextDecoder().decode(body),
      genuine: await isGenuine(receiver.secret, headers, body, universe.now),
      begun_at: begunAt,
      at: universe.now,
      ended_at: Number.POSITIVE_INFINITY,
      answer: STATUS[act],
    };
    this.log.push(record);
    universe.log(`receiver ${receiver.host}: ${act} ${eventId}`);
    universe.meet(RECEIVER_ACTS[act] ?? undefined);
    if (record.answer === 200 && nth >= 10) universe.meet('V10 back');
    await universe.sleep(process, takes(act, universe));
    record.ended_at = universe.now;
    const { answer } = record;
    return typeof answer === 'number' ? { ok: true, status: answer } : { ok: false, error: answer };
  }

  /** The requests about one event, in their order. */
  of(endpoint: EndpointId, event: EventId): PostRecord[] {
    return this.log.filter(({ endpoint_id, event_id }) => endpoint_id === endpoint && event_id === event);
  }
}

/** A receiver takes what was signed within five minutes. */
const SKEW_MS = 5 * 60_000;

async function isGenuine(
  secret: string,
  headers: Record<string, string>,
  body: Uint8Array<ArrayBuffer>,
  now: number,
): Promise<boolean> {
  const at = Number(headers['webhook-timestamp']) * 1_000;
  const id = headers['webhook-id'] ?? '';
  const expected = await signWebhook([secret], id, at, body);
  return expected['webhook-signature'] === headers['webhook-signature'] && Math.abs(now - at) < SKEW_MS;
}

/** The secret of the n-th endpoint. */
export function secretOf(n: number): string {
  return `whsec_${Buffer.from(utf8(`secret of endpoint ${n}`.padEnd(32, '.'))).toString('base64')}`;
}
