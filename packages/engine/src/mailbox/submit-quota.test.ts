import { setImmediate } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from 'vitest';
import { DAY, HOUR, JO, KIM, LEE, MailboxRig, MINUTE, SECOND } from './mailbox.fixture.ts';
import { accepted, attempt } from './transport.fixture.ts';

let rig: MailboxRig;

beforeEach(() => {
  rig = new MailboxRig();
});

const FREE = { held: 0, holds: 0, used: 0, counted: 0, tenant: 0 };

describe('the daily caps', () => {
  test('refuse with the cap and its end, and keep nothing', async () => {
    await rig.send({ policy: { identity_daily_send_cap: 1 } });
    expect(await rig.submit({ policy: { identity_daily_send_cap: 1 } })).toEqual({
      ok: false,
      code: 'daily_cap_reached',
      details: { cap: 'identity', resets_at: '2026-12-01T00:00:00.000Z' },
    });
    expect(await rig.submit({ policy: { tenant_daily_send_cap: 1 }, tenant: { timezone: 'UTC' } })).toMatchObject({
      code: 'daily_cap_reached',
      details: { cap: 'tenant' },
    });
    expect(rig.rows('messages')).toBe(1);
    expect(rig.blobs.objects.size).toBe(1);
    expect(rig.quotaBooks).toEqual({ held: 1, holds: 1, used: 0, counted: 1, tenant: 1 });
  });

  test("an identity's own cap comes before the tenant's default for it", async () => {
    const policy = { identity_daily_send_cap: 5 };
    expect(await rig.submit({ policy, identity: { send_policy: { daily_cap: 0 } } })).toMatchObject({
      code: 'daily_cap_reached',
    });
    const larger = { policy: { identity_daily_send_cap: 0 }, identity: { send_policy: { daily_cap: 1 } } };
    expect(await rig.submit(larger)).toMatchObject({ ok: true });
  });

  test('count a message once, however many recipients it has', async () => {
    await rig.send({ body: { to: [JO, KIM], cc: [LEE] } });
    expect(rig.quotaBooks).toEqual({ held: 3, holds: 1, used: 0, counted: 1, tenant: 1 });
  });

  test('warn once at 80 % and once at 100 %, as events of the mailbox', async () => {
    const policy = { identity_daily_send_cap: 5, tenant_daily_send_cap: 50 };
    for (let i = 0; i < 5; i++) await rig.send({ policy });
    expect(rig.eventData('quota.warning')).toEqual([
      { metric: 'sends', scope: 'identity', percent: 80, used: 4, limit: 5 },
      { metric: 'sends', scope: 'identity', percent: 100, used: 5, limit: 5 },
    ]);
    rig.clock.now += DAY;
    for (let i = 0; i < 4; i++) await rig.send({ policy });
    expect(rig.eventData('quota.warning')).toHaveLength(3);
  });

  test('do not count the system identity against the tenant', async () => {
    await rig.send({ identity: { is_system: true }, policy: { tenant_daily_send_cap: 0 } });
    expect(rig.quotaBooks).toMatchObject({ counted: 1, tenant: 0 });
  });
});

describe('the allowance', () => {
  test('refuses with 402 before the caps do, and tells of it once in a period', async () => {
    rig.quota.setBilling('metered', { sends: 2 });
    const answer = await rig.submit({ body: { to: [JO, KIM, LEE] }, policy: { identity_daily_send_cap: 0 } });
    expect(answer).toEqual({
      ok: false,
      code: 'billing_limit',
      details: {
        feature: 'sends',
        granted: 2,
        used: 0,
        resets_at: '2026-12-01T00:00:00.000Z',
        upgrade_url: null,
      },
    });
    expect(await rig.submit({ body: { to: [JO, KIM, LEE] } })).toMatchObject({ code: 'billing_limit' });
    expect(rig.eventData('billing.limit_reached')).toEqual([
      { feature: 'sends', granted: 2, resets_at: '2026-12-01T00:00:00.000Z' },
    ]);
    expect(rig.quotaBooks).toEqual(FREE);
    expect(rig.blobs.objects.size).toBe(0);
    expect(await rig.submit({ body: { to: [JO, KIM] } })).toMatchObject({ ok: true });
    rig.clock.now += DAY;
    expect(await rig.submit({ key: 'k-2', body: { to: [JO, KIM, LEE] } })).toMatchObject({ code: 'billing_limit' });
    expect(rig.eventData('billing.limit_reached')).toHaveLength(2);
  });

  test('of storage gates mail with attachments, and only that', async () => {
    rig.quota.setBilling('metered', { storage_gb: 1 });
    rig.quotaStorage.sql.run("UPDATE allowances SET used = 2 WHERE feature = 'storage_gb'");
    const attachments = [{ filename: 'a.txt', content_type: 'text/plain', content_base64: 'YQ==' }];
    expect(await rig.submit({ body: { attachments } })).toMatchObject({
      code: 'billing_limit',
      details: { feature: 'storage_gb', granted: 1, used: 2, resets_at: null },
    });
    expect(await rig.submit()).toMatchObject({ ok: true });
  });
});

