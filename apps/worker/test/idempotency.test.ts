import { env } from 'cloudflare:workers';
import { LIMITS } from '@pmail/core/limits.ts';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  accepted,
  atRest,
  inMailbox,
  keyed,
  type Lab,
  letter,
  makeLab,
  person,
  post,
  quotaRemote,
  type Sent,
  until,
  watchQueues,
} from './mail.ts';
import { keepStorage } from './storage.ts';
import { call, deploy, makeKey, refusal, sendBytes, sql, statuses } from './support.ts';

/** One Idempotency-Key makes at most one email and gives one answer, whatever happens in between. */

keepStorage();

let root: string;
let lab: Lab;

beforeAll(async () => {
  root = await deploy();
  lab = await makeLab(root);
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

let people = 0;
const somebody = () => person(root, lab.tenant, `p${++people}`);

/** Sends exactly this text as the body. */
const postText = (from: string, text: string, key: string) =>
  sendBytes(lab.key, 'messages.send', text, { params: { identity_id: from }, headers: keyed(key) });

const messagesOf = (id: string) => inMailbox(id, "SELECT id FROM messages WHERE direction = 'outbound'");

async function objectsOf(id: string, tenantId: string = lab.tenant): Promise<string[]> {
  const { objects } = await env.BLOBS.list({ prefix: `t/${tenantId}/i/${id}/out/` });
  return objects.map(({ key }) => key);
}

/** What a tenant has used of its allowance and holds for messages under way. */
async function counted(tenantId: string): Promise<number> {
  const { stub, call: context } = await quotaRemote(tenantId);
  const { features } = await stub.usage(context);
  const sends = features.find(({ feature }) => feature === 'sends');
  return (sends?.held ?? 0) + (sends?.used ?? 0);
}

async function refusedWith(response: Response): Promise<string> {
  return (await response.json<{ error: { code: string } }>()).error.code;
}

describe('the same request again', () => {
  test('gets the first answer, byte for byte but for deduplicated', async () => {
    const from = await somebody();
    const body = letter({ html: '<p>Hello <b>there</b></p>', labels: ['b', 'a'], metadata: { order: '7' } });
    const first = await post(lab.key, from, body, 'k');
    expect(first.status).toBe(202);
    expect(first.headers.has('idempotent-replayed')).toBe(false);
    const text = await first.text();
    expect((JSON.parse(text) as Sent).deduplicated).toBe(false);
    const again = await post(lab.key, from, body, 'k');
    expect(again.status).toBe(202);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(await again.text()).toBe(text.replace('"deduplicated":false', '"deduplicated":true'));
  });

  test('still gets it when the message has long met its end', async () => {
    const from = await somebody();
    const body = letter({ to: ['reject@simulator.invalid'] });
    const first = await accepted(lab.key, from, body, 'k');
    const params = { identity_id: from, message_id: first.id };
    await until(async () => expect((await call(lab.key, 'messages.get', { params })).status).toBe('rejected'));
    expect(await accepted(lab.key, from, body, 'k')).toEqual({ ...first, deduplicated: true });
  });

  test('may have its keys in another order and other white space', async () => {
    const from = await somebody();
    const to = '[{"name":"D","address":"delivered@simulator.invalid"}]';
    const one = await postText(from, `{"to":${to},"subject":"S","text":"a \\u00e9","metadata":{"b":"1","a":"2"}}`, 'k');
    const other = `\n{ "metadata" : {"a":"2", "b":"1"}, "text":"a é",\t"subject" :"S",
      "to": [ {"address":"delivered@simulator.invalid","name":"D"} ] }`;
    const two = await postText(from, other, 'k');
    expect(two.headers.get('idempotent-replayed')).toBe('true');
    expect((await two.json<Sent>()).id).toBe((await one.json<Sent>()).id);
  });

  test('is the same from every key that may send for the identity, and another with a key of its own', async () => {
    const from = await somebody();
    const own = await makeKey(root, { level: 'identity', identity_id: from });
    const first = await accepted(lab.key, from, letter(), 'k');
    for (const key of [own, root]) {
      expect(await accepted(key, from, letter(), 'k')).toMatchObject({ id: first.id, deduplicated: true });
    }
    expect((await accepted(lab.key, from, letter(), 'K')).id).not.toBe(first.id);
    expect(await messagesOf(from)).toHaveLength(2);
  });

  test('with a key of 255 characters, spaces among them', async () => {
    const from = await somebody();
    const key = `${'a b~!'.repeat(50)}12345`;
    expect(key).toHaveLength(LIMITS.idempotency_key_chars_max);
    const first = await accepted(lab.key, from, letter(), key);
    expect(await accepted(lab.key, from, letter(), key)).toEqual({ ...first, deduplicated: true });
    const rows = await inMailbox(from, 'SELECT * FROM idempotency');
    expect(JSON.stringify(rows)).not.toContain('a b~!');
  });

  test('is new after thirty days', async () => {
    const from = await somebody();
    const first = await accepted(lab.key, from, letter(), 'k');
    vi.setSystemTime(Date.now() + LIMITS.idempotency_retention_ms - 60_000);
    expect(await accepted(lab.key, from, letter(), 'k')).toMatchObject({ id: first.id });
    vi.setSystemTime(Date.now() + 60_001);
    // A clock that jumps a month is not believed; the daily clean-ups in between say that it has passed.
    expect(await accepted(lab.key, from, letter(), 'k')).toMatchObject({ id: first.id });
    await inMailbox(
      from,
      "UPDATE meta SET v = ? WHERE k IN ('cleaned_before', 'cleaned_last')",
      Date.now() - 86_400_000,
    );
    const second = await accepted(lab.key, from, letter(), 'k');
    expect(second).toMatchObject({ deduplicated: false });
    expect(second.id).not.toBe(first.id);
  });
});

describe('another request with the key', () => {
  test.each([
    ['another text', letter({ text: 'Other' })],
    ['recipients in another order', letter({ to: ['b@simulator.invalid', 'a@simulator.invalid'] })],
    ['the default said aloud', letter({ to: ['a@simulator.invalid', 'b@simulator.invalid'], kind: 'transactional' })],
  ])('is a conflict and has no effect: %s', async (_what, other) => {
    const from = await somebody();
    const { id } = await accepted(lab.key, from, letter({ to: ['a@simulator.invalid', 'b@simulator.invalid'] }), 'k');
    const input = { params: { identity_id: from }, body: other, headers: keyed('k') };
    const answer = await refusal(lab.key, 'messages.send', input);
    expect(answer).toEqual({ code: 'idempotency_conflict', original_message_id: id });
    expect(await messagesOf(from)).toEqual([{ id }]);
    expect(await objectsOf(from)).toHaveLength(1);
  });

  test('for another identity is another message', async () => {
    const [one, two] = [await somebody(), await somebody()];
    const first = await accepted(lab.key, one, letter(), 'k');
    const second = await accepted(lab.key, two, letter({ text: 'Other' }), 'k');
    expect(second).toMatchObject({ identity_id: two, deduplicated: false });
    expect(second.id).not.toBe(first.id);
  });
});

describe('at once', () => {
  test('twenty of the same request make one message', async () => {
    const own = await makeLab(root, 'crowd');
    const from = own.ann;
    const { outbound } = watchQueues();
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(own.key, from, letter(), 'k')));
    const bodies = await Promise.all(answers.map((answer) => answer.json<Sent & { error?: { code: string } }>()));
    const fresh = bodies.filter(({ deduplicated }) => deduplicated === false);
    expect(fresh).toHaveLength(1);
    for (const [index, { status }] of answers.entries()) {
      if (status === 202) expect(bodies[index]?.id).toBe(fresh[0]?.id);
      else expect([status, bodies[index]?.error?.code]).toEqual([409, 'request_in_progress']);
    }
    expect(await messagesOf(from)).toEqual([{ id: fresh[0]?.id }]);
    expect(await inMailbox(from, 'SELECT * FROM idempotency')).toHaveLength(1);
    expect(await objectsOf(from, own.tenant)).toEqual([`t/${own.tenant}/i/${from}/out/${fresh[0]?.id}.eml`]);
    expect(await counted(own.tenant)).toBe(1);
    await vi.waitFor(() => expect(outbound).toHaveBeenCalled());
    const jobs = outbound.mock.calls.map(([job]) => job as { identity_id: string; message_id: string });
    expect(jobs.filter((job) => job.identity_id === from)).toMatchObject([{ message_id: fresh[0]?.id }]);
  });

  test('ten each of two requests with one key make one message; the other kind never replays', async () => {
    const from = await somebody();
    const bodies = Array.from({ length: 20 }, (_, n) => letter({ text: n % 2 === 0 ? 'One' : 'Two' }));
    const answers = await Promise.all(bodies.map((body) => post(lab.key, from, body, 'k')));
    const [message] = await inMailbox(from, "SELECT id, text FROM messages WHERE direction = 'outbound'");
    expect(await messagesOf(from)).toHaveLength(1);
    for (const [index, answer] of answers.entries()) {
      const won = JSON.stringify(message?.['text']).includes(bodies[index]?.text ?? '?');
      if (answer.status === 202) expect([won, (await answer.json<Sent>()).id]).toEqual([true, message?.['id']]);
      else
        expect(['request_in_progress', ...(won ? [] : ['idempotency_conflict'])]).toContain(await refusedWith(answer));
    }
  });

  test('twenty with a key each make twenty', async () => {
    const from = await somebody();
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(lab.key, from)));
    expect(statuses(answers)).toEqual(Array.from({ length: 20 }, () => 202));
    expect(await messagesOf(from)).toHaveLength(20);
  });
});

