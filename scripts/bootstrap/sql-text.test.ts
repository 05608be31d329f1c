import { DatabaseSync } from 'node:sqlite';
import { memoryDirectory } from '@pmail/testkit/node-sql.ts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anotherPlatformKey, domainReady, firstRows, hashKey } from './rows.ts';
import { sqlText } from './sql-text.ts';

describe('SQL with its values written in', () => {
  it('gives back every value as it was', () => {
    const database = new DatabaseSync(':memory:');
    const value = fc.oneof(
      fc.string().filter((text) => !text.includes('\0') && text.isWellFormed()),
      fc.integer(),
      fc.constant(null),
    );
    fc.assert(
      fc.property(value, value, (a, b) => {
        const text = sqlText({ sql: "SELECT ? AS a, 'it''s ?' AS fixed, ? AS b", bindings: [a, b] });
        expect({ ...database.prepare(text).get() }).toEqual({ a, fixed: "it's ?", b });
      }),
    );
  });

  it('takes numbered placeholders, and refuses one without a value and a NUL', () => {
    const database = new DatabaseSync(':memory:');
    const text = sqlText({ sql: 'SELECT ?2 AS a, ?1 AS b, ?2 AS c', bindings: ['x', "y'z"] });
    expect({ ...database.prepare(text).get() }).toEqual({ a: "y'z", b: 'x', c: "y'z" });
    expect(() => sqlText({ sql: 'SELECT ?', bindings: [] })).toThrow();
    expect(() => sqlText({ sql: 'SELECT ?', bindings: ['a\0b'] })).toThrow();
  });
});

describe('the first rows of a deployment', () => {
  it('stand in the directory with a key that proves itself', () => {
    const pepper = Buffer.alloc(32, 7);
    const { statements, key } = firstRows({
      platform_domain: 'agents.example',
      system_from: { name: "Pylota's Mail", local_part: 'no-reply' },
      owner_email: 'postmaster@agents.example',
      pepper,
      expires_at: 1_000,
      domain_state: 'pending',
      now: 500,
    });
    const directory = memoryDirectory();
    directory.exec(statements.map(sqlText).join('\n'));
    const row = directory.prepare('SELECT hash, level, expires_at FROM api_keys').get();
    expect({ ...row }).toEqual({ hash: hashKey(pepper, key), level: 'platform', expires_at: 1_000 });
    const identity = directory
      .prepare(
        'SELECT i.is_system, i.display_name, a.address FROM identities i JOIN addresses a ON a.identity_id = i.id',
      )
      .get();
    expect({ ...identity }).toEqual({
      is_system: 1,
      display_name: "Pylota's Mail",
      address: 'no-reply@agents.example',
    });
    expect({ ...directory.prepare('SELECT state, kind FROM domains').get() }).toEqual({
      state: 'pending',
      kind: 'platform',
    });
  });

  it('have a domain that waits until its operator says, once, that it can send', () => {
    const directory = memoryDirectory();
    const say = (domain: string, now: number) => directory.exec(domainReady(domain, now).map(sqlText).join('\n'));
    const { statements } = firstRows({
      platform_domain: 'agents.example',
      system_from: { name: 'Pylota Mail', local_part: 'no-reply' },
      owner_email: 'postmaster@agents.example',
      pepper: Buffer.alloc(32, 7),
      expires_at: null,
      domain_state: 'pending',
      now: 500,
    });
    directory.exec(statements.map(sqlText).join('\n'));
    const domain = () => ({ ...directory.prepare('SELECT state, state_changed_at AS at FROM domains').get() });
    say('other.example', 600);
    expect(domain()).toEqual({ state: 'pending', at: 500 });
    say('agents.example', 700);
    say('agents.example', 800);
    expect(domain()).toEqual({ state: 'healthy', at: 700 });
    directory.exec("UPDATE domains SET state = 'suspended'");
    say('agents.example', 900);
    expect(domain()).toEqual({ state: 'suspended', at: 700 });
    const said = directory
      .prepare("SELECT details_json AS details, created_at AS at FROM audit_log WHERE action = 'platform.domain_ready'")
      .all();
    expect(said.map((row) => ({ ...row }))).toEqual([{ details: '{"domain":"agents.example"}', at: 700 }]);
  });

  it('end with the pepper that made them, which is written down, and one new key is left', () => {
    const [before, after] = [Buffer.alloc(32, 7), Buffer.alloc(32, 8)];
    const first = firstRows({
      platform_domain: 'agents.example',
      system_from: { name: 'Pylota Mail', local_part: 'no-reply' },
      owner_email: 'postmaster@agents.example',
      pepper: before,
      expires_at: null,
      domain_state: 'healthy',
      now: 500,
    });
    const directory = memoryDirectory();
    const run = ({ statements }: { statements: Parameters<typeof sqlText>[0][] }) =>
      directory.exec(statements.map(sqlText).join('\n'));
    run(first);
    const second = anotherPlatformKey(after, null, 600);
    run(second);
    run(anotherPlatformKey(Buffer.alloc(32, 9), null, 700));
    const keys = directory.prepare('SELECT hash, revoked_at FROM api_keys ORDER BY created_at').all();
    expect(keys.map((row) => ({ ...row }))).toMatchObject([
      { hash: hashKey(before, first.key), revoked_at: 600 },
      { hash: hashKey(after, second.key), revoked_at: 700 },
      { revoked_at: null },
    ]);
    const audited = directory
      .prepare(
        "SELECT k.created_at AS at FROM audit_log a JOIN api_keys k ON k.id = a.target_id WHERE a.action LIKE '%pepper' ORDER BY at",
      )
      .all();
    expect(audited.map(({ at }) => at)).toEqual([600, 700]);
  });
});
