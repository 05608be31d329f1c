import { beforeEach, describe, expect, test } from 'vitest';
import { type Db, queryAll } from '../sql.ts';
import type { AuditEntry } from './audit.ts';
import { directory, NOW, newId, rows } from './directory.fixture.ts';
import {
  addFirstSigningKey,
  deleteSpentSigningKeys,
  readSigningKeys,
  replaceSigningKey,
  type SigningKeyChange,
  type SigningKeyRow,
  signingKeyStatement,
} from './signing-keys.ts';

let db: Db;

beforeEach(async () => {
  db = await directory();
});

const key = (kid: string, changes: Partial<SigningKeyRow> = {}): SigningKeyRow => ({
  purpose: 'link',
  kid,
  ciphertext: `sealed ${kid}`,
  created_at: NOW,
  verify_until: null,
  ...changes,
});

const audit = (): AuditEntry => ({
  id: newId('aud', NOW),
  tenant_id: null,
  actor_key_id: null,
  action: 'signing_key.rotate',
  target_type: 'signing_key',
  target_id: 'link',
  details: null,
  request_id: null,
  at: NOW,
});

/** Replaces `seen` by a key made a minute later. */
const replacing = (seen: SigningKeyRow | undefined, kid: string, changes: Partial<SigningKeyChange> = {}) => {
  const { verify_until: _until, ...next } = key(kid, { created_at: NOW + 60_000 });
  return replaceSigningKey(db, {
    seen,
    next,
    previous_until: NOW + 1_000_000,
    end_older: false,
    reusable_before: NOW,
    audit: audit(),
    ...changes,
  });
};

const kids = async (): Promise<unknown[]> =>
  (await rows(db, 'SELECT kid, verify_until FROM signing_keys ORDER BY kid')).map(({ kid, verify_until: until }) => [
    kid,
    until,
  ]);
const audits = () => rows(db, 'SELECT id FROM audit_log');

test('of two first keys at once the earlier stays', async () => {
  await addFirstSigningKey(db, key('0'));
  await addFirstSigningKey(db, key('0', { ciphertext: 'another' }));
  await addFirstSigningKey(db, key('1'));
  expect(await readSigningKeys(db)).toEqual([key('0')]);
});

describe('replacing', () => {
  test('leaves the one before verifying, and is recorded', async () => {
    await addFirstSigningKey(db, key('0'));
    expect(await replacing(key('0'), '1')).toBe(true);
    expect(await kids()).toEqual([
      ['0', NOW + 1_000_000],
      ['1', null],
    ]);
    expect(await audits()).toHaveLength(1);
  });

  test('makes the first key where there is none', async () => {
    expect(await replacing(undefined, '0')).toBe(true);
    expect(await replacing(undefined, '1')).toBe(false);
    expect(await kids()).toEqual([['0', null]]);
    expect(await audits()).toHaveLength(1);
  });

  test('happens once for what was seen, whoever comes second', async () => {
    await addFirstSigningKey(db, key('0'));
    const both = await Promise.all([replacing(key('0'), '1'), replacing(key('0'), '1')]);
    expect(both).toEqual([true, false]);
    expect(await replacing(key('0'), '2')).toBe(false);
    expect(await replacing(key('1', { created_at: NOW }), '2')).toBe(false);
    expect(await kids()).toHaveLength(2);
    expect(await audits()).toHaveLength(1);
  });

  test('leaves other purposes alone', async () => {
    await addFirstSigningKey(db, key('0'));
    await addFirstSigningKey(db, key('0', { purpose: 'thread' }));
    await replacing(key('0'), '1');
    expect(await rows(db, "SELECT kid, verify_until FROM signing_keys WHERE purpose = 'thread'")).toEqual([
      { kid: '0', verify_until: null },
    ]);
  });

  test('uses an id again only when its time was over long enough ago', async () => {
    await addFirstSigningKey(db, key('0'));
    await replacing(key('0'), '1', { previous_until: NOW + 5 });
    const second = key('1', { created_at: NOW + 60_000 });
    const again = { next: { ...key('0'), created_at: NOW + 120_000 }, audit: audit() };
    await expect(replacing(second, '0', { ...again, reusable_before: NOW + 4 })).rejects.toThrow('UNIQUE');
    expect(await kids()).toEqual([
      ['0', NOW + 5],
      ['1', null],
    ]);
    expect(await replacing(second, '0', { ...again, reusable_before: NOW + 5 })).toBe(true);
    expect(await kids()).toEqual([
      ['0', null],
      ['1', NOW + 1_000_000],
    ]);
  });
});

test('a key is found by id and age, so not one that has taken its id', async () => {
  await addFirstSigningKey(db, key('0'));
  const find = async (row: SigningKeyRow) => {
    const { sql, bindings } = signingKeyStatement('link', row);
    return queryAll(db, sql, ...bindings);
  };
  expect(await find(key('0'))).toEqual([{ verify_until: null }]);
  expect(await find(key('0', { created_at: NOW + 1 }))).toEqual([]);
  expect(await find(key('1'))).toEqual([]);
});

test('spent keys are forgotten; those in use or still verifying stay', async () => {
  await addFirstSigningKey(db, key('0'));
  await replacing(key('0'), '1', { previous_until: NOW + 10 });
  await deleteSpentSigningKeys(db, NOW + 9);
  expect(await kids()).toHaveLength(2);
  await deleteSpentSigningKeys(db, NOW + 10);
  expect(await kids()).toEqual([['1', null]]);
});

test('a key that is ended takes every older one with it, and none of another purpose', async () => {
  await addFirstSigningKey(db, { ...key('0'), verify_until: null });
  await addFirstSigningKey(db, { ...key('a'), purpose: 'thread', verify_until: null });
  await replacing(key('0'), '1');
  const second = key('1', { created_at: NOW + 60_000 });
  await replacing(second, '2', { previous_until: NOW + 120_000, end_older: true });
  expect(await kids()).toEqual([
    ['0', NOW + 120_000],
    ['1', NOW + 120_000],
    ['2', null],
    ['a', null],
  ]);
});