describe('the first answer stands even when the policy would refuse now', () => {
  const cases: [string, string, (from: string, own: Lab) => Promise<unknown>][] = [
    [
      'the identity is paused',
      'identity_paused',
      (from, own) => call(own.key, 'identities.update', { params: { identity_id: from }, body: { status: 'paused' } }),
    ],
    [
      'the tenant is suspended',
      'tenant_suspended',
      (_from, own) =>
        call(root, 'tenants.update', { params: { tenant_id: own.tenant }, body: { status: 'suspended' } }),
    ],
    [
      'the cap is used up',
      'daily_cap_reached',
      (from, own) => {
        const body = { send_policy: { daily_cap: 1 } };
        return call(own.key, 'identities.update', { params: { identity_id: from }, body });
      },
    ],
    [
      'the recipients are too many',
      'too_many_recipients',
      (_from, own) => {
        const body = { policy: { max_recipients: 1 } };
        return call(root, 'tenants.policy.update', { params: { tenant_id: own.tenant }, body });
      },
    ],
    [
      'the domain is no longer ready',
      'domain_not_ready',
      (from) => sql("UPDATE addresses SET status = 'pending' WHERE identity_id = ?", from),
    ],
  ];

  test.each(cases)('%s', async (_what, code, change) => {
    const own = await makeLab(root, `t${++people}`);
    const body = letter({ to: ['a@simulator.invalid', 'b@simulator.invalid'] });
    const first = await accepted(own.key, own.ann, body, 'k');
    await change(own.ann, own);
    expect(await accepted(own.key, own.ann, body, 'k')).toEqual({ ...first, deduplicated: true });
    const again = await post(own.key, own.ann, body, 'new');
    expect(await refusedWith(again)).toBe(code);
  });
});

