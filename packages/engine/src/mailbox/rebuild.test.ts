import { LIMITS } from '@pmail/core/limits.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { DAY, HOUR, JO, KIM, LEE, MailboxRig, MINUTE, type SendOptions } from './mailbox.fixture.ts';
import type { RebuildProgress } from './rebuild-types.ts';
import { accepted, attempt, Run, report } from './transport.fixture.ts';

let rig: MailboxRig;

beforeEach(() => {
  rig = new MailboxRig();
});

async function rebuild(restored = false): Promise<RebuildProgress> {
  let progress = await rig.engine.rebuildLedger(restored);
  while (!progress.complete) progress = await rig.engine.rebuildLedger(false);
  return progress;
}

async function replay(first: unknown, options: SendOptions): Promise<void> {
  const again = await rig.submit(options);
  expect(again).toMatchObject({ ok: true, deduplicated: true });
  expect(JSON.stringify({ ...again, deduplicated: false })).toBe(JSON.stringify(first));
}

describe('a ledger whose rows are gone', () => {
  const options = (n: number): SendOptions => ({
    key: `key ${n}`,
    body: {
      to: [JO, { address: KIM, name: 'Kim "K" Ó' }],
      bcc: [LEE],
      subject: `Größe ${n}`,
      html: `<p>Hello ${n}</p>`,
      labels: ['b', 'a'],
      metadata: { order: String(n) },
      attachments: [{ filename: 'a.txt', content_type: 'text/plain', content_base64: 'YQ==' }],
    },
    directory: { suppressions: { [KIM]: 'hard_bounce' } },
  });

  test('is made again from the object store, and every key answers as before', async () => {
    const answers = [];
    for (let n = 1; n <= 4; n++) answers.push(await rig.submit(options(n)));
    // What becomes of the messages later is no part of the answer.
    const ids = answers.map((answer) => (answer.ok ? answer.message.id : undefined));
    if (ids[0] === undefined || ids[1] === undefined) throw new Error('refused');
    await attempt(rig, ids[0], accepted({ provider_message_id: 'prov-1' }));
    await rig.engine.applyEvent(report(rig, 'bounced'));
    rig.engine.updateMessage(ids[0], { labels_add: ['later'] });
    await rig.engine.cancel(ids[1]);

    rig.sql.run('DELETE FROM idempotency');
    expect(await rebuild()).toEqual({ complete: true, copies: 4, keys: 4, messages: 0 });
    expect(rig.rows('messages')).toBe(4);
    for (let n = 1; n <= 4; n++) await replay(answers[n - 1], options(n));
    const other = await rig.submit({ ...options(1), body: { subject: 'Another' } });
    expect(other).toMatchObject({ code: 'idempotency_conflict', details: { original_message_id: ids[0] } });
    expect(rig.rows('messages')).toBe(4);
  });

  test('keeps the rows that are there, and their time', async () => {
    await rig.send({ key: 'a' });
    await rig.advance(HOUR);
    await rig.send({ key: 'b' });
    const before = rig.sql.all('SELECT * FROM idempotency ORDER BY key_hash');
    expect(await rebuild()).toEqual({ complete: true, copies: 2, keys: 0, messages: 0 });
    expect(rig.sql.all('SELECT * FROM idempotency ORDER BY key_hash')).toEqual(before);
    rig.sql.run('DELETE FROM idempotency');
    await rebuild();
    expect(rig.sql.all('SELECT * FROM idempotency ORDER BY key_hash')).toEqual(before);
  });

  test('does not bring a key back whose time has passed', async () => {
    await rig.send({ key: 'old' });
    await rig.advance(LIMITS.idempotency_retention_ms - MINUTE);
    await rig.send({ key: 'young' });
    rig.sql.run('DELETE FROM idempotency');
    rig.skip(MINUTE);
    expect(await rebuild()).toMatchObject({ keys: 1 });
    expect(await rig.submit({ key: 'old' })).toMatchObject({ ok: true, deduplicated: false });
    expect(await rig.submit({ key: 'young' })).toMatchObject({ ok: true, deduplicated: true });
  });

  test('leaves copies alone whose request never committed', async () => {
    await rig.send({ key: 'kept' });
    rig.reserves.failNext();
    rig.blobs.deletes.failNext();
    expect(await rig.submit({ key: 'refused' })).toMatchObject({ code: 'unavailable' });
    expect(rig.blobs.keys).toHaveLength(2);
    expect(await rebuild()).toEqual({ complete: true, copies: 2, keys: 0, messages: 0 });
    expect(rig.rows('messages')).toBe(1);
    expect(await rig.submit({ key: 'refused' })).toMatchObject({ ok: true, deduplicated: false });
  });

  test('goes through a mailbox larger than one step', async () => {
    const count = LIMITS.rebuild_listed_count + 5;
    for (let n = 0; n < count; n++) {
      if (n % 100 === 0) rig.skip(DAY);
      await rig.send({ key: `key ${n}` });
    }
    rig.sql.run('DELETE FROM idempotency');
    // A page that fails ends the request; the alarm goes on where it was.
    rig.blobs.lists.failNext(1, 1);
    await expect(rig.engine.rebuildLedger(false)).rejects.toThrow();
    expect(rig.rows('idempotency')).toBe(LIMITS.rebuild_listed_count);
    await rig.advance(MINUTE);
    expect(rig.rows('idempotency')).toBe(count);
    expect(rig.meta('rebuild')).toBeUndefined();
    // Asked again, one request goes through all of it.
    expect(await rig.engine.rebuildLedger(false)).toEqual({ complete: true, copies: count, keys: 0, messages: 0 });
  });

  test('two who ask at once share one step', async () => {
    await rig.send({ key: 'a' });
    rig.sql.run('DELETE FROM idempotency');
    const [one, two] = await Promise.all([rig.engine.rebuildLedger(false), rig.engine.rebuildLedger(false)]);
    expect(one).toEqual({ complete: true, copies: 1, keys: 1, messages: 0 });
    expect(two).toEqual(one);
  });
});

