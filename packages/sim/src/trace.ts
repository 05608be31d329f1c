import type { DatabaseSync } from 'node:sqlite';

/**
 * Lets the database itself write down every change of a status or a lock, so that no change can go unseen. A row that comes
 * into being has no status before; a report that was noted at a recipient stands behind the change that came before it.
 */
export const TRACE_SQL = `
  CREATE TABLE sim_trace (n INTEGER PRIMARY KEY, rowid_ INTEGER, address TEXT, old TEXT, new TEXT);
  CREATE TABLE sim_report (n INTEGER PRIMARY KEY, rowid_ INTEGER, address TEXT, ids TEXT, after_n INTEGER);
  CREATE TABLE sim_composed (n INTEGER PRIMARY KEY, id TEXT, sha256 TEXT);
  CREATE TRIGGER sim_committed AFTER INSERT ON messages WHEN NEW.direction = 'outbound' BEGIN
    INSERT INTO sim_composed (id, sha256) VALUES (NEW.id, sim_stored(NEW.raw_r2_key));
  END;
  CREATE TABLE sim_turn (n INTEGER PRIMARY KEY, id TEXT, thread INTEGER, what TEXT, at INTEGER);
  CREATE TRIGGER sim_turn_begun AFTER INSERT ON messages WHEN NEW.direction = 'outbound' BEGIN
    INSERT INTO sim_turn (id, thread, what, at) VALUES (NEW.id, NEW.thread_seq, CASE
      WHEN NEW.status <> 'queued' THEN 'ended'
      WHEN EXISTS (SELECT 1 FROM messages WHERE thread_seq = NEW.thread_seq AND rowid <> NEW.rowid) THEN 'joined'
      ELSE 'opened' END, sim_now());
  END;
  CREATE TRIGGER sim_turn_claimed AFTER INSERT ON attempts BEGIN
    INSERT INTO sim_turn (id, thread, what, at)
    SELECT id, thread_seq, 'claimed', sim_now() FROM messages WHERE rowid = NEW.message_rowid;
  END;
  CREATE TRIGGER sim_turn_answered AFTER UPDATE OF ended_at ON attempts BEGIN
    INSERT INTO sim_turn (id, thread, what, at)
    SELECT id, thread_seq, 'ended', sim_now() FROM messages WHERE rowid = NEW.message_rowid;
  END;
  CREATE TRIGGER sim_turn_left AFTER UPDATE OF status ON messages WHEN OLD.status = 'queued' AND NEW.status <> 'queued' BEGIN
    INSERT INTO sim_turn (id, thread, what, at) VALUES (NEW.id, NEW.thread_seq, 'ended', sim_now());
  END;
  CREATE TRIGGER sim_turn_put_off AFTER INSERT ON meta WHEN NEW.k LIKE 'backoff:%' BEGIN
    INSERT INTO sim_turn (id, thread, what, at)
    SELECT id, thread_seq, 'ended', sim_now() FROM messages WHERE id = substr(NEW.k, 9);
  END;
  CREATE TABLE sim_lock (n INTEGER PRIMARY KEY, seq INTEGER, old TEXT, new TEXT, old_until INTEGER, at INTEGER);
  CREATE TRIGGER sim_delivery AFTER UPDATE OF status ON deliveries WHEN OLD.status <> NEW.status BEGIN
    INSERT INTO sim_trace (rowid_, address, old, new) VALUES (NEW.message_rowid, NEW.address, OLD.status, NEW.status);
  END;
  CREATE TRIGGER sim_message AFTER UPDATE OF status ON messages WHEN OLD.status <> NEW.status BEGIN
    INSERT INTO sim_trace (rowid_, address, old, new) VALUES (NEW.rowid, NULL, OLD.status, NEW.status);
  END;
  CREATE TRIGGER sim_delivery_born AFTER INSERT ON deliveries BEGIN
    INSERT INTO sim_trace (rowid_, address, old, new) VALUES (NEW.message_rowid, NEW.address, '', NEW.status);
  END;
  CREATE TRIGGER sim_message_born AFTER INSERT ON messages BEGIN
    INSERT INTO sim_trace (rowid_, address, old, new) VALUES (NEW.rowid, NULL, '', NEW.status);
  END;
  CREATE TRIGGER sim_reported AFTER UPDATE OF provider_event_ids_json ON deliveries
  WHEN OLD.provider_event_ids_json <> NEW.provider_event_ids_json BEGIN
    INSERT INTO sim_report (rowid_, address, ids, after_n)
    VALUES (NEW.message_rowid, NEW.address, NEW.provider_event_ids_json, (SELECT COALESCE(MAX(n), 0) FROM sim_trace));
  END;
  CREATE TRIGGER sim_thread AFTER UPDATE OF lock_owner ON threads WHEN OLD.lock_owner IS NOT NEW.lock_owner BEGIN
    INSERT INTO sim_lock (seq, old, new, old_until, at)
    VALUES (NEW.seq, OLD.lock_owner, NEW.lock_owner, OLD.lock_until, sim_now());
  END;
`;

