// The API is a server of Node's, which the transport itself must not know.
// oxlint-disable-next-line typescript/triple-slash-reference
/// <reference types="node" />
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { outgoing } from './binding.fixture.ts';
import { suppressionLookup } from './suppressions.ts';

/** The REST API of an account on this machine, asked over real connections. */

const ACCOUNT = { id: '023e105f4ecef8ad9ca31a8372d0c353', token: 'secret-token' };
const SENDER = 'desk.acme@agents.example';

let server: Server;
let base: string;
let asked: { path: string; authorization: string | undefined }[];
let answer: (email: string) => { status?: number; body: string } | 'hang' | 'drop';
let open: number;
let most: number;

beforeEach(async () => {
  asked = [];
  open = 0;
  most = 0;
  answer = () => ({ body: JSON.stringify({ success: true, errors: [], messages: [], result: [] }) });
  server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://api');
    asked.push({ path: url.pathname, authorization: request.headers.authorization });
    most = Math.max(most, ++open);
    const reply = answer(url.searchParams.get('email') ?? '');
    if (reply === 'hang') return;
    if (reply === 'drop') {
      open--;
      request.socket.destroy();
      return;
    }
    setTimeout(() => {
      open--;
      response.writeHead(reply.status ?? 200, { 'content-type': 'application/json' }).end(reply.body);
    }, 2);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const listed = (email: string, changes: object = {}): { body: string } => ({
  body: JSON.stringify({
    success: true,
    errors: [],
    messages: [],
    result: [
      {
        id: 'x',
        email,
        reason: 'complaint',
        created_at: '2026-11-29T08:00:00Z',
        expires_at: null,
        read_only: true,
        ...changes,
      },
    ],
  }),
});
const nothing = { body: JSON.stringify({ success: true, result: [] }) };

const look = (to: string[], fetchUrl = fetch as Parameters<typeof suppressionLookup>[0]['fetch']) =>
  suppressionLookup(
    { base, fetch: fetchUrl },
    ACCOUNT,
  )(outgoing({ from: { address: SENDER, name: '' }, to, cc: [], bcc: [] }));

describe('the list of an account', () => {
  test('is asked about each recipient, with the token, and tells whom it names', async () => {
    answer = (email) => (email === 'kim@example.org' ? listed(email) : nothing);
    expect(await look(['jo@example.net', 'kim@example.org'])).toEqual([
      { address: 'kim@example.org', reason: 'complaint', expires_at: null },
    ]);
    const path = `/client/v4/accounts/${ACCOUNT.id}/email/sending/suppressions`;
    expect(asked).toEqual([
      { path, authorization: 'Bearer secret-token' },
      { path, authorization: 'Bearer secret-token' },
    ]);
  });

  test('is not asked about the hidden copy', async () => {
    await suppressionLookup({ base, fetch }, ACCOUNT)(outgoing());
    expect(asked).toHaveLength(3);
  });

  test('is asked over few connections at a time, about all of them', async () => {
    answer = (email) => listed(email);
    const people = Array.from({ length: 49 }, (_, index) => `r${index}@example.net`);
    const found = await look(people);
    expect(found.map(({ address }) => address).toSorted()).toEqual(people.toSorted());
    expect(most).toBeLessThanOrEqual(4);
  });

  test.each([
    ['refuses the token', { status: 403, body: '{"success":false,"errors":[{"code":10000}]}' }],
    ['is too often asked', { status: 429, body: '{"success":false}' }],
    ['fails', { status: 500, body: 'oops' }],
    ['answers no JSON', { body: '<html></html>' }],
    ['answers too much', { body: ' '.repeat(70_000) }],
    ['leads elsewhere', { status: 302, body: '' }],
    ['breaks the connection', 'drop'],
  ] as const)('that %s tells nothing, and what it told of others counts', async (_what, reply) => {
    answer = (email) => (email === 'kim@example.org' ? listed(email) : reply);
    expect(await look(['jo@example.net', 'kim@example.org'])).toMatchObject([{ address: 'kim@example.org' }]);
    expect(await look(['jo@example.net'])).toEqual([]);
  });

  test('that never answers is given up after a while, each question and all of them', async () => {
    vi.useFakeTimers();
    try {
      const people = Array.from({ length: 49 }, (_, index) => `r${index}@example.net`);
      let stopped = 0;
      const looked = look(people, (_url, { signal }) => {
        signal.addEventListener('abort', () => stopped++);
        return new Promise(() => undefined);
      });
      await vi.advanceTimersByTimeAsync(20_000);
      expect(await looked).toEqual([]);
      // Four at a time, five seconds each.
      expect(stopped).toBeGreaterThanOrEqual(12);
      expect(stopped).toBeLessThanOrEqual(20);
    } finally {
      vi.useRealTimers();
    }
  });
});
