import { env } from 'cloudflare:workers';
import type { RouteId } from '@pmail/contracts/routes.ts';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  type Answering,
  accepted,
  answered,
  arrive,
  atRest,
  inMailbox,
  keyed,
  type Lab,
  letter,
  makeLab,
  person,
  type Sent,
  stored,
  suppressAddress,
  until,
  watchQueues,
} from './mail.ts';
import { keepStorage } from './storage.ts';
import { call, deploy, makeKey, refusal, send, statuses } from './support.ts';

/** The four ways to send share one ledger of keys, one sight of the mailbox and one dry run. */

keepStorage();

let root: string;
let lab: Lab;
/** A mailbox of its own for what is answered. */
let desk: string;
let question: string;
let other: string;

beforeAll(async () => {
  root = await deploy();
  lab = await makeLab(root);
  desk = await person(root, lab.tenant, 'desk');
  question = await asked(desk);
  other = await asked(desk);
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

let count = 0;
function asked(of: string, from = 'a@simulator.invalid'): Promise<string> {
  count++;
  return arrive(of, `From: ${from}\nMessage-ID: <${count}@simulator.invalid>\nSubject: Q${count}\n\nHow much?`);
}

const ANSWERING: Answering[] = ['messages.reply', 'messages.reply_all', 'messages.forward'];

const bodyOf = (route: RouteId, changes: object = {}): object => ({
  ...(route === 'messages.forward' ? { to: ['b@simulator.invalid'], text: 'Look' } : { text: 'Ten' }),
  ...changes,
});

const requestOf = (route: Answering, key: string, changes: { target?: string; from?: string; body?: object } = {}) => ({
  params: { identity_id: changes.from ?? desk, message_id: changes.target ?? question },
  body: bodyOf(route, changes.body),
  headers: keyed(key),
});

const outbound = () => inMailbox(desk, "SELECT id FROM messages WHERE direction = 'outbound' ORDER BY rowid");

describe.each(ANSWERING)('%s again', (route) => {
  test('gets the first answer, byte for byte but for deduplicated, and sends nothing', async () => {
    const input = requestOf(route, `${route} again`);
    const first = await send(lab.key, route, input);
    expect([first.status, first.headers.has('idempotent-replayed')]).toEqual([202, false]);
    const text = await first.text();
    const before = await outbound();
    const again = await send(lab.key, route, input);
    expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([202, 'true']);
    expect(await again.text()).toBe(text.replace('"deduplicated":false', '"deduplicated":true'));
    expect(await outbound()).toEqual(before);
  });

  test('gets it also when the answer could no longer be given', async () => {
    const own = await person(root, lab.tenant, `p${++count}`);
    const target = { identity_id: own, message_id: await asked(own, `late${count}@simulator.invalid`) };
    const body = bodyOf(route);
    const first = await answered(lab.key, route, target, body, 'k');
    await suppressAddress(lab.tenant, `late${count}@simulator.invalid`, 'complaint');
    await inMailbox(own, "UPDATE messages SET status = 'hidden' WHERE id = ?", target.message_id);
    await call(lab.key, 'identities.update', { params: { identity_id: own }, body: { status: 'paused' } });
    expect(await answered(lab.key, route, target, body, 'k')).toEqual({ ...first, deduplicated: true });
    const fresh = { params: target, body, headers: keyed() };
    expect(await refusal(lab.key, route, fresh)).toMatchObject({ code: 'identity_paused' });
  });

  test('with other words is a conflict that names the first', async () => {
    const input = requestOf(route, `${route} other`);
    const { id } = (await call(lab.key, route, { ...input, status: 202 })) as Sent;
    const before = await outbound();
    for (const body of [{ text: 'Eleven' }, { labels: ['x'] }, { attachments: [] }]) {
      expect(await refusal(lab.key, route, { ...input, body: bodyOf(route, body) })).toEqual({
        code: 'idempotency_conflict',
        original_message_id: id,
      });
    }
    expect(await outbound()).toEqual(before);
  });

  test('of another message, or by another operation, is a conflict, and the first still stands', async () => {
    const key = `${route} elsewhere`;
    const first = (await call(lab.key, route, { ...requestOf(route, key), status: 202 })) as Sent;
    const conflict = { code: 'idempotency_conflict', original_message_id: first.id };
    const before = await outbound();
    expect(await refusal(lab.key, route, requestOf(route, key, { target: other }))).toEqual(conflict);
    for (const wrong of ANSWERING.filter((name) => name !== route)) {
      expect(await refusal(lab.key, wrong, requestOf(wrong, key)), wrong).toEqual(conflict);
    }
    const plain = { params: { identity_id: desk }, body: letter(), headers: keyed(key) };
    expect(await refusal(lab.key, 'messages.send', plain)).toEqual(conflict);
    // Also when the other message is not there at all: the key is looked at first.
    const nowhere = requestOf(route, key, { target: 'msg_01JABCDEFGHJKMNPQRSTVWXYZ0' });
    expect(await refusal(lab.key, route, nowhere)).toEqual(conflict);
    expect(await outbound()).toEqual(before);
    expect(await call(lab.key, route, requestOf(route, key))).toMatchObject({ id: first.id, deduplicated: true });
  });

  test('needs a key, and looks at none without need', async () => {
    const { headers: _headers, ...input } = requestOf(route, '');
    expect(await refusal(lab.key, route, input)).toEqual({ code: 'idempotency_key_required' });
    expect(await refusal(lab.key, route, { ...input, query: { dry_run: 'false' } })).toEqual({
      code: 'idempotency_key_required',
    });
    await call(lab.key, route, { ...input, query: { dry_run: 'true' }, status: 200 });
    const used = { ...requestOf(route, `${route} dry`), query: { dry_run: 'true' } };
    await call(lab.key, route, { ...used, status: 200 });
    const { deduplicated } = (await call(lab.key, route, requestOf(route, `${route} dry`))) as Sent;
    expect(deduplicated).toBe(false);
    await call(lab.key, route, { ...used, body: bodyOf(route, { text: 'Other' }), status: 200 });
  });

  test('at once makes one message', async () => {
    const before = await outbound();
    const input = requestOf(route, `${route} at once`);
    const answers = await Promise.all(Array.from({ length: 10 }, () => send(lab.key, route, input)));
    for (const status of statuses(answers)) expect([202, 409]).toContain(status);
    const bodies = await Promise.all(answers.map((answer) => answer.json<Sent & { error?: { code: string } }>()));
    const sent = bodies.filter(({ error }) => error === undefined);
    expect(new Set(sent.map(({ id }) => id)).size).toBe(1);
    for (const { error } of bodies) expect([undefined, 'request_in_progress']).toContain(error?.code);
    expect(await outbound()).toHaveLength(before.length + 1);
  });
});

test('a send and its answer have keys of one ledger: the key of a send answers nothing else', async () => {
  const first = await accepted(lab.key, desk, letter(), 'plain');
  for (const route of ANSWERING) {
    expect(await refusal(lab.key, route, requestOf(route, 'plain'))).toEqual({
      code: 'idempotency_conflict',
      original_message_id: first.id,
    });
  }
});

describe.each(ANSWERING)('%s of a message', (route) => {
  let shelf: string;

  beforeAll(async () => {
    shelf = await person(root, lab.tenant, `shelf${++count}`);
  });

  const looked = (key: string, target: string, from = shelf) =>
    refusal(key, route, requestOf(route, crypto.randomUUID(), { target, from }));

  test('that is not there, malformed, of another mailbox or another tenant is answered alike', async () => {
    const foreign = await makeLab(root, `foreign${++count}`);
    const theirs = await asked(foreign.ann);
    const bobs = await asked(lab.bob);
    const { id: sentByBob } = await accepted(lab.key, lab.bob);
    const { thread_id: thread } = await accepted(lab.key, shelf);
    const all = ['msg_01JABCDEFGHJKMNPQRSTVWXYZ0', 'nonsense', thread, bobs, sentByBob, theirs];
    for (const target of all) {
      expect(await looked(lab.key, target), target).toEqual({ code: 'message_not_found' });
      const dry = {
        params: { identity_id: shelf, message_id: target },
        body: bodyOf(route),
        query: { dry_run: 'true' },
      };
      expect(await refusal(lab.key, route, dry), target).toEqual({ code: 'message_not_found' });
    }
    // The mailbox itself is looked at before the message in it.
    expect(await looked(lab.key, theirs, foreign.ann)).toEqual({ code: 'identity_not_found' });
    const own = await makeKey(root, { level: 'identity', identity_id: lab.bob });
    expect(await looked(own, question, desk)).toEqual({ code: 'identity_not_found' });
  });

  test('that is held back needs the right to review, and hidden mail is nowhere', async () => {
    const held = await asked(shelf, `held${++count}@simulator.invalid`);
    const blind = await makeKey(root, { level: 'tenant', tenant_id: lab.tenant, permissions: ['messages:send'] });
    const permissions = ['messages:send', 'quarantine:review'] as const;
    const reviewer = await makeKey(root, { level: 'tenant', tenant_id: lab.tenant, permissions: [...permissions] });
    const put = (status: string) => inMailbox(shelf, 'UPDATE messages SET status = ? WHERE id = ?', status, held);
    for (const status of ['hidden', 'throttled']) {
      await put(status);
      for (const key of [blind, reviewer, root]) expect(await looked(key, held)).toEqual({ code: 'message_not_found' });
    }
    await put('quarantined');
    expect(await looked(blind, held)).toEqual({ code: 'message_not_found' });
    await call(reviewer, route, { ...requestOf(route, `${route} held`, { target: held, from: shelf }), status: 202 });
    expect(await looked(blind, held)).toEqual({ code: 'message_not_found' });
  });
});

describe('a dry run', () => {
  const ROUTES: [RouteId, object][] = [
    ['messages.send', letter({ to: ['b@simulator.invalid', 'bob.lab@agents.example'], bcc: ['c@simulator.invalid'] })],
    ...ANSWERING.map((route): [RouteId, object] => [
      route,
      bodyOf(route, {
        html: '<p>Ten</p>',
        labels: ['x'],
        metadata: { a: 'b' },
        attachments: [{ filename: 'a.txt', content_type: 'text/plain', content_base64: 'YQ==' }],
      }),
    ]),
  ];

  test.each(ROUTES)(
    'of %s says whom it would reach, and leaves every store and queue as it was',
    async (route, body) => {
      const own = await person(root, lab.tenant, `dry${++count}`);
      const target = await asked(own, 'dry@simulator.invalid');
      await atRest(lab.ann, lab.bob, desk, own);
      await until(async () => {
        const open = await inMailbox(desk, "SELECT id FROM messages WHERE status IN ('queued', 'submitted')");
        expect(open).toEqual([]);
      });
      await atRest(desk);
      const before = await stored();
      const queues = watchQueues();
      const put = vi.spyOn(env.BLOBS, 'put');
      const input = { params: { identity_id: own, message_id: target }, body, query: { dry_run: 'true' }, status: 200 };
      const answer = await call(lab.key, route, { ...input, headers: keyed('dry') });
      expect(answer).toMatchObject({ would_send: true });
      const { recipients } = answer as { recipients: { address: string; status: string; reason: null }[] };
      const expected =
        route === 'messages.send'
          ? ['b@simulator.invalid', 'bob.lab@agents.example', 'c@simulator.invalid']
          : [route === 'messages.forward' ? 'b@simulator.invalid' : 'dry@simulator.invalid'];
      expect(recipients.map(({ address, status, reason }) => [address, status, reason])).toEqual(
        expected.map((address) => [address, 'queued', null]),
      );
      expect(await stored()).toEqual(before);
      expect(put).not.toHaveBeenCalled();
      expect(queues.outbound).not.toHaveBeenCalled();
      expect(queues.inbound).not.toHaveBeenCalled();
    },
  );

  test('is refused as the send would be, and leaves nothing then either', async () => {
    const own = await person(root, lab.tenant, `dry${++count}`);
    const target = await asked(own, 'real@example.com');
    await atRest(own);
    const before = await stored();
    for (const route of ['messages.reply', 'messages.reply_all'] as const) {
      const input = {
        params: { identity_id: own, message_id: target },
        body: bodyOf(route),
        query: { dry_run: 'true' },
      };
      expect(await refusal(lab.key, route, input)).toMatchObject({ code: 'test_mode_recipient' });
    }
    expect(await stored()).toEqual(before);
  });
});
