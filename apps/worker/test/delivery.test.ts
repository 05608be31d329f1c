import { runDurableObjectAlarm } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import type { IdentityId, MessageId, TenantId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { newId } from '../src/ports/random.ts';
import {
  accepted,
  atRest,
  inMailbox,
  keyed,
  type Lab,
  letter,
  mailboxObject,
  makeLab,
  person,
  quotaRemote,
  until,
  waiting,
} from './mail.ts';
import { keepStorage } from './storage.ts';
import { audited, call, deploy, eventTypes, refusal, send, sql, statuses } from './support.ts';

/** What becomes of accepted messages: the real queues, consumers and alarms bring each to its end. */

keepStorage();

const SCRIPTS = ['delivered', 'anything', 'bounce', 'softbounce', 'complaint', 'deferred', 'reject', 'timeout'];

interface OnItsWay {
  from: string;
  id: string;
}

let root: string;
let lab: Lab;
/** Sent ahead of the tests that look at them, because the queues take their time. */
let simulated: string;
const scripted = new Map<string, string>();
const doubtful: OnItsWay[] = [];
let late: OnItsWay;
let mixed: OnItsWay;
let local: OnItsWay;
let vain: OnItsWay;
let stopped: OnItsWay;

const FILE = { filename: 'plan.txt', content_type: 'text/plain', content_base64: btoa('the plan') };

async function post(changes: Parameters<typeof letter>[0], from?: string): Promise<OnItsWay> {
  const sender = from ?? (await somebody());
  return { from: sender, id: (await accepted(lab.key, sender, letter(changes))).id };
}

/** Queues a waiting message again, as an alarm would. */
async function requeue({ from, id }: OnItsWay): Promise<void> {
  const [row] = await sql('SELECT tenant_id FROM identities WHERE id = ?', from);
  const request_id = newId('req', Date.now());
  const owner = { tenant_id: row?.['tenant_id'] as TenantId, identity_id: from as IdentityId };
  await env.Q_OUTBOUND.send({ v: 1, kind: 'send', ...owner, message_id: id as MessageId, request_id });
}

/** A message to an address that retires before it leaves, and one whose sender is paused before. */
async function overtaken(): Promise<void> {
  const [leaver, pauser] = [await somebody(), await somebody()];
  const [address] = await sql('SELECT address FROM addresses WHERE identity_id = ?', leaver);
  const body = letter({ to: [String(address?.['address'])] });
  vain = { from: lab.bob, id: (await waiting(lab.key, lab.bob, body)).id };
  await sql("UPDATE addresses SET status = 'retired' WHERE identity_id = ?", leaver);
  stopped = { from: pauser, id: (await waiting(lab.key, pauser)).id };
  await call(lab.key, 'identities.update', { params: { identity_id: pauser }, body: { status: 'paused' } });
  await Promise.all([requeue(vain), requeue(stopped)]);
}

beforeAll(async () => {
  root = await deploy();
  lab = await makeLab(root);
  simulated = await somebody();
  for (const script of SCRIPTS) {
    const { id } = await accepted(lab.key, simulated, letter({ to: [`${script}@simulator.invalid`] }));
    scripted.set(script, id);
  }
  for (let n = 0; n < 3; n++) doubtful.push(await post({ to: ['timeout@simulator.invalid'] }));
  late = await post({ to: ['deferred@simulator.invalid'] });
  mixed = await post({ to: ['a@simulator.invalid'], bcc: ['deferred@simulator.invalid'] });
  const both = { to: ['bob.lab+news@agents.example'], bcc: ['ann.lab@agents.example'], attachments: [FILE] };
  local = await post(both, lab.ann);
  await overtaken();
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

let people = 0;
const somebody = () => person(root, lab.tenant, `p${++people}`);
const get = (identity_id: string, message_id: string, key: string = lab.key) =>
  call(key, 'messages.get', { params: { identity_id, message_id } });

/** Waits until a message has a status, and gives it. */
const ends = (from: string, id: string, status: string, key: string = lab.key) =>
  until(async () => {
    const message = await get(from, id, key);
    expect(message.status).toBe(status);
    return message;
  });

/** A message whose transport gave no answer. */
async function uncertain() {
  const { from, id } = doubtful.pop() ?? { from: '', id: '' };
  return { from, message: await ends(from, id, 'uncertain') };
}

describe('the simulator', () => {
  test('brings each script to its end', async () => {
    const from = simulated;
    const read = async (script: string, status: string) => {
      const message = await ends(from, scripted.get(script) ?? '', status);
      const [delivery] = message.deliveries ?? [];
      return { message, delivery };
    };
    for (const script of ['delivered', 'anything']) {
      const { message, delivery } = await read(script, 'delivered');
      expect(message).toMatchObject({
        provider: 'simulator',
        provider_message_id: `test-${message.id.slice(4).toLowerCase()}`,
        rfc_message_id: `${message.id.slice(4).toLowerCase()}@agents.example`,
        status_reason: null,
      });
      expect(delivery).toMatchObject({ status: 'delivered', smtp_code: '250', enhanced_code: '2.0.0' });
    }
    expect((await read('bounce', 'bounced')).delivery).toMatchObject({
      bounce_type: 'hard',
      smtp_code: '550',
      enhanced_code: '5.1.1',
    });
    expect((await read('softbounce', 'bounced')).delivery).toMatchObject({ bounce_type: 'soft', smtp_code: '452' });
    expect((await read('complaint', 'complained')).delivery).toMatchObject({ status: 'complained' });
    expect((await read('deferred', 'deferred')).delivery).toMatchObject({ status: 'deferred', smtp_code: '451' });
    expect((await read('reject', 'rejected')).message).toMatchObject({ status_reason: 'provider_validation' });
    expect((await read('timeout', 'uncertain')).message).toMatchObject({ status_reason: 'transport_timeout' });
    // A hard bounce and a complaint keep the address from being written to again.
    const again = await accepted(
      lab.key,
      from,
      letter({ to: ['bounce@simulator.invalid', 'complaint@simulator.invalid'] }),
    );
    expect(again.deliveries).toMatchObject([
      { status: 'suppressed', smtp_response: 'policy: suppression (hard_bounce)' },
      { status: 'suppressed', smtp_response: 'policy: suppression (complaint)' },
    ]);
    await atRest(from);
    expect(new Set(await eventTypes(from))).toEqual(
      new Set([
        'identity.created',
        'message.sent',
        'message.delivered',
        'message.bounced',
        'message.deferred',
        'message.complained',
        'message.rejected',
        'message.uncertain',
        'message.suppressed',
        'suppression.created',
      ]),
    );
  });

  test('takes a message for several recipients in one call, each with its own fate', async () => {
    const { from, id } = mixed;
    const message = await until(async () => {
      const now = await get(from, id);
      expect(now.deliveries?.map(({ status }) => status)).toEqual(['delivered', 'deferred']);
      return now;
    });
    expect(message.status).toBe('deferred');
    expect(await inMailbox(from, 'SELECT COUNT(*) AS n FROM attempts')).toEqual([{ n: 1 }]);
  });
});

describe('mail to each other', () => {
  test('arrives in the other mailbox, once and unchanged', async () => {
    const { id } = local;
    const sent = await ends(lab.ann, id, 'delivered');
    expect(sent).toMatchObject({
      provider: 'loopback',
      deliveries: [{ status: 'delivered' }, { status: 'delivered' }],
    });
    const inbox = { params: { identity_id: lab.bob }, query: { direction: 'inbound' } };
    const { data } = await call(lab.key, 'messages.list', inbox);
    expect(data).toHaveLength(1);
    const [copy] = data;
    expect(copy).toMatchObject({
      direction: 'inbound',
      from: { address: 'ann.lab@agents.example', name: 'ann' },
      to: [{ address: 'bob.lab+news@agents.example', name: '' }],
      bcc: [],
      delivered_to: 'bob.lab@agents.example',
      subject: 'Hello',
      extracted_text: expect.stringMatching(/^Hello there\s*$/) as string,
      rfc_message_id: sent.rfc_message_id,
      flags: ['loopback'],
      trust: { verdict: 'pass' },
    });
    const raw = async (identity_id: string, message_id: string) =>
      (await send(lab.key, 'messages.raw.get', { params: { identity_id, message_id } })).text();
    expect(await raw(lab.bob, copy?.id ?? '')).toBe(await raw(lab.ann, id));
    const params = { identity_id: lab.bob, message_id: copy?.id ?? '', attachment_id: copy?.attachments[0]?.id ?? '' };
    expect(await (await send(lab.key, 'messages.attachments.get', { params })).text()).toBe('the plan');
    // To herself it is a second message of the same thread, hidden in nothing but her own name.
    const own = await call(lab.key, 'messages.list', {
      params: { identity_id: lab.ann },
      query: { thread_id: sent.thread_id },
    });
    expect(own.data.map(({ direction, flags }) => [direction, flags])).toEqual([
      ['inbound', ['bcc', 'loopback']],
      ['outbound', []],
    ]);
  });

  test('to an address that retired in between bounces', async () => {
    const message = await ends(vain.from, vain.id, 'rejected');
    expect(message.deliveries).toMatchObject([{ status: 'rejected', smtp_code: '550', enhanced_code: '5.1.1' }]);
  });
});

describe('cancel', () => {
  const cancel = (from: string, message_id: string, headers = {}, key: string = lab.key) =>
    send(key, 'messages.cancel', { params: { identity_id: from, message_id }, headers });

  test('takes a waiting message back for good, and gives its allowance back', async () => {
    const purse = await makeLab(root, 'purse');
    const from = purse.ann;
    const { id } = await waiting(purse.key, from);
    const { stub, call: context } = await quotaRemote(purse.tenant);
    const held = async () => (await stub.usage(context)).features.find(({ feature }) => feature === 'sends')?.held ?? 0;
    const before = await held();
    const response = await cancel(from, id, {}, purse.key);
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ id, status: 'canceled', deliveries: [{ status: 'queued' }] });
    await atRest(from);
    expect(await held()).toBe(before - 1);
    expect(await eventTypes(from)).toEqual(['identity.created', 'message.canceled']);
    const params = { identity_id: from, message_id: id };
    expect(await refusal(purse.key, 'messages.cancel', { params })).toEqual({
      code: 'not_cancelable',
      status: 'canceled',
    });
    // A pointer that comes late finds nothing to do.
    await requeue({ from, id });
    const next = await accepted(purse.key, from, letter({ to: ['reject@simulator.invalid'] }));
    await ends(from, next.id, 'rejected', purse.key);
    expect((await get(from, id, purse.key)).status).toBe('canceled');
    expect(await inMailbox(from, 'SELECT COUNT(*) AS n FROM attempts')).toEqual([{ n: 1 }]);
  });

  test('repeated with its key answers as the first time', async () => {
    const from = await somebody();
    const { id } = await waiting(lab.key, from);
    const first = await cancel(from, id, keyed('c'));
    const again = await cancel(from, id, keyed('c'));
    expect([first.status, again.status]).toEqual([200, 200]);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(await again.json()).toEqual(await first.json());
  });

  test('many times at once succeeds once', async () => {
    const from = await somebody();
    const { id } = await waiting(lab.key, from);
    const answers = await Promise.all(Array.from({ length: 5 }, () => cancel(from, id)));
    expect(statuses(answers)).toEqual([200, 409, 409, 409, 409]);
  });

  test('comes too late for a message that was handed over', async () => {
    const { from, id } = late;
    await until(async () => expect((await get(from, id)).status).not.toBe('queued'));
    const answer = await refusal(lab.key, 'messages.cancel', { params: { identity_id: from, message_id: id } });
    expect(answer.code).toBe('not_cancelable');
    expect(['submitted', 'deferred']).toContain(answer['status']);
  });
});

describe('resolve', () => {
  test.each([
    ['sent', 'submitted', 'submitted', null, 'message.sent'],
    ['not_sent', 'failed', 'failed', 'resolved_not_sent', 'message.failed'],
  ] as const)('%s ends the doubt as %s, on record', async (outcome, status, delivery, reason, event) => {
    const { from, message } = await uncertain();
    const params = { identity_id: from, message_id: message.id };
    const answer = await call(lab.key, 'messages.resolve', { params, body: { outcome } });
    expect(answer).toMatchObject({ id: message.id, status, deliveries: [{ status: delivery }] });
    if (reason !== null) expect(answer.status_reason).toBe(reason);
    expect(await get(from, message.id)).toEqual(answer);
    expect((await eventTypes(from)).slice(-2)).toEqual(['message.uncertain', event]);
    const [entry] = await sql('SELECT * FROM audit_log WHERE target_id = ?', message.id);
    const { key_id } = await call(lab.key, 'me.get');
    expect(entry).toMatchObject({
      action: 'message.resolve',
      target_type: 'message',
      tenant_id: lab.tenant,
      actor_key_id: key_id,
      details_json: JSON.stringify({ outcome }),
    });
    expect(entry?.['request_id']).toMatch(/^req_/);
    const again = await refusal(lab.key, 'messages.resolve', { params, body: { outcome } });
    expect(again).toEqual({ code: 'not_uncertain', status });
    expect(await audited(message.id)).toEqual(['message.resolve', 'message.resolve', 'message.resolve_refused']);
    const entries = await sql(
      'SELECT id, action, details_json FROM audit_log WHERE target_id = ? ORDER BY id',
      message.id,
    );
    expect(JSON.parse(String(entries[2]?.['details_json']))).toEqual({
      outcome,
      code: 'not_uncertain',
      refused: entries[1]?.['id'],
    });
  });
});

test('a message that waits when its sender is paused is taken back by the service, on record', async () => {
  const { from, id } = stopped;
  await ends(from, id, 'canceled');
  await until(async () => expect(await audited(id)).toEqual(['message.cancel']));
  const [entry] = await sql('SELECT details_json, actor_key_id FROM audit_log WHERE target_id = ?', id);
  expect(entry).toEqual({ details_json: '{"reason":"identity_paused","actor":"system"}', actor_key_id: null });
});

// The clock is moved only here, when nothing is on its way any more.
describe('later', () => {
  test('the alarm queues a message again that a queue lost', async () => {
    const from = await somebody();
    const { id } = await waiting(lab.key, from, letter({ to: ['reject@simulator.invalid'] }));
    expect((await get(from, id)).status).toBe('queued');
    vi.setSystemTime(Date.now() + LIMITS.dispatch_after_ms + 1);
    await runDurableObjectAlarm(await mailboxObject(from));
    vi.useRealTimers();
    await ends(from, id, 'rejected');
    expect(await inMailbox(from, 'SELECT COUNT(*) AS n FROM attempts')).toEqual([{ n: 1 }]);
  });

  test('no alarm and no queue ends the doubt about a message', async () => {
    const { from, message } = await uncertain();
    vi.setSystemTime(Date.now() + 3_600_000);
    await runDurableObjectAlarm(await mailboxObject(from));
    vi.useRealTimers();
    expect((await get(from, message.id)).status).toBe('uncertain');
    expect(await inMailbox(from, 'SELECT COUNT(*) AS n FROM attempts')).toEqual([{ n: 1 }]);
  });
});
