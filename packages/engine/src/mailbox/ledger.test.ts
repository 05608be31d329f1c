import { sha256Hex } from '@pmail/core/hash.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { DAY, JO, KIM, MailboxRig, MINUTE } from './mailbox.fixture.ts';
import { accepted, attempt, REJECTED } from './transport.fixture.ts';

const YEAR = 365 * DAY;

let rig: MailboxRig;

beforeEach(() => {
  rig = new MailboxRig();
});

describe('the same key and body', () => {
  test('answers with the same bytes, whatever has become of the message', async () => {
    const body = { to: [JO, { address: KIM, name: 'Kim' }], subject: 'Hi', text: 'Hello', html: '<p>Hello</p>' };
    const labels = ['b', 'a'];
    const first = await rig.submit({ body: { ...body, labels, metadata: { order: '4471' } } });
    if (!first.ok) throw new Error(first.code);
    await attempt(rig, first.message.id, accepted());
    rig.engine.updateMessage(first.message.id, { labels_add: ['c'] });
    rig.clock.now += 3 * DAY;
    const again = await rig.submit({ body: { ...body, labels, metadata: { order: '4471' } } });
    expect(again).toMatchObject({ ok: true, deduplicated: true });
    expect(JSON.stringify({ ...again, deduplicated: false })).toBe(JSON.stringify(first));
    expect(rig.rows('messages')).toBe(1);
    expect(rig.reserves.calls).toBe(1);
    expect(rig.outbound.sent).toHaveLength(1);
  });

  test('answers with the same bytes when the body is longer than a ledger row could hold (S15)', async () => {
    const text = 'wörter '.repeat(90_000);
    const first = await rig.submit({ body: { text } });
    const again = await rig.submit({ body: { text } });
    expect(again).toMatchObject({ ok: true, deduplicated: true });
    expect(JSON.stringify({ ...again, deduplicated: false })).toBe(JSON.stringify(first));
    const row = rig.sql.first<{ n: number }>('SELECT LENGTH(response_json) AS n FROM idempotency');
    expect(row?.n).toBeLessThan(4_000);
  });

  test('answers after the provider refused the mail, and says what was accepted', async () => {
    const body = { to: [JO], subject: 'Your booking 4471', text: 'Confirmed.' };
    const first = await rig.submit({ key: 'k-3', body });
    if (!first.ok) throw new Error(first.code);
    await attempt(rig, first.message.id, REJECTED);
    const again = await rig.submit({ key: 'k-3', body });
    expect(again).toMatchObject({ ok: true, deduplicated: true, message: { id: first.message.id, status: 'queued' } });
    expect(rig.message(first.message.id)).toMatchObject({ status: 'rejected', status_reason: 'provider_validation' });
    const fixed = await rig.submit({ key: 'k-4', body: { ...body, text: 'Fixed.' } });
    expect(fixed).toMatchObject({ ok: true, deduplicated: false });
  });

  test('does not ask whether the policy would still take it', async () => {
    await rig.submit();
    const again = await rig.submit({ identity: { status: 'paused', pause_reason: 'manual' } });
    expect(again).toMatchObject({ ok: true, deduplicated: true });
  });

  test('answers from another instance too', async () => {
    const first = await rig.submit();
    rig.restart();
    expect(await rig.submit()).toEqual({ ...first, deduplicated: true });
  });
});

describe('the same key with another body', () => {
  test('is a conflict that names the original, and has no effect (S8)', async () => {
    const first = await rig.send({ key: 'k-1' });
    const before = rig.storage.dump();
    const other = await rig.submit({ key: 'k-1', body: { text: 'Something else' } });
    expect(other).toEqual({
      ok: false,
      code: 'idempotency_conflict',
      details: { original_message_id: first.id },
    });
    expect(rig.storage.dump()).toBe(before);
    expect(rig.blobs.objects.size).toBe(1);
    expect(rig.quotaBooks).toMatchObject({ held: 1, counted: 1 });
  });
});

