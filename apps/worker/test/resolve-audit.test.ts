import { env } from 'cloudflare:workers';
import { afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { IdentityMailbox } from '../src/index.ts';
import { FaultLab } from './faults.ts';
import { accepted, letter, until } from './mail.ts';
import { keepStorage } from './storage.ts';
import { audited, call, refusal, send, sql } from './support.ts';

/** A person's word about an uncertain send stands in the log, whatever part of the service fails meanwhile. */

keepStorage();

let own: FaultLab;
/** An uncertain message of each test, sent ahead because it takes its time. */
const doubtful: { from: string; id: string }[] = [];

beforeAll(async () => {
  own = await FaultLab.make();
  for (let n = 0; n < 2; n++) {
    const from = await own.somebody();
    doubtful.push({ from, id: (await accepted(own.lab.key, from, letter({ to: ['timeout@simulator.invalid'] }))).id });
  }
});

beforeEach(() => {
  vi.spyOn(console, 'error').mockReturnValue();
});

afterEach(() => {
  vi.restoreAllMocks();
});

async function uncertain() {
  const one = doubtful.pop();
  if (one === undefined) throw new Error('no message left');
  const { from, id } = one;
  await until(async () => expect(await own.status(from, id)).toBe('uncertain'));
  return { id, from, input: { params: { identity_id: from, message_id: id }, body: { outcome: 'sent' } } };
}

const AWAY = new Error('D1_ERROR: Network connection lost.');

function logAway(): void {
  const prepare = env.DB.prepare.bind(env.DB);
  vi.spyOn(env.DB, 'prepare').mockImplementation((query) => {
    if (query.includes('audit_log')) throw AWAY;
    return prepare(query);
  });
}

test('without its entry nothing is settled, and the repeat does both', async () => {
  const { from, id, input } = await uncertain();
  logAway();
  expect(await refusal(own.lab.key, 'messages.resolve', input)).toEqual({ code: 'unavailable', step: 'directory' });
  vi.restoreAllMocks();
  expect([await own.status(from, id), await audited(id)]).toEqual(['uncertain', []]);
  expect((await call(own.lab.key, 'messages.resolve', input)).status).toBe('submitted');
  expect(await audited(id)).toEqual(['message.resolve']);
});

test('what was settled is on record although the directory went away right after', async () => {
  const { from, id, input } = await uncertain();
  const resolve = Reflect.get<IdentityMailbox, 'resolve'>(IdentityMailbox.prototype, 'resolve');
  vi.spyOn(IdentityMailbox.prototype, 'resolve').mockImplementation(async function (this: IdentityMailbox, ...args) {
    const settled = await resolve.apply(this, args);
    vi.spyOn(env.DB, 'batch').mockRejectedValue(AWAY);
    return settled;
  });
  await send(own.lab.key, 'messages.resolve', input);
  vi.restoreAllMocks();
  expect([await own.status(from, id), await audited(id)]).toEqual(['submitted', ['message.resolve']]);
  const [entry] = await sql('SELECT details_json FROM audit_log WHERE target_id = ?', id);
  expect(entry).toEqual({ details_json: '{"outcome":"sent"}' });
});

test('a message that is not there leaves nothing in the log', async () => {
  const from = await own.somebody();
  const message_id = 'msg_01JABCDEFGHJKMNPQRSTVWXYZ0';
  const input = { params: { identity_id: from, message_id }, body: { outcome: 'sent' } };
  expect(await refusal(own.lab.key, 'messages.resolve', input)).toEqual({ code: 'message_not_found' });
  expect(await audited(message_id)).toEqual([]);
});
