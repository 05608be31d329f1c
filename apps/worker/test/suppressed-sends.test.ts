import { beforeAll, describe, expect, test } from 'vitest';
import { accepted, atRest, keyed, type Lab, letter, makeLab, person, type Sent, until } from './mail.ts';
import { keepStorage } from './storage.ts';
import { call, deploy, eventsOf, makeKey, refusal, sql, tenant } from './support.ts';

/** What suppressions and lists do to sends, over HTTP and through the real queues. */

keepStorage();

let root: string;
let lab: Lab;

beforeAll(async () => {
  root = await deploy();
  lab = await makeLab(root);
});

const message = (from: string, id: string) =>
  call(lab.key, 'messages.get', { params: { identity_id: from, message_id: id } });

async function ends(from: string, { id }: Sent, status: string) {
  return until(async () => {
    const now = await message(from, id);
    expect(now.status).toBe(status);
    return now;
  });
}

const params = (address: string) => ({ tenant_id: lab.tenant, address });
const listed = async (address: string) =>
  (await call(lab.key, 'suppressions.list', { params: { tenant_id: lab.tenant }, query: { address } })).data;

describe('a suppressed address', () => {
  test('gets nothing more, and again once it was taken off', async () => {
    const ann = await person(root, lab.tenant, 'ada');
    const to = ['delivered+1@simulator.invalid'];
    await call(lab.key, 'suppressions.create', {
      params: { tenant_id: lab.tenant },
      body: { address: 'Delivered+1@SIMULATOR.invalid', reason: 'unsubscribe' },
      status: 201,
    });
    const held = await accepted(lab.key, ann, letter({ to }));
    expect(held).toMatchObject({
      status: 'suppressed',
      deliveries: [{ address: to[0], status: 'suppressed', smtp_response: 'policy: suppression (unsubscribe)' }],
    });
    await atRest(ann);
    expect((await eventsOf(ann)).map(({ type }) => type)).toContain('message.suppressed');
    const both = await accepted(lab.key, ann, letter({ to: [...to, 'delivered@simulator.invalid'] }));
    const after = await ends(ann, both, 'delivered');
    expect(after.deliveries).toMatchObject([{ status: 'suppressed' }, { status: 'delivered' }]);

    await call(lab.key, 'suppressions.delete', { params: params(to[0] ?? '') });
    await ends(ann, await accepted(lab.key, ann, letter({ to })), 'delivered');
    expect((await message(ann, held.id)).status).toBe('suppressed');
  });

  test('is one after a bounce, told by the mailbox that wrote to it', async () => {
    const ann = await person(root, lab.tenant, 'bea');
    const to = ['bounce@simulator.invalid'];
    const first = await accepted(lab.key, ann, letter({ to }));
    await ends(ann, first, 'bounced');
    const [found] = await until(async () => {
      const rows = await listed('BOUNCE@simulator.invalid');
      expect(rows).toHaveLength(1);
      return rows;
    });
    expect(found).toMatchObject({
      address_hint: 'b***@simulator.invalid',
      reason: 'hard_bounce',
      source_message_id: first.id,
      note: null,
    });
    expect((await accepted(lab.key, ann, letter({ to: ['Bounce@Simulator.invalid'] }))).status).toBe('suppressed');
    // A word by hand adds nothing to what stands there, and tells nothing.
    const again = await call(lab.key, 'suppressions.create', {
      params: { tenant_id: lab.tenant },
      body: { address: to[0] ?? '', reason: 'manual' },
      status: 200,
    });
    expect(again).toEqual(found);
    await atRest(ann);
    const events = await sql(
      "SELECT owner_kind, identity_id FROM event_index WHERE type = 'suppression.created' AND identity_id = ?",
      ann,
    );
    expect(events).toEqual([{ owner_kind: 'mailbox', identity_id: ann }]);
    await call(lab.key, 'suppressions.delete', { params: params(to[0] ?? '') });
    const second = await accepted(lab.key, ann, letter({ to }));
    await ends(ann, second, 'bounced');
    await until(async () => expect(await listed(to[0] ?? '')).toMatchObject([{ source_message_id: second.id }]));
  });

  test('is one after a complaint, and stays it until somebody answers for its removal', async () => {
    const ann = await person(root, lab.tenant, 'cleo');
    const to = ['complaint@simulator.invalid'];
    await ends(ann, await accepted(lab.key, ann, letter({ to })), 'complained');
    await until(async () => expect(await listed(to[0] ?? '')).toMatchObject([{ reason: 'complaint' }]));
    expect(await refusal(lab.key, 'suppressions.delete', { params: params(to[0] ?? '') })).toMatchObject({
      code: 'invalid_request',
    });
    expect((await accepted(lab.key, ann, letter({ to }))).status).toBe('suppressed');
    const body = { confirm_complaint_removal: true };
    await call(lab.key, 'suppressions.delete', { params: params(to[0] ?? ''), body });
    expect((await accepted(lab.key, ann, letter({ to }))).status).toBe('queued');
  });

  test('is none of another tenant', async () => {
    const other = await makeLab(root, 'another');
    const to = ['delivered+2@simulator.invalid'];
    await call(lab.key, 'suppressions.create', {
      params: { tenant_id: lab.tenant },
      body: { address: to[0] ?? '', reason: 'manual' },
    });
    expect((await accepted(lab.key, lab.ann, letter({ to }))).status).toBe('suppressed');
    expect((await accepted(other.key, other.ann, letter({ to }))).status).toBe('queued');
  });

  test('in any case and script is the same address (a report spelled it otherwise)', async () => {
    const live = await tenant(root, 'live');
    const key = await makeKey(root, { level: 'tenant', tenant_id: live.id });
    const desk = await person(root, live.id, 'desk');
    const suppress = (address: string, status: number) =>
      call(key, 'suppressions.create', { params: { tenant_id: live.id }, body: { address, reason: 'manual' }, status });
    await suppress('Reader@Example.NET', 201);
    await suppress('Reader@Bücher.example', 201);
    for (const address of ['reader@example.net', 'READER@Example.net', 'Reader@example.NET']) {
      await suppress(address, 200);
      expect(await accepted(key, desk, letter({ to: [address] }))).toMatchObject({
        status: 'suppressed',
        deliveries: [{ address: 'reader@example.net', status: 'suppressed' }],
      });
    }
    for (const address of ['reader@BÜCHER.example', 'READER@xn--bcher-kva.example']) {
      expect((await accepted(key, desk, letter({ to: [{ address, name: 'R' }] }))).status).toBe('suppressed');
    }
  });

  test('is named by a dry run, which leaves nothing behind', async () => {
    const to = ['delivered+3@simulator.invalid'];
    await call(lab.key, 'suppressions.create', {
      params: { tenant_id: lab.tenant },
      body: { address: to[0] ?? '', reason: 'manual' },
    });
    const input = { params: { identity_id: lab.bob }, body: letter({ to }), query: { dry_run: 'true' } };
    expect(await refusal(lab.key, 'messages.send', input)).toEqual({
      code: 'all_recipients_suppressed',
      recipients: [{ address: to[0], field: 'to', status: 'suppressed', reason: 'manual' }],
    });
  });
});