describe('a request that was refused', () => {
  test('may be repeated with its key once the reason is gone, and as another request', async () => {
    const from = await somebody();
    const params = { identity_id: from };
    await call(lab.key, 'identities.update', { params, body: { status: 'paused' } });
    expect(await refusedWith(await post(lab.key, from, letter(), 'k'))).toBe('identity_paused');
    expect(await inMailbox(from, 'SELECT * FROM idempotency')).toEqual([]);
    await call(lab.key, 'identities.update', { params, body: { status: 'active' } });
    const other = letter({ text: 'Other' });
    expect(await accepted(lab.key, from, other, 'k')).toMatchObject({ deduplicated: false });
    expect(await accepted(lab.key, from, other, 'k')).toMatchObject({ deduplicated: true });
  });

  test('by the object store leaves nothing behind: no hold, no count, no object', async () => {
    const own = await makeLab(root, 'unlucky');
    const from = await person(root, own.tenant, 'one', { send_policy: { daily_cap: 1 } });
    const down = vi.spyOn(env.BLOBS, 'put').mockRejectedValue(new Error('put: internal error (10001)'));
    vi.spyOn(console, 'error').mockReturnValue();
    expect(await refusedWith(await post(own.key, from, letter(), 'k'))).toBe('unavailable');
    down.mockRestore();
    await atRest(from);
    expect(await counted(own.tenant)).toBe(0);
    expect(await objectsOf(from, own.tenant)).toEqual([]);
    expect(await messagesOf(from)).toEqual([]);
    expect(await accepted(own.key, from, letter(), 'k')).toMatchObject({ deduplicated: false });
  });

  test('by a queue that is away was not refused at all: the message waits, and the repeat finds it', async () => {
    const from = await somebody();
    vi.spyOn(env.Q_OUTBOUND, 'send').mockRejectedValue(new Error('away'));
    const first = await accepted(lab.key, from, letter(), 'k');
    expect(await accepted(lab.key, from, letter(), 'k')).toEqual({ ...first, deduplicated: true });
    expect(await inMailbox(from, 'SELECT status FROM messages')).toEqual([{ status: 'queued' }]);
  });
});

test('a dry run neither looks a key up nor records it', async () => {
  const from = await somebody();
  const dry = { params: { identity_id: from }, query: { dry_run: 'true' }, headers: keyed('k'), status: 200 };
  await call(lab.key, 'messages.send', { ...dry, body: letter() });
  const first = await accepted(lab.key, from, letter({ text: 'Other' }), 'k');
  expect(first.deduplicated).toBe(false);
  expect(await call(lab.key, 'messages.send', { ...dry, body: letter() })).toMatchObject({ would_send: true });
  expect(await messagesOf(from)).toEqual([{ id: first.id }]);
});
