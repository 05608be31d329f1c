import { idFloor, parseId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { sentKey, sentPrefix } from '@pmail/core/storage/keys.ts';
import { parseSentMetadata, type SentEvidence } from '@pmail/core/storage/sent-metadata.ts';
import { setDeadline } from '../alarms.ts';
import { deleteMeta, readMeta, writeMeta } from '../meta.ts';
import type { BlobFacts } from '../ports.ts';
import { acceptedAnswer, knowsKey, recordKey } from './ledger.ts';
import { findMessage, partsOf } from './messages.ts';
import type { RebuildProgress } from './rebuild-types.ts';
import { goOnAbove, isRestored, noticeRestore } from './restore.ts';
import { restoreLost } from './restore-message.ts';
import { parseJson } from './rows.ts';
import { expiryTime } from './trusted-time.ts';
import type { MailboxWorld } from './world.ts';

/**
 * Makes the idempotency ledger again from the object store, where every sent copy says which key made it. A send whose
 * message is still here gets its ledger row back. A send that the mailbox no longer knows comes back as `uncertain`:
 * it was accepted, and whether it left nobody here can say, so it is shown and never sent.
 *
 * A copy can also belong to a request that never committed. Two such copies of one key differ from an accepted one in
 * that the key was tried again, so of several copies the last one counts.
 */

interface State {
  position: string | null;
  copies: number;
  keys: number;
  messages: number;
}

/**
 * Goes on with the rebuild, or begins one, until it is complete or the time of a request is over; the alarm does the
 * rest. A step that fails leaves what it had done. Who asks at once shares the steps.
 */
export async function rebuildLedger(world: MailboxWorld): Promise<RebuildProgress> {
  const ends = world.now() + LIMITS.rebuild_request_ms;
  for (;;) {
    world.rebuild.step ??= step(world).finally(() => {
      world.rebuild.step = null;
    });
    const progress = await world.rebuild.step;
    if (progress.complete || world.now() >= ends) return progress;
  }
}

async function begin(world: MailboxWorld): Promise<State> {
  const known = await world.events.lastSequence(world.owner.identity_id);
  if (isRestored(world.sql)) goOnAbove(world.sql, known ?? 0);
  else noticeRestore(world, known);
  // By a clock that runs a year ahead every copy would be too old.
  const floor = idFloor('msg', expiryTime(world.sql, world.now()) - LIMITS.rebuild_reach_ms);
  const state = { position: `${sentPrefix(world.owner)}${floor}`, copies: 0, keys: 0, messages: 0 };
  writeState(world, state);
  setDeadline(world, 'rebuild', world.now());
  return state;
}

async function step(world: MailboxWorld): Promise<RebuildProgress> {
  const { sql } = world;
  world.rebuild.awaited = true;
  const { position } = readState(world) ?? (await begin(world));
  if (position !== null) await lookAtCopies(world, position);
  // Not before all copies were looked at: a later one may show that an earlier was given up.
  const lost =
    readState(world)?.position !== null
      ? []
      : sql.all<{ key_hash: string; evidence_json: string }>(
          'SELECT key_hash, evidence_json FROM lost_sends ORDER BY message_id LIMIT ?',
          LIMITS.rebuild_restored_count,
        );
  for (const { key_hash: key, evidence_json: evidence } of lost) {
    const done = (): void => sql.run('DELETE FROM lost_sends WHERE key_hash = ?', key);
    const found = await restoreLost(world, parseJson<SentEvidence>(evidence), () => {
      done();
      const before = readState(world);
      if (before !== undefined) writeState(world, { ...before, messages: before.messages + 1 });
    });
    if (!found) done();
  }
  return finish(world);
}

/** Undefined where none is under way: not begun, or ended meanwhile by the news that the mailbox was put back. */
function readState(world: MailboxWorld): State | undefined {
  const value = readMeta(world.sql, 'rebuild');
  return value === undefined ? undefined : parseJson<State>(value);
}

function writeState(world: MailboxWorld, state: State): void {
  writeMeta(world.sql, 'rebuild', JSON.stringify(state));
}

async function lookAtCopies(world: MailboxWorld, position: string): Promise<void> {
  const { sql, owner } = world;
  const { objects, more } = await world.blobs.inspect(sentPrefix(owner), position, LIMITS.rebuild_listed_count);
  const copies = objects.flatMap((object) => copyOf(world, object));
  sql.transaction(() => {
    const state = readState(world);
    // Begun anew while the store answered, or to be: what the pages before this one showed is forgotten.
    if (state?.position !== position) return;
    let keys = 0;
    for (const evidence of copies) keys += noteCopy(world, evidence) ? 1 : 0;
    const last = objects.at(-1)?.key;
    writeState(world, {
      position: more && last !== undefined ? last : null,
      copies: state.copies + copies.length,
      keys: state.keys + keys,
      messages: state.messages,
    });
  });
}

function copyOf({ owner }: MailboxWorld, { key, metadata }: BlobFacts): SentEvidence[] {
  const id = parseId('msg', key.slice(sentPrefix(owner).length, -'.eml'.length));
  const evidence = id === undefined || key !== sentKey(owner, id) ? undefined : parseSentMetadata(owner, metadata);
  return evidence === undefined || evidence.message_id !== id ? [] : [evidence];
}

/** @returns whether a ledger row was made */
function noteCopy(world: MailboxWorld, evidence: SentEvidence): boolean {
  const { sql } = world;
  const { message_id: id, key_hash: key, at } = evidence;
  if (at + LIMITS.idempotency_retention_ms <= expiryTime(sql, world.now()) || knowsKey(sql, key, world.now()))
    return false;
  const row = findMessage(sql, id);
  if (row === undefined) {
    // Where nothing was put back, a copy without a message is of a request that was refused or is still under way.
    if (!isRestored(sql)) return false;
    // So is one of a request that this instance has seen. A copy of before under its key is not: the key was accepted.
    if (world.storing.has(id) || world.rebuild.turned_away.has(id)) return false;
    sql.run(
      'INSERT OR REPLACE INTO lost_sends (key_hash, message_id, evidence_json) VALUES (?, ?, ?)',
      key,
      id,
      JSON.stringify(evidence),
    );
    return false;
  }
  sql.run('DELETE FROM lost_sends WHERE key_hash = ?', key);
  recordKey(sql, {
    key_hash: key,
    fingerprint: evidence.fingerprint,
    operation: evidence.operation,
    message: acceptedAnswer(world.owner, partsOf(sql, row), evidence.labels),
    now: at,
  });
  return true;
}

function finish(world: MailboxWorld): RebuildProgress {
  const { sql } = world;
  return sql.transaction(() => {
    const { position, ...counts } = readState(world) ?? { position: '', copies: 0, keys: 0, messages: 0 };
    const complete = position === null && sql.first('SELECT 1 FROM lost_sends LIMIT 1') === undefined;
    if (complete) {
      deleteMeta(sql, 'rebuild', 'restored');
      world.rebuild.awaited = false;
      world.rebuild.turned_away.clear();
      world.log('info', 'ledger_rebuilt', { ...counts });
    }
    setDeadline(world, 'rebuild', complete ? null : world.now());
    return { complete, ...counts };
  });
}