describe('an answer of the quota that is lost', () => {
  test('refuses the send and gives back exactly what was taken (S11)', async () => {
    const kept = await rig.send();
    rig.reserves.loseNext();
    expect(await rig.submit()).toMatchObject({ ok: false, code: 'unavailable', details: { step: 'quota' } });
    expect(rig.applied).toEqual([expect.objectContaining({ op: 'release' })]);
    expect(rig.quotaBooks).toEqual({ held: 1, holds: 1, used: 0, counted: 1, tenant: 1 });
    expect(rig.blobs.keys).toEqual([expect.stringContaining(kept.id)]);
  });

  test('because it never arrived gives nothing back that was not taken (S11)', async () => {
    await rig.send();
    rig.reserves.failNext();
    expect(await rig.submit()).toMatchObject({ ok: false, code: 'unavailable' });
    expect(rig.quotaBooks).toEqual({ held: 1, holds: 1, used: 0, counted: 1, tenant: 1 });
  });

  test('and that lands after the release takes nothing any more (S11)', async () => {
    rig.reserves.delayNext();
    expect(await rig.submit()).toMatchObject({ ok: false, code: 'unavailable' });
    rig.reserves.land();
    expect(rig.quotaBooks).toEqual(FREE);
  });

  test.each(['failNext', 'loseNext'] as const)(
    'for the release too (%s) is repeated until it is heard',
    async (how) => {
      rig.reserves.loseNext();
      rig.applies[how](3);
      expect(await rig.submit()).toMatchObject({ ok: false, code: 'unavailable' });
      expect(rig.rows('quota_tasks')).toBe(1);
      await rig.advance(90 * SECOND);
      expect(rig.rows('quota_tasks')).toBe(0);
      expect(rig.quotaBooks).toEqual(FREE);
    },
  );
});

describe('the quota', () => {
  test('that is down refuses sends, and is paid its debts when it is back (S12)', async () => {
    rig.reserves.failNext(2);
    rig.applies.failNext(4);
    for (const key of ['k-1', 'k-2']) expect(await rig.submit({ key })).toMatchObject({ code: 'unavailable' });
    expect(rig.rows('messages')).toBe(0);
    expect(rig.rows('quota_tasks')).toBe(2);
    await rig.advance(5 * MINUTE);
    expect(rig.rows('quota_tasks')).toBe(0);
    expect(await rig.submit({ key: 'k-1' })).toMatchObject({ ok: true, deduplicated: false });
    expect(rig.quotaBooks).toEqual({ held: 1, holds: 1, used: 0, counted: 1, tenant: 1 });
  });

  test('is paid in the order of the debts, each once', async () => {
    rig.applies.failNext(1);
    const { id } = await rig.send({ body: { to: [JO, KIM] } });
    await attempt(rig, id, accepted({ deferred: [KIM] }));
    await rig.advance(2 * MINUTE);
    await attempt(rig, id, accepted());
    expect(rig.applied.map((task) => [task.op, 'n' in task ? task.n : null])).toEqual([
      ['settle', 1],
      ['settle', 2],
    ]);
    expect(rig.quotaBooks).toEqual({ held: 0, holds: 0, used: 2, counted: 1, tenant: 1 });
  });
});

