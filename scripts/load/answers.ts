import { ERRORS, type ErrorCode } from '@pmail/core/errors.ts';

/** What the service answered over a run, counted below the client, so that what a retry made good is seen all the same. */

/** A request that nobody took: the port was closed, and not a byte of it went out. */
export const REFUSED = 'connection refused';
/** A request that may have gone out, and no whole answer came. */
export const LOST = 'no answer';

export type Counts = ReadonlyMap<string, number>;

/** Whether a request ended before anybody could receive it. */
export function isRefused(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ECONNREFUSED') return true;
  }
  return false;
}

export class Answers {
  /** Of requests that lived wholly while the service had to be there. */
  calm = new Map<string, number>();
  /** Of requests that met an outage at their beginning, in their middle or at their end. */
  around = new Map<string, number>();
  readonly #send: typeof fetch;
  #out = false;
  #outages = 0;

  constructor(send: typeof fetch = fetch) {
    this.#send = send;
  }

  /** The service is about to be killed. */
  outage(): void {
    this.#out = true;
    this.#outages++;
  }

  /** It has answered again. */
  back(): void {
    this.#out = false;
  }

  /** What was counted since the last time. */
  take(): { calm: Counts; around: Counts } {
    const { calm, around } = this;
    this.calm = new Map();
    this.around = new Map();
    return { calm, around };
  }

  /** For a client. */
  readonly fetch: typeof fetch = async (input, init) => {
    const [out, outages] = [this.#out, this.#outages];
    const count = (what: string): void => {
      const counts = out || this.#out || outages !== this.#outages ? this.around : this.calm;
      counts.set(what, (counts.get(what) ?? 0) + 1);
    };
    try {
      const response = await this.#send(input, init);
      // To its end, because an answer that is cut off is none.
      const text = await response.clone().text();
      count(response.ok ? String(response.status) : `${response.status} ${codeIn(text)}`);
      return response;
    } catch (error) {
      count(isRefused(error) ? REFUSED : LOST);
      throw error;
    }
  };
}

function codeIn(text: string): string {
  try {
    return (JSON.parse(text) as { error?: { code?: string } }).error?.code ?? 'without a code';
  } catch {
    return 'without a code';
  }
}

/** "Again" by design, however well the service is: the key's first request still runs, or another mail of the thread. */
const BY_DESIGN: readonly string[] = ['request_in_progress', 'thread_busy'] satisfies ErrorCode[];

/** Of so many answers one may be "later" where a run allows it: a slow machine meets a deadline now and then. */
export const LATER_ONE_IN = 1_000;

/**
 * What no run may end clean with. A 500 is a fault of ours whenever it comes, also around a kill, and however well its
 * repeat went. What else says "later", or says nothing, must be rare.
 *
 * @param allowed how many of the calm answers may say "later" or stay away
 */
export function judgeAnswers({ calm, around }: { calm: Counts; around: Counts }, allowed: number): string[] {
  const faults: string[] = [];
  const found = [...calm, ...around].filter(([what]) => what.startsWith('500 ') || what.endsWith(' internal_error'));
  const own = addCounts([new Map(), ...found.map((entry) => new Map([entry]))]);
  for (const [what, n] of own) faults.push(`${n} requests answered with ${what}`);
  const refused = calm.get(REFUSED) ?? 0;
  if (refused > 0) faults.push(`${refused} requests found nobody there, and nothing was killed`);
  const later = [...calm].filter(([what]) => isLater(what) && !own.has(what));
  const sum = later.reduce((all, [, n]) => all + n, 0);
  if (sum > allowed) faults.push(`${sum} requests put off, of ${allowed} that may be: ${sayCounts(new Map(later))}`);
  return faults;
}

/** Whether a client would repeat it; what is refused for good is judged where it was asked for. */
function isLater(what: string): boolean {
  const [status = '', code = ''] = what.split(' ');
  if (BY_DESIGN.includes(code)) return false;
  const known = code in ERRORS ? ERRORS[code as ErrorCode].retryable : status.startsWith('5');
  return what === LOST || known;
}

export function addCounts(all: readonly Counts[]): Map<string, number> {
  const sum = new Map<string, number>();
  for (const counts of all) for (const [what, n] of counts) sum.set(what, (sum.get(what) ?? 0) + n);
  return sum;
}

export const total = (counts: Counts): number => [...counts.values()].reduce((sum, n) => sum + n, 0);

export function sayCounts(counts: Counts): string {
  if (counts.size === 0) return 'none';
  const sorted = [...counts].sort(([a], [b]) => (a < b ? -1 : 1));
  return sorted.map(([what, n]) => `${n} × ${what}`).join(', ');
}