describe('a key under way', () => {
  test('is refused until the first request has its answer', async () => {
    const open = rig.blobs.puts.hold();
    const request = await rig.request();
    const first = rig.engine.submit(request);
    expect(await rig.engine.submit(request)).toEqual({ ok: false, code: 'request_in_progress' });
    expect(await rig.engine.submit({ ...request, fingerprint: 'other' })).toMatchObject({
      code: 'request_in_progress',
    });
    open();
    expect(await first).toMatchObject({ ok: true, deduplicated: false });
    expect(await rig.engine.submit(request)).toMatchObject({ ok: true, deduplicated: true });
  });

  test.each(['refused', 'failed'] as const)('is free again when the first request was %s', async (how) => {
    if (how === 'failed') rig.blobs.puts.failNext();
    const paused = how === 'refused' ? ({ status: 'paused', pause_reason: 'manual' } as const) : {};
    const refused = await rig.submit({ identity: paused });
    expect(refused).toMatchObject({ ok: false, code: how === 'refused' ? 'identity_paused' : 'unavailable' });
    expect(rig.rows('idempotency')).toBe(0);
    expect(await rig.submit()).toMatchObject({ ok: true, deduplicated: false });
  });

  test('is free again when the request died', async () => {
    rig.dieAt('submit.planned');
    await expect(rig.submit()).rejects.toThrow('submit.planned');
    expect(await rig.submit()).toMatchObject({ ok: true, deduplicated: false });
  });
});

describe('after thirty days', () => {
  test('a key is new again, and a moment before it is not (S9)', async () => {
    const first = await rig.send({ key: 'k-1' });
    await rig.advance(30 * DAY - 1);
    expect(await rig.submit({ key: 'k-1' })).toMatchObject({ deduplicated: true, message: { id: first.id } });
    rig.clock.now += 1;
    const second = await rig.submit({ key: 'k-1', body: { text: 'Next month' } });
    expect(second).toMatchObject({ ok: true, deduplicated: false });
    expect(await rig.submit({ key: 'k-1' })).toMatchObject({ code: 'idempotency_conflict' });
    expect(rig.rows('idempotency')).toBe(1);
  });

  test.each([1, 2])(
    'a clock that runs a year ahead makes no key new and deletes none, %i clean-ups long (K1)',
    async (n) => {
      const first = await rig.send({ key: 'k-1' });
      await attempt(rig, first.id, accepted());
      rig.clock.now += YEAR;
      for (let i = 0; i < n; i++) {
        expect(await rig.submit({ key: 'k-1' })).toMatchObject({ deduplicated: true, message: { id: first.id } });
        await rig.advance(i * DAY);
        await rig.engine.alarm();
      }
      expect(rig.rows('idempotency')).toBe(1);
      expect(rig.rows('outbox')).toBeGreaterThan(0);
      rig.clock.now -= YEAR;
      expect(await rig.submit({ key: 'k-1' })).toMatchObject({ deduplicated: true, message: { id: first.id } });
    },
  );

  test('a year that has really passed makes it new (S9)', async () => {
    await rig.send({ key: 'k-1' });
    rig.clock.now += YEAR;
    await rig.advance(3 * DAY);
    expect(rig.rows('idempotency')).toBe(0);
    expect(await rig.submit({ key: 'k-1' })).toMatchObject({ ok: true, deduplicated: false });
  });

  test('the daily clean-up takes the row away, no sooner (S9)', async () => {
    await rig.send();
    await rig.advance(30 * DAY - MINUTE);
    expect(rig.rows('idempotency')).toBe(1);
    await rig.advance(2 * DAY);
    expect(rig.rows('idempotency')).toBe(0);
  });
});

test('a key stands nowhere but as its hash', async () => {
  const key = 'customer 4471 / booking 88';
  const message = await rig.send({ key });
  await attempt(rig, message.id, accepted());
  expect(rig.storage.dump()).not.toContain(key);
  expect(rig.quotaStorage.dump()).not.toContain(key);
  expect(JSON.stringify([...rig.blobs.objects.values()].map(({ metadata }) => metadata))).not.toContain(key);
  const hash = await sha256Hex(key);
  expect(rig.sql.all('SELECT key_hash FROM idempotency')).toEqual([{ key_hash: hash }]);
  const [stored] = [...rig.blobs.objects.values()];
  expect(stored?.metadata).toMatchObject({ idem_key_sha256: hash, message: message.id, operation: 'send' });
});
