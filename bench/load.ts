import { Agent, request } from 'node:http';

/** A small closed-loop load: `clients` requests at a time over kept connections, as fast as they are answered. */

export interface Shot {
  method: 'GET' | 'POST';
  path: string;
  headers?: Record<string, string>;
  body?: string;
}

export interface LoadResult {
  /** Answers per second. */
  rate: number;
  /** Median and 99th percentile of the time to an answer, ms. */
  p50: number;
  p99: number;
  answers: number;
  /** Answers with another status than the one wanted. */
  wrong: number;
}

export async function load(
  url: string,
  clients: number,
  ms: number,
  status: number,
  next: (n: number) => Shot,
): Promise<LoadResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  const times: number[] = [];
  let n = 0;
  let wrong = 0;
  const started = performance.now();
  const ends = started + ms;
  const client = async (): Promise<void> => {
    while (performance.now() < ends) {
      const before = performance.now();
      const got = await shoot(url, agent, next(n++));
      times.push(performance.now() - before);
      if (got !== status) wrong++;
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  const seconds = (performance.now() - started) / 1_000;
  agent.destroy();
  return { rate: times.length / seconds, ...percentiles(times), answers: times.length, wrong };
}

export function shoot(url: string, agent: Agent, { method, path, headers, body }: Shot): Promise<number> {
  return new Promise((resolve, reject) => {
    const call = request(
      `${url}${path}`,
      { method, agent, ...(headers === undefined ? {} : { headers }) },
      (response) => {
        response.resume();
        response.on('end', () => resolve(response.statusCode ?? 0));
        response.on('error', reject);
      },
    );
    call.on('error', reject);
    call.end(body);
  });
}

export function percentiles(times: number[]): { p50: number; p99: number } {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return { p50: at(0.5), p99: at(0.99) };
}

export function median(values: number[]): number {
  return percentiles(values).p50;
}
