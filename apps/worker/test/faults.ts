import { createExecutionContext, createMessageBatch, getQueueResult } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import type { IdentityId, MessageId } from '@pmail/core/ids.ts';
import { routeIdentity } from '@pmail/engine/directory/routing.ts';
import { vi } from 'vitest';
import type { Env } from '../src/env.ts';
import worker, { IdentityMailbox } from '../src/index.ts';
import { newId } from '../src/ports/random.ts';
import { inMailbox, type Lab, makeLab, person } from './mail.ts';
import { call, db, deploy } from './support.ts';

/** What the tests of storage faults share: people, a consumer to drive by hand, and errors as the platform makes them. */

/** What the platform says of itself beside its message. */
export const PLATFORM_FAILURES: [string, { retryable?: boolean; overloaded?: boolean; message?: string }][] = [
  ['that may be tried again', { retryable: true }],
  ['that is overloaded', { overloaded: true, retryable: false }],
  ['that is overloaded and may be tried again', { overloaded: true, retryable: true }],
  ['that names the network', { message: 'Network connection lost.' }],
];

export function platformError(facts: object): Error {
  return Object.assign(new Error('something broke'), { remote: true }, facts);
}

export class FaultLab {
  readonly lab: Lab;
  readonly #root: string;
  #made = 0;

  private constructor(root: string, lab: Lab) {
    this.#root = root;
    this.lab = lab;
  }

  static async make(): Promise<FaultLab> {
    const root = await deploy();
    return new FaultLab(root, await makeLab(root));
  }

  somebody(): Promise<IdentityId> {
    return person(this.#root, this.lab.tenant, `fault${++this.#made}`);
  }

  async status(from: string, id: string): Promise<string> {
    const params = { identity_id: from, message_id: id };
    return (await call(this.lab.key, 'messages.get', { params })).status;
  }
}

export function outboundOf(from: string) {
  return inMailbox(from, "SELECT id, status FROM messages WHERE direction = 'outbound'");
}

/**
 * The simulated provider's own log, which stands outside of every object. Returns the settings of a deployment that has
 * one, and the messages that it took so far.
 */
export function providerLog(): { to: Env; taken: string[] } {
  const url = 'http://provider.invalid/taken';
  const taken: string[] = [];
  const outside = globalThis.fetch.bind(globalThis);
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    if (input !== url) return outside(input, init);
    const { message_id: id } = await new Response(init?.body).json<{ message_id: string }>();
    taken.push(id);
    return new Response('ok');
  });
  return { to: { ...env, PM_PROVIDER_LOG_URL: url }, taken };
}

/** Lets the consumer have one pointer of the send queue. */
export async function consume(from: string, id: string, to: Env = env) {
  const route = await routeIdentity(db, from as IdentityId);
  if (route === undefined) throw new Error(`no identity ${from}`);
  const { tenant_id, identity_id } = route;
  const request_id = newId('req', Date.now());
  const body = { v: 1, kind: 'send', tenant_id, identity_id, message_id: id as MessageId, request_id };
  const batch = createMessageBatch('pm-outbound', [{ id: request_id, timestamp: new Date(), attempts: 1, body }]);
  await worker.queue(batch, to);
  return getQueueResult(batch, createExecutionContext());
}

type Method = 'submit' | 'beginTransport' | 'recordOutcome' | 'cancel';

/**
 * The object dies the next time that this method is called, before it does anything or when all of it is on disk.
 *
 * @returns how often the method was called
 */
export function diesOnce(method: Method, when: 'before' | 'after'): { calls: () => number } {
  const own = Reflect.get<IdentityMailbox, Method>(IdentityMailbox.prototype, method) as (
    ...args: unknown[]
  ) => Promise<unknown>;
  let calls = 0;
  vi.spyOn(IdentityMailbox.prototype, method).mockImplementation(async function (
    this: IdentityMailbox,
    ...args: unknown[]
  ) {
    const { ctx } = this as unknown as { ctx: DurableObjectState };
    calls++;
    if (calls === 1 && when === 'before') ctx.abort('killed');
    const answer = await own.apply(this, args);
    if (calls === 1) {
      await ctx.storage.sync();
      ctx.abort('killed');
    }
    return answer;
  } as never);
  return { calls: () => calls };
}