describe('a mailbox put back to an earlier time (P7)', () => {
  /** One send before the point in time that has left since, one that has not been told to anybody, two after it. */
  async function turnBack() {
    const early = await rig.submit({ key: 'early', body: { to: [JO] } });
    const back = rig.storage.pointInTime();
    rig.clock.now += MINUTE;
    if (!early.ok) throw new Error(early.code);
    await attempt(rig, early.message.id, accepted());
    const options = { key: 'late', body: { to: [JO], cc: [KIM], bcc: [LEE], labels: ['x'], subject: 'Late' } };
    const late = await rig.submit(options);
    if (!late.ok) throw new Error(late.code);
    await attempt(rig, late.message.id, accepted({ provider_message_id: 'prov-late' }));
    await rig.advance(HOUR);
    const indexed = rig.dispatched.length;
    back();
    rig.restart();
    return { early, late, options, indexed };
  }

  test('accepts nothing new until its ledger is whole, and then answers the lost key as before', async () => {
    const { late, options } = await turnBack();
    const again = await rig.submit(options);
    expect(again).toMatchObject({ ok: false, code: 'unavailable', details: { step: 'ledger' } });
    expect(await rig.submit({ key: 'new' })).toMatchObject({ code: 'unavailable' });
    await rig.advance(MINUTE);
    expect(rig.meta('restored')).toBeUndefined();
    await replay(late, options);
    expect(await rig.submit({ key: 'new' })).toMatchObject({ ok: true, deduplicated: false });
    expect(rig.sql.all('SELECT id FROM messages ORDER BY id')).toHaveLength(3);
  });

  test('shows the lost send as uncertain, with all that its copy tells, and a person settles it', async () => {
    const { late } = await turnBack();
    expect(await rebuild()).toEqual({ complete: true, copies: 2, keys: 0, messages: 1 });
    const { id } = late.message;
    const shown = rig.message(id);
    expect(shown).toMatchObject({
      status: 'uncertain',
      status_reason: 'mailbox_restored',
      flags: ['restored'],
      thread_id: late.message.thread_id,
      to: [{ address: JO }],
      cc: [{ address: KIM }],
      bcc: [{ address: LEE }],
      labels: ['x'],
      subject: 'Late',
      received_at: late.message.received_at,
    });
    expect(rig.statuses(id)).toEqual({ [JO]: 'uncertain', [KIM]: 'uncertain', [LEE]: 'uncertain' });
    expect(rig.eventData('message.uncertain')).toContainEqual(
      expect.objectContaining({ message_id: id, reason: 'mailbox_restored' }),
    );
    await rig.advance(DAY);
    expect(rig.outbound.take().filter(({ kind }) => kind === 'send')).toHaveLength(2);
    expect(await rig.engine.resolve(id, 'sent')).toMatchObject({ ok: true, message: { status: 'submitted' } });
  });

  test('a later report settles it', async () => {
    const { late } = await turnBack();
    await rebuild();
    const event = report(rig, 'delivered', {
      recipient: JO,
      subject: 'Late',
      provider_message_id: 'prov-late',
      occurred_at: Date.parse(late.message.received_at) + MINUTE,
    });
    expect(await rig.engine.applyEvent(event)).toMatchObject({ kind: 'reconciled' });
    expect(rig.statuses(late.message.id)).toMatchObject({ [JO]: 'delivered', [KIM]: 'uncertain' });
  });

  test('sends nothing that it takes for queued, because it may have left', async () => {
    const { early } = await turnBack();
    expect(rig.message(early.message.id).status).toBe('queued');
    expect(new Run(rig, early.message.id).begin()).toEqual({ kind: 'not_queued' });
    expect(rig.message(early.message.id)).toMatchObject({ status: 'uncertain', status_reason: 'mailbox_restored' });
    await rig.advance(HOUR);
    expect(rig.quotaBooks.holds).toBe(0);
  });

  test('keeps the number and the bytes of an event that was told in the time that is forgotten', async () => {
    const first = await rig.submit({ key: 'first', body: { to: [JO] } });
    if (!first.ok) throw new Error(first.code);
    await attempt(rig, first.message.id, accepted());
    const waiting = rig.sql.all('SELECT seq, event_id, payload_json FROM outbox');
    const back = rig.storage.pointInTime();
    await rig.advance(HOUR);
    const second = await rig.submit({ key: 'second', body: { to: [JO] } });
    if (!second.ok) throw new Error(second.code);
    await attempt(rig, second.message.id, accepted({ provider_message_id: 'prov-second' }));
    await rig.advance(HOUR);
    const told = structuredClone(rig.dispatched);
    back();
    rig.restart();
    await rig.advance(HOUR);
    expect(waiting).toHaveLength(1);
    expect(rig.sql.all('SELECT seq, event_id, payload_json FROM outbox ORDER BY seq LIMIT 1')).toEqual(waiting);
    expect(rig.sql.all('SELECT seq FROM outbox WHERE dispatched_at IS NULL')).toEqual([]);
    const sequences = rig.dispatched.slice(told.length).map(({ sequence }) => sequence);
    expect(sequences.length).toBeGreaterThan(0);
    expect(Math.min(...sequences)).toBeGreaterThan(Math.max(...told.map(({ sequence }) => sequence)));
  });

  test('keeps them of as many as waited, however many batches they are', async () => {
    const count = LIMITS.outbox_batch_max * 2 + 50;
    rig.sink.failNext(1_000);
    for (let n = 0; n < count; n++) {
      const known = { id: rig.newId('evt', rig.clock.now), occurred_at: rig.clock.now };
      await rig.engine.emitEvent('suppression.created', { n }, known);
    }
    const waiting = rig.sql.all('SELECT seq, event_id, payload_json FROM outbox ORDER BY seq');
    const back = rig.storage.pointInTime();
    rig.sink.failNext(0);
    await rig.send({ key: 'forgotten', body: { to: [JO] } });
    await rig.engine.emitEvent('suppression.created', {}, { id: rig.newId('evt', 0), occurred_at: 0 });
    await rig.advance(HOUR);
    const told = rig.dispatched.length;
    expect(told).toBeGreaterThan(count);
    back();
    rig.restart();
    await rig.advance(HOUR);
    expect(rig.sql.all('SELECT seq, event_id, payload_json FROM outbox ORDER BY seq LIMIT ?', count)).toEqual(waiting);
    expect(new Set(rig.dispatched.map(({ id }) => id)).size).toBe(rig.dispatched.length);
    expect(rig.sql.all('SELECT seq FROM outbox WHERE dispatched_at IS NULL')).toEqual([]);
  });

  test('numbers its events above all that were given out before', async () => {
    const { indexed } = await turnBack();
    const highest = rig.lastSequence ?? 0;
    // It goes on without knowing, and its next event has a number that is taken.
    await rig.engine.emitEvent(
      'identity.updated',
      {},
      { id: rig.newId('evt', rig.clock.now), occurred_at: rig.clock.now },
    );
    await rig.advance(MINUTE);
    const fresh = rig.dispatched.slice(indexed);
    expect(fresh.map(({ type }) => type)).toContain('identity.updated');
    for (const { sequence } of fresh) expect(sequence).toBeGreaterThan(highest);
    expect(new Set(rig.dispatched.map(({ sequence }) => sequence)).size).toBe(rig.dispatched.length);
    const told = rig.sql.all<{ seq: number; payload_json: string }>('SELECT seq, payload_json FROM outbox');
    for (const { seq, payload_json: payload } of told) expect(JSON.parse(payload)).toMatchObject({ sequence: seq });
    // Found out by that, it has made its ledger again by itself.
    expect(rig.meta('restored')).toBeUndefined();
    expect(rig.rows('messages')).toBe(2);
  });

  test('keeps the copies that its sweep would take for orphans', async () => {
    const { late } = await turnBack();
    const copies = rig.blobs.keys;
    await rig.advance(3 * DAY);
    expect(rig.blobs.keys).toEqual(copies);
    expect(rig.message(late.message.id).status).toBe('uncertain');
  });

  test('of two copies of one key the one that was accepted counts', async () => {
    const back = rig.storage.pointInTime();
    rig.reserves.failNext();
    rig.blobs.deletes.failNext();
    await rig.submit({ key: 'twice' });
    const second = await rig.submit({ key: 'twice' });
    if (!second.ok) throw new Error(second.code);
    await attempt(rig, second.message.id, accepted());
    await rig.advance(MINUTE);
    back();
    rig.restart();
    expect(await rebuild()).toMatchObject({ copies: 2, messages: 1 });
    await replay(second, { key: 'twice' });
    expect(rig.sql.all('SELECT id FROM messages')).toEqual([{ id: second.message.id }]);
  });

  test('said again while it is being rebuilt changes nothing', async () => {
    await rig.send({ key: 'early' });
    const back = rig.storage.pointInTime();
    await rig.send({ key: 'lost' });
    back();
    rig.restart();
    rig.blobs.gets.failNext();
    await expect(rig.engine.rebuildLedger(true)).rejects.toThrow();
    expect(rig.meta('restored')).toBeDefined();
    expect(await rig.engine.rebuildLedger(true)).toEqual({ complete: true, copies: 2, keys: 0, messages: 1 });
  });

  test('can be said to be one, where no event tells', async () => {
    const back = rig.storage.pointInTime();
    const lost = await rig.submit({ key: 'lost' });
    back();
    rig.restart();
    expect(await rebuild()).toMatchObject({ messages: 0 });
    expect(await rebuild(true)).toMatchObject({ messages: 1 });
    await replay(lost, { key: 'lost' });
  });

  test.each(['store', 'index'])('goes on when the %s fails meanwhile', async (what) => {
    const { late, options } = await turnBack();
    await rig.submit({ key: 'new' });
    if (what === 'store') rig.blobs.gets.failNext(2);
    else rig.sequences.failNext(2);
    await rig.advance(HOUR);
    await replay(late, options);
  });

  test('a filtered recipient stays one', async () => {
    const back = rig.storage.pointInTime();
    const options = {
      key: 'k',
      body: { to: [JO], bcc: [KIM] },
      directory: { suppressions: { [KIM]: 'complaint' as const } },
    };
    const first = await rig.submit(options);
    const all = { key: 'all', directory: { suppressions: { [JO]: 'manual' as const } } };
    const filtered = await rig.submit(all);
    await rig.advance(MINUTE);
    back();
    rig.restart();
    await rebuild(true);
    if (!first.ok || !filtered.ok) throw new Error('refused');
    expect(rig.statuses(first.message.id)).toEqual({ [JO]: 'uncertain', [KIM]: 'suppressed' });
    expect(rig.message(filtered.message.id)).toMatchObject({ status: 'suppressed', status_reason: null });
    await replay(first, options);
    await replay(filtered, all);
  });
});
