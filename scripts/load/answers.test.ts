import { createServer } from 'node:http';
import { PmailClient } from '@pmail/client/client.ts';
import { wireError } from '@pmail/core/errors.ts';
import { freePort } from '@pmail/testkit/runtime/runtime.ts';
import { describe, expect, it, test } from 'vitest';
import { Answers, addCounts, isRefused, judgeAnswers, LOST, REFUSED, sayCounts } from './answers.ts';

const fails = (status: number, code: Parameters<typeof wireError>[0]): Response =>
  Response.json(wireError(code, 'req_1'), { status });

/** A service that gives these answers one after the other. */
function answering(...given: (Response | Error)[]): Answers {
  return new Answers(async () => {
    const next = given.shift() ?? new Error('nothing left');
    if (next instanceof Error) throw next;
    return next;
  });
}

const client = (answers: Answers, retries = 0): PmailClient =>
  new PmailClient({ url: 'http://127.0.0.1:1', key: 'k', retries, fetch: answers.fetch, sleep: async () => {} });

const list = (one: PmailClient): Promise<unknown> => one.call('tenants.list').catch(() => null);

describe('what was answered', () => {
  it('is counted also when the client makes it good by a repeat', async () => {
    const answers = answering(fails(500, 'internal_error'), fails(503, 'unavailable'), Response.json({ data: [] }));
    expect(await list(client(answers, 8))).toMatchObject({ body: { data: [] } });
    expect(sayCounts(answers.calm)).toBe('1 × 200, 1 × 500 internal_error, 1 × 503 unavailable');
    expect(judgeAnswers(answers, 1)).toEqual(['1 requests answered with 500 internal_error']);
  });

  it('may be nothing, or an error that is not ours', async () => {
    const answers = answering(new Error('broken'), new Response('<h1>Oops</h1>', { status: 500 }));
    for (let n = 0; n < 2; n++) await list(client(answers));
    expect(Object.fromEntries(answers.calm)).toEqual({ [LOST]: 1, '500 without a code': 1 });
    expect(judgeAnswers(answers, 1)).toEqual(['1 requests answered with 500 without a code']);
  });

  it('is of an outage when it begins, ends or was cut in one', async () => {
    let meanwhile = (): void => {};
    const answers = new Answers(async () => {
      meanwhile();
      return Response.json({});
    });
    await list(client(answers));
    meanwhile = () => answers.outage();
    await list(client(answers));
    meanwhile = () => answers.back();
    await list(client(answers));
    meanwhile = () => {
      answers.outage();
      answers.back();
    };
    await list(client(answers));
    meanwhile = () => {};
    await list(client(answers));
    expect([answers.calm.get('200'), answers.around.get('200')]).toEqual([2, 3]);
    expect(answers.take().around.get('200')).toBe(3);
    expect([...answers.calm, ...answers.around]).toEqual([]);
  });
});

describe('a run', () => {
  const judged = (calm: [string, number][], around: [string, number][] = [], allowed = 0): string[] =>
    judgeAnswers({ calm: new Map(calm), around: new Map(around) }, allowed);

  it('is never clean with a 500, also around a kill', () => {
    expect(judged([], [['500 internal_error', 1]])).toEqual(['1 requests answered with 500 internal_error']);
    expect(judged([['500 internal_error', 1]], [['500 internal_error', 2]], 99)).toEqual([
      '3 requests answered with 500 internal_error',
    ]);
  });

  it('may be put off around a kill, and otherwise only as often as is allowed', () => {
    const later: [string, number][] = [
      ['503 unavailable', 2],
      ['504 timeout', 1],
      ['409 domain_not_ready', 1],
      [LOST, 1],
    ];
    expect(judged([['200', 9]], [...later, [REFUSED, 40]])).toEqual([]);
    expect(judged(later, [], 5)).toEqual([]);
    expect(judged(later, [], 4)).toEqual([expect.stringMatching(/^5 requests put off, of 4 that may be: /)]);
  });

  it('may be refused for good, or asked to wait for its own key or thread', () => {
    expect(
      judged([
        ['409 request_in_progress', 9],
        ['409 thread_busy', 9],
        ['409 idempotency_conflict', 9],
      ]),
    ).toEqual([]);
  });

  it('finds somebody there while nothing was killed', () => {
    expect(judged([[REFUSED, 1]], [], 99)).toEqual(['1 requests found nobody there, and nothing was killed']);
  });
});

test('a closed port is told from a connection that breaks', async () => {
  const error = await fetch(`http://127.0.0.1:${await freePort()}`).catch((thrown: unknown) => thrown);
  expect(isRefused(error)).toBe(true);
  const server = createServer((request) => request.socket.destroy());
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port));
  });
  const broken = await fetch(`http://127.0.0.1:${port}`).catch((thrown: unknown) => thrown);
  server.close();
  expect(broken).toBeInstanceOf(Error);
  expect(isRefused(broken)).toBe(false);
});

test('counts add up', () => {
  expect(Object.fromEntries(addCounts([new Map([['200', 1]]), new Map([['200', 2]])]))).toEqual({ 200: 3 });
  expect(sayCounts(new Map())).toBe('none');
});