describe('the lists for sending', () => {
  /** A tenant with lists of its own, an identity in it, and what it may send now. */
  async function made(slug: string) {
    const own = await makeLab(root, slug);
    const at = (kind: string, entry: string) => ({ tenant_id: own.tenant, direction: 'send', kind, entry });
    return {
      ...own,
      put: (kind: string, entry: string) => call(own.key, 'lists.put', { params: at(kind, entry) }),
      drop: (kind: string, entry: string) => call(own.key, 'lists.delete', { params: at(kind, entry) }),
      rules: async (...to: string[]) => {
        const { deliveries } = await accepted(own.key, own.ann, letter({ to }));
        return (deliveries ?? []).map(({ status, smtp_response: why }) => why ?? status);
      },
    };
  }

  const SIM = 'delivered@simulator.invalid';
  const OTHER = 'anything@simulator.invalid';

  test('hold back an address that is blocked, until it is not', async () => {
    const { put, drop, rules } = await made('blocking');
    await put('block', 'Delivered@Simulator.INVALID');
    expect(await rules(SIM, OTHER)).toEqual(['policy: send_block', 'queued']);
    await drop('block', SIM);
    expect(await rules(SIM, OTHER)).toEqual(['queued', 'queued']);
  });

  test('hold back a domain that is blocked, and none above or below it', async () => {
    const { put, rules, drop } = await made('domains');
    await put('block', '@Simulator.Invalid');
    expect(await rules(SIM, OTHER, 'ann.domains@agents.example')).toEqual([
      'policy: send_block',
      'policy: send_block',
      'queued',
    ]);
    await drop('block', '@simulator.invalid');
    await put('block', '@sub.simulator.invalid');
    await put('block', '@lator.invalid');
    expect(await rules(SIM)).toEqual(['queued']);
  });

  test('let through only what is allowed, where the policy says so', async () => {
    const { tenant: id, put, rules } = await made('allowing');
    await put('allow', SIM);
    expect(await rules(SIM, OTHER)).toEqual(['queued', 'queued']);
    await call(root, 'tenants.policy.update', {
      params: { tenant_id: id },
      body: { policy: { send_allowlist_only: true } },
    });
    expect(await rules(SIM, OTHER)).toEqual(['queued', 'policy: not_on_allowlist']);
    await put('allow', '@simulator.invalid');
    expect(await rules(SIM, OTHER)).toEqual(['queued', 'queued']);
    // Blocking is the stronger word.
    await put('block', OTHER);
    expect(await rules(SIM, OTHER)).toEqual(['queued', 'policy: send_block']);
  });

  test('with nobody left accept the message as suppressed', async () => {
    const { put, key, ann } = await made('nobody');
    await put('block', SIM);
    expect((await accepted(key, ann, letter({ to: [SIM] }))).status).toBe('suppressed');
    const dry = { params: { identity_id: ann }, body: letter({ to: [SIM] }), query: { dry_run: 'true' } };
    expect(await refusal(key, 'messages.send', dry)).toMatchObject({
      code: 'recipient_blocked',
      recipients: [{ address: SIM, reason: 'send_block' }],
    });
  });

  test('are not those for receiving', async () => {
    const { key, tenant: id, rules } = await made('receiving');
    const at = { tenant_id: id, direction: 'receive', kind: 'block', entry: SIM };
    await call(key, 'lists.put', { params: at, headers: keyed() });
    expect(await rules(SIM)).toEqual(['queued']);
  });
});
