import type { Sql } from '../sql.ts';

export function readCounter(sql: Sql, metric: string, window: string): number {
  return (
    sql.first<{ value: number }>('SELECT value FROM counters WHERE metric = ? AND window = ?', metric, window)?.value ??
    0
  );
}

/** Adds to a counter (never below zero) and returns its new value. */
export function addToCounter(sql: Sql, metric: string, window: string, amount: number): number {
  const row = sql.first<{ value: number }>(
    `INSERT INTO counters (metric, window, value) VALUES (?1, ?2, MAX(0, ?3))
     ON CONFLICT (metric, window) DO UPDATE SET value = MAX(0, value + ?3) RETURNING value`,
    metric,
    window,
    amount,
  );
  return row?.value ?? 0;
}
