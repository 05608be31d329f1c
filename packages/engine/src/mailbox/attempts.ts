import type { Provider, TransportResult } from '@pmail/core/transport/types.ts';
import type { Sql } from '../sql.ts';

/**
 * The record of transport calls. A row is written with the claim, before anyone dials, so every call that may have
 * happened has left a trace; its end is filled in when somebody tells it, however late.
 */
export interface AttemptRow {
  message_rowid: number;
  n: number;
  token: string;
  provider: Provider;
  claimed_at: number;
  ended_at: number | null;
  result: TransportResult['kind'] | null;
  detail_json: string | null;
  late: number;
}

export function startAttempt(sql: Sql, rowid: number, token: string, provider: Provider, now: number): number {
  const row = sql.first<{ n: number }>(
    `INSERT INTO attempts (message_rowid, n, token, provider, claimed_at)
     VALUES (?1, 1 + COALESCE((SELECT MAX(n) FROM attempts WHERE message_rowid = ?1), 0), ?2, ?3, ?4) RETURNING n`,
    rowid,
    token,
    provider,
    now,
  );
  if (row === undefined) throw new Error('attempt not inserted');
  return row.n;
}

export function findAttempt(sql: Sql, token: string): AttemptRow | undefined {
  return sql.first<AttemptRow>('SELECT * FROM attempts WHERE token = ?', token);
}

export function endAttempt(sql: Sql, token: string, result: TransportResult, now: number, late: boolean): void {
  const { kind, ...detail } = result;
  sql.run(
    'UPDATE attempts SET ended_at = ?, result = ?, detail_json = ?, late = ? WHERE token = ? AND ended_at IS NULL',
    now,
    kind,
    JSON.stringify(detail),
    late ? 1 : 0,
    token,
  );
}

export function attemptsOf(sql: Sql, rowid: number): AttemptRow[] {
  return sql.all<AttemptRow>('SELECT * FROM attempts WHERE message_rowid = ? ORDER BY n', rowid);
}
