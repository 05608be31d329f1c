import { type Answer, decode, encode, type Packet } from 'dns-packet';
import { vi } from 'vitest';

/** The network as a test wants it: what resolvers say about names, and what endpoints answer. Nothing leaves the test. */

export interface Zone {
  A?: string[];
  AAAA?: string[];
  /** Another name that it stands for; the resolver follows it. */
  CNAME?: string;
  /** Other than NOERROR. */
  rcode?: number;
}

export interface Asked {
  resolver: string;
  host: string;
  type: string;
  headers: Headers;
}

export interface Posted {
  url: string;
  headers: Headers;
  body: string;
  redirect: string | undefined;
}

type Awaitable<T> = T | Promise<T>;

export type Resolver = (query: Packet, signal: AbortSignal) => Awaitable<Response>;

export type Endpoint = (posted: Posted, signal: AbortSignal) => Awaitable<Response>;

type Fetch = (input: string, init: RequestInit) => Promise<Response>;

/** An address that anybody may be reached at. */
export const PUBLIC = '93.184.215.14';

export const RCODE = { servfail: 2, nxdomain: 3, refused: 5 };

export class Net {
  readonly zones = new Map<string, Zone>();
  readonly asked: Asked[] = [];
  readonly posted: Posted[] = [];
  /** What a resolver does instead of answering. */
  readonly resolvers = new Map<string, Resolver>();
  /** What an endpoint answers, by URL; 200 where nothing is said. */
  readonly endpoints = new Map<string, Endpoint>();

  /** Stands in for `fetch` until mocks are restored. */
  install(): this {
    vi.spyOn(globalThis, 'fetch').mockImplementation(this.#fetch as typeof fetch);
    return this;
  }

  readonly #fetch: Fetch = async (url, init) => {
    const headers = new Headers(init.headers);
    const bytes = new Uint8Array(await new Response(init.body).arrayBuffer());
    const signal = init.signal ?? new AbortController().signal;
    if (headers.get('content-type') === 'application/dns-message') return this.#resolve(url, headers, bytes, signal);
    const posted = { url, headers, body: new TextDecoder().decode(bytes), redirect: init.redirect };
    this.posted.push(posted);
    return this.endpoints.get(url)?.(posted, signal) ?? new Response(null, { status: 200 });
  };

  async #resolve(resolver: string, headers: Headers, bytes: Uint8Array, signal: AbortSignal): Promise<Response> {
    const query = decode(Buffer.from(bytes));
    const [question] = query.questions ?? [];
    this.asked.push({ resolver, host: question?.name ?? '', type: question?.type ?? '', headers });
    return this.resolvers.get(resolver)?.(query, signal) ?? this.answer(query);
  }

  /** What the zones say to a query. */
  answer(query: Packet): Response {
    const [question] = query.questions ?? [];
    if (question === undefined) return new Response(null, { status: 400 });
    const answers: Answer[] = [];
    let name = question.name;
    let zone = this.zones.get(name) ?? { A: [PUBLIC] };
    while (zone.CNAME !== undefined) {
      answers.push({ type: 'CNAME', name, data: zone.CNAME });
      name = zone.CNAME;
      zone = this.zones.get(name) ?? {};
    }
    for (const data of zone[question.type] ?? []) answers.push({ type: question.type, name, data });
    return dnsAnswer({ type: 'response', questions: query.questions ?? [], answers, flags: zone.rcode ?? 0 });
  }
}

export function dnsAnswer(packet: Packet): Response {
  return new Response(new Uint8Array(encode({ id: 0, ...packet })), {
    headers: { 'content-type': 'application/dns-message' },
  });
}

/** Never answers; the caller gives up first. */
export function hang(signal: AbortSignal): Promise<Response> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error));
  });
}

/** Begins to answer and never comes to an end. */
export function dribble(signal: AbortSignal, first: Uint8Array): Response {
  return new Response(
    new ReadableStream<Uint8Array>({
      start: (controller) => {
        controller.enqueue(first);
        signal.addEventListener('abort', () => controller.error(signal.reason));
      },
    }),
  );
}

/** Makes waits of `ms` milliseconds short until mocks are restored. */
export function hurry(ms: number): void {
  const timeout = AbortSignal.timeout.bind(AbortSignal);
  vi.spyOn(AbortSignal, 'timeout').mockImplementation((wait) => timeout(wait === ms ? 20 : wait));
}