describe('filtered recipients', () => {
  test('are stored as suppressed with the rule, and the others are sent', async () => {
    const { id } = await rig.send({
      body: { to: [JO, KIM], bcc: [LEE] },
      directory: { suppressions: { [JO]: 'hard_bounce' }, send_block: ['lee@example.net'] },
    });
    const message = rig.message(id);
    expect(message.status).toBe('queued');
    expect(message.deliveries?.map(({ address, status, smtp_response }) => [address, status, smtp_response])).toEqual([
      [JO, 'suppressed', 'policy: suppression (hard_bounce)'],
      [KIM, 'queued', null],
      [LEE, 'suppressed', 'policy: send_block'],
    ]);
    expect(rig.quotaBooks).toMatchObject({ held: 1, counted: 1 });
    expect(rig.eventTypes).toEqual([]);
  });

  test('all of them: accepted, announced, and neither held, counted nor queued (R35)', async () => {
    const message = await rig.send({
      body: { to: [JO, KIM] },
      directory: { suppressions: { [JO]: 'complaint' }, send_block: ['@example.net'] },
    });
    expect(message).toMatchObject({ status: 'suppressed', status_reason: null });
    expect(rig.reserves.calls).toBe(0);
    expect(rig.quotaBooks).toEqual(FREE);
    expect(rig.outbound.sent).toEqual([]);
    expect(rig.eventData('message.suppressed')).toEqual([
      expect.objectContaining({
        message_id: message.id,
        recipients: [
          { address: JO, reason: 'complaint' },
          { address: KIM, reason: 'send_block' },
        ],
      }),
    ]);
    await rig.advance(DAY);
    expect(rig.outbound.sent).toEqual([]);
    expect(rig.engine.sendState(message.id)).toBe('ended');
  });

  test('do not become known by having been refused', async () => {
    const stranger = { identity: { send_policy: { require_known_recipient: true } } };
    expect(await rig.send(stranger)).toMatchObject({ status: 'suppressed' });
    expect(await rig.send(stranger)).toMatchObject({ status: 'suppressed' });
    await rig.send();
    expect(await rig.send(stranger)).toMatchObject({ status: 'queued' });
  });
});

describe('the registry of mailboxes with work', () => {
  test('that cannot be written refuses the send (S13)', async () => {
    rig.registering.failNext();
    expect(await rig.submit()).toMatchObject({ ok: false, code: 'unavailable', details: { step: 'registry' } });
    expect(rig.rows('messages')).toBe(0);
    expect(rig.quotaBooks).toEqual(FREE);
    expect(rig.blobs.objects.size).toBe(0);
    expect(await rig.submit()).toMatchObject({ ok: true, deduplicated: false });
  });
});

test('a tenant counts its caps by its own day, and usage by the day of UTC', async () => {
  const tenant = { timezone: 'Pacific/Auckland' };
  const policy = { identity_daily_send_cap: 1 };
  // Half past ten in the evening of 30 November in Auckland, and half past nine in the morning in UTC.
  rig.clock.now = Date.parse('2026-11-30T09:30:00Z');
  const first = await rig.send({ tenant, policy });
  await attempt(rig, first.id, accepted());
  expect(await rig.submit({ tenant, policy })).toMatchObject({ details: { resets_at: '2026-11-30T11:00:00.000Z' } });
  // A new day in Auckland, the same in UTC.
  rig.clock.now = Date.parse('2026-11-30T11:00:00Z');
  const second = await rig.send({ tenant, policy, body: { to: [JO, KIM] } });
  await attempt(rig, second.id, accepted({ provider_message_id: 'prov-2' }));
  expect(rig.quota.usageDays().filter(({ metric }) => metric === 'sends')).toMatchObject([
    { day: '2026-11-30', value: 3 },
  ]);
  rig.clock.now += DAY;
  const third = await rig.send({ tenant, policy });
  await attempt(rig, third.id, accepted({ provider_message_id: 'prov-3' }));
  expect(
    rig.quota
      .usageDays()
      .filter(({ metric }) => metric === 'sends')
      .map(({ day, value }) => `${day} ${value}`)
      .toSorted(),
  ).toEqual(['2026-11-30 3', '2026-12-01 1']);
});

test('a clock that jumps over the hold of a request under way does not give its count back (K1)', async () => {
  const put = rig.blobs.put.bind(rig.blobs);
  rig.blobs.put = async (...args) => {
    await put(...args);
    while (rig.quotaBooks.holds === 0) await setImmediate();
    rig.clock.now += DAY;
    await rig.quota.alarm();
  };
  await rig.send({});
  expect(rig.quotaBooks).toMatchObject({ held: 1, holds: 1, counted: 1 });
});

test('what was sent keeps its hold until the quota has heard of it, however long that takes (S12)', async () => {
  const { id } = await rig.send({});
  rig.applies.failNext(Number.POSITIVE_INFINITY);
  await attempt(rig, id, accepted());
  await rig.advance(2 * HOUR);
  expect(rig.engine.sendState(id)).toBe('open');
  expect(rig.quotaBooks).toMatchObject({ used: 0, held: 1, holds: 1 });
  rig.applies.failNext(0);
  await rig.advance(MINUTE);
  expect(rig.engine.sendState(id)).toBe('ended');
  expect(rig.quotaBooks).toMatchObject({ used: 1, held: 0, holds: 0 });
});
