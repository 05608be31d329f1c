import type { Address } from '@pmail/core/address/address.ts';
import {
  type MailTransport,
  type OutgoingMessage,
  PROVIDERS,
  type TransportResult,
} from '@pmail/core/transport/types.ts';
import { describe, expect, test } from 'vitest';

/**
 * What every transport must hold to, whatever provider is behind it. Its result is the only thing the service knows
 * about a call, so above all it must be true: what it calls refused was not taken, and what may have been taken it does
 * not call refused.
 */

/** How the other side behaves. */
export type Situation =
  /** Takes the message for everyone. */
  | 'accepts'
  /** Refuses it for good. */
  | 'refuses'
  /** Refuses it for now. */
  | 'puts_off'
  /** Takes it for some, and refuses the others for good or for now. */
  | 'takes_some'
  /** Takes it, and its answer is lost. */
  | 'loses_answer'
  /** Answers something that says neither yes nor no. */
  | 'unclear'
  /** Never answers. */
  | 'silent'
  /** It is not the other side: something of our own fails on the way. */
  | 'fails_here';

/** One message the other side has taken. */
export interface TakenMail {
  recipients: Address[];
  mime: Uint8Array | null;
}

export interface Bench {
  transport: MailTransport;
  message: OutgoingMessage;
  /** What the other side has really taken, by its own account. */
  taken: () => TakenMail[];
}

/** Sets a situation up afresh, or answers null when this transport cannot be in it. */
export type MakeBench = (situation: Situation) => Bench | null;

/** Long enough for a transport in memory or on this machine, short enough to wait for. */
const DEADLINE_MS = 300;

export function transportContract(name: string, make: MakeBench): void {
  describe(`${name} keeps the contract of transports: when the other side`, () => {
    const situation = (which: Situation, what: string, run: (bench: Bench) => Promise<void>): void => {
      const bench = make(which);
      if (bench !== null) test(what, () => run(bench));
    };

    situation('accepts', 'accepts, the message is accepted for everyone', async (bench) => {
      const result = await call(bench);
      expect(result).toMatchObject({ kind: 'accepted', refused: [], deferred: [] });
      expect(bench.taken()).toHaveLength(1);
      expect(bench.taken()[0]?.recipients.toSorted()).toEqual(recipientsOf(bench.message).toSorted());
    });

    situation('accepts', 'accepts, it gets the bytes that were accepted from the caller', async (bench) => {
      await call(bench);
      for (const { mime } of bench.taken()) if (mime !== null) expect(mime).toEqual(bench.message.mime);
    });

    situation('refuses', 'refuses, nothing was sent and it says why', async (bench) => {
      const result = await call(bench);
      expect(['rejected', 'suppressed']).toContain(result.kind);
      if (result.kind === 'rejected') expect(result.code + result.detail).not.toBe('');
      expect(bench.taken()).toEqual([]);
    });

    situation('puts_off', 'refuses for now, nothing was sent and it may be tried again', async (bench) => {
      const result = await call(bench);
      expect(result.kind).toBe('retry_later');
      expect(bench.taken()).toEqual([]);
    });

    situation('takes_some', 'takes some, it says exactly who is left', async (bench) => {
      const result = await call(bench);
      if (result.kind !== 'accepted') throw new Error(`${result.kind} although some were taken`);
      expect(result.refused.length + result.deferred.length).toBeGreaterThan(0);
    });

    situation('loses_answer', 'takes it and the answer is lost, nobody says that it was not sent', async (bench) => {
      const result = await callOrThrow(bench);
      expect(result?.kind ?? 'unknown').toBe('unknown');
    });

    situation('unclear', 'answers neither yes nor no, it is unknown', async (bench) => {
      expect((await call(bench)).kind).toBe('unknown');
    });

    situation('silent', 'never answers, the deadline ends the call and it is unknown', async (bench) => {
      const started = Date.now();
      expect((await call(bench)).kind).toBe('unknown');
      expect(Date.now() - started).toBeLessThan(DEADLINE_MS + 2_000);
    });

    situation('fails_here', 'is not to blame, what may have been taken is not called refused', async (bench) => {
      const result = await callOrThrow(bench);
      if (result !== null && result.kind !== 'unknown') expectTrue(result, bench);
    });
  });
}

function recipientsOf({ to, cc, bcc }: OutgoingMessage): Address[] {
  return [...to, ...cc, ...bcc];
}

/** A call in a situation of the provider's making, which never throws. */
async function call(bench: Bench): Promise<TransportResult> {
  expect(PROVIDERS).toContain(bench.transport.provider);
  const before = structuredClone(bench.message);
  const result = await bench.transport.send(bench.message, DEADLINE_MS);
  expect(bench.message, 'the message was changed').toEqual(before);
  expectTrue(result, bench);
  return result;
}

/** A call that may also lose track of itself; null when it threw. */
async function callOrThrow(bench: Bench): Promise<TransportResult | null> {
  try {
    return await bench.transport.send(bench.message, DEADLINE_MS);
  } catch {
    return null;
  }
}

/** Holds a result against what was really taken, and against its own shape. */
function expectTrue(result: TransportResult, bench: Bench): void {
  // It travels between objects and is kept as JSON.
  expect(JSON.parse(JSON.stringify(result)), 'does not survive JSON').toEqual(result);
  const recipients = recipientsOf(bench.message);
  const taken = bench.taken().flatMap((mail) => mail.recipients);
  expect(new Set(taken).size, 'somebody got it twice').toBe(taken.length);
  const refused = 'refused' in result ? result.refused.map(({ address }) => address) : [];
  const deferred = result.kind === 'accepted' ? result.deferred : [];
  const left = [...refused, ...deferred];
  expect(new Set(left).size, 'somebody is left for two reasons').toBe(left.length);
  expect(
    left.filter((address) => !recipients.includes(address)),
    'somebody is left who was not asked for',
  ).toEqual([]);
  expect(
    left.filter((address) => taken.includes(address)),
    'somebody is called refused who was taken',
  ).toEqual([]);
  switch (result.kind) {
    case 'accepted':
      expect(taken.toSorted()).toEqual(recipients.filter((address) => !left.includes(address)).toSorted());
      expect(taken.length, 'accepted for nobody').toBeGreaterThan(0);
      if (result.provider_message_id !== null) expect(result.provider_message_id).not.toBe('');
      if (result.rfc_message_id !== null) expect(result.rfc_message_id).not.toMatch(/[<>\s]/);
      expectReportsOfTestProviders(result, bench, taken);
      return;
    case 'unknown':
      return;
    case 'rejected':
    case 'suppressed':
    case 'retry_later':
      expect(taken, `${result.kind} although it was taken`).toEqual([]);
  }
}

/** Only test providers tell the service what they will report, and only about those they took. */
function expectReportsOfTestProviders(
  { scheduled, copies }: Extract<TransportResult, { kind: 'accepted' }>,
  { transport }: Bench,
  taken: Address[],
): void {
  const testProvider = transport.provider === 'simulator' || transport.provider === 'loopback';
  if (!testProvider) expect([...scheduled, ...copies]).toEqual([]);
  const about = [...scheduled.map(({ recipient }) => recipient), ...copies.map(({ envelope_to }) => envelope_to)];
  expect(about.filter((address) => !taken.includes(address))).toEqual([]);
  const names = scheduled.map(({ recipient, n }) => `${n} of ${recipient}`);
  expect(new Set(names).size, 'two reports with one name').toBe(names.length);
}