/** The same in a quota: the most that each counter of sends ever stood at, on each day. */
export const QUOTA_TRACE_SQL = `
  CREATE TABLE sim_most (metric TEXT, window TEXT, most INTEGER, PRIMARY KEY (metric, window));
  CREATE TRIGGER sim_counted AFTER INSERT ON counters WHEN NEW.metric = 'sends' OR NEW.metric LIKE 'sends:%' BEGIN
    INSERT INTO sim_most (metric, window, most) VALUES (NEW.metric, NEW.window, NEW.value)
    ON CONFLICT (metric, window) DO UPDATE SET most = MAX(most, excluded.most);
  END;
  CREATE TRIGGER sim_counted_on AFTER UPDATE OF value ON counters
  WHEN NEW.metric = 'sends' OR NEW.metric LIKE 'sends:%' BEGIN
    INSERT INTO sim_most (metric, window, most) VALUES (NEW.metric, NEW.window, NEW.value)
    ON CONFLICT (metric, window) DO UPDATE SET most = MAX(most, excluded.most);
  END;
`;

/** The same in the directory: when each endpoint was turned on or off, and why. */
export const DIRECTORY_TRACE_SQL = `
  CREATE TABLE sim_endpoint (n INTEGER PRIMARY KEY, endpoint_id TEXT, enabled INTEGER, reason TEXT, at INTEGER);
  CREATE TRIGGER sim_endpoint_added AFTER INSERT ON webhook_endpoints BEGIN
    INSERT INTO sim_endpoint (endpoint_id, enabled, at) VALUES (NEW.id, NEW.enabled, sim_now());
  END;
  CREATE TRIGGER sim_endpoint_turned AFTER UPDATE OF enabled ON webhook_endpoints WHEN OLD.enabled <> NEW.enabled BEGIN
    INSERT INTO sim_endpoint (endpoint_id, enabled, reason, at)
    VALUES (NEW.id, NEW.enabled, NEW.disabled_reason, sim_now());
  END;
  CREATE TRIGGER sim_endpoint_deleted AFTER DELETE ON webhook_endpoints BEGIN
    INSERT INTO sim_endpoint (endpoint_id, enabled, reason, at) VALUES (OLD.id, 0, 'deleted', sim_now());
  END;
`;

const clocks = new WeakMap<DatabaseSync, { now: () => number }>();

/** The triggers read the clock by this. A database that is used again gets another clock under the same function. */
export function giveTraceItsClock(database: DatabaseSync, now: () => number): void {
  const known = clocks.get(database);
  if (known !== undefined) {
    known.now = now;
    return;
  }
  const clock = { now };
  clocks.set(database, clock);
  database.function('sim_now', () => clock.now());
}

const stores = new WeakMap<DatabaseSync, { hashOf: (key: string) => string | null }>();

/** The triggers ask by this which bytes stand in the object store at the moment in which a message is committed. */
export function giveTraceItsStore(database: DatabaseSync, hashOf: (key: string) => string | null): void {
  const known = stores.get(database);
  if (known !== undefined) {
    known.hashOf = hashOf;
    return;
  }
  const store = { hashOf };
  stores.set(database, store);
  database.function('sim_stored', (key) => store.hashOf(String(key)));
}
