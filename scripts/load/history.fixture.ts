import { ApiError, ConnectionError } from '@pmail/client/client.ts';
import { ERRORS, type ErrorCode, wireError } from '@pmail/core/errors.ts';
import type { MessageResource } from '@pmail/core/message/resource.ts';
import { ProviderLog, type Taken } from '@pmail/testkit/provider-log.ts';
import type { Place } from './place.ts';
import { newSend, type Send } from './sends.ts';

/** Histories made up by a test, so that what the checkers look for can be put in front of them. */

const SENDER = { id: 'idn_sender', address: 'sender@example.com' };

/** A service that answers every call with what `answer` says or throws. */
export function madeUpPlace(answer: (call: string) => unknown = () => ({ data: [], next_cursor: null })): Place {
  const client = { call: async (call: string) => ({ body: answer(call) }) };
  const nobody = { id: 'idn_nobody', address: 'nobody@example.com' };
  return { client: client as never, key: '', tenant: '', sender: SENDER, desk: nobody, garage: nobody };
}

/** The nth key of a history, answered with each of these ids. */
export function madeUpSend(n: number, ...ids: string[]): Send {
  const body = { to: ['jo@example.org'], subject: `Send ${n}`, text: 'Hello' };
  const send = newSend(madeUpPlace(), `send ${n}`, `key ${n}`, body);
  send.answers.push(...ids.map((id) => madeUpMessage(id)));
  return send;
}

export function madeUpMessage(id: string, status = 'delivered', delivery = status): MessageResource {
  const deliveries = [{ address: 'jo@example.org', status: delivery }];
  return { id, status, deliveries, rfc_message_id: `${id}@example.com`, provider_message_id: 'p' } as never;
}

export function taken(...ids: string[]): Taken[] {
  return ids.map((message_id, at) => ({ at, message_id, recipients: ['jo@example.org'], bytes: 100 }));
}

/** A provider whose log says so. */
export async function madeUpProvider(...ids: string[]): Promise<ProviderLog> {
  const provider = await ProviderLog.start();
  await provider.stop();
  provider.taken.push(...taken(...ids));
  return provider;
}

export function apiError(code: ErrorCode, details: Record<string, unknown> = {}): ApiError {
  return new ApiError(ERRORS[code].status, wireError(code, 'req_1', details), null);
}

export const lostAnswer = (): ConnectionError => new ConnectionError('no_answer', 'the connection broke');

/** As the platform's fetch tells it, inside the client's own error. */
export function refusedConnection(): ConnectionError {
  const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { code: 'ECONNREFUSED' });
  return new ConnectionError('no_answer', 'fetch failed', { cause: new TypeError('fetch failed', { cause: refused }) });
}
