import type { DeliveryEvent } from '@pmail/core/delivery/events.ts';
import { type DeliveryStatus, isTerminal } from '@pmail/core/delivery/status.ts';
import { isAllowedTransition, transition } from '@pmail/core/delivery/transitions.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import { describe, expect, test } from 'vitest';
import type { Sql, SqlValue } from '../sql.ts';
import { JO, MailboxRig } from './mailbox.fixture.ts';
import { accepted, attempt, Run, report, TIMEOUT } from './transport.fixture.ts';

/**
 * Every sequence of up to five reports about one recipient, each report twice, from each status in which a first one can
 * find it. The sequences are a tree: it is walked depth first, and each step is undone by putting back the rows it touched.
 */

const KINDS = ['delivered', 'deferred', 'soft_bounced', 'bounced', 'failed', 'rejected', 'complained'] as const;
type Kind = (typeof KINDS)[number];

const DEPTH = 5;

const STARTS = {
  /** A consumer is making the call, and has not said how it went. */
  queued: async (rig: MailboxRig, id: MessageId) => void new Run(rig, id).claim(),
  submitted: (rig: MailboxRig, id: MessageId) => attempt(rig, id, accepted({ provider_message_id: 'p' })),
  uncertain: (rig: MailboxRig, id: MessageId) => attempt(rig, id, TIMEOUT),
} as const;
type Start = keyof typeof STARTS;

/** Tables that a report may write to, and what their rows are known by. Rows beyond a mark are taken away again. */
const MAILBOX_TABLES = { messages: 'rowid', deliveries: 'address', meta: 'k' } as const;
const QUOTA_TABLES = { counters: 'metric', allowances: 'feature', holds: 'id' } as const;

type Undo = () => void;

/** Remembers rows as they are; the returned function puts back those that have changed, and removes new ones. */
function remember(sql: Sql, tables: Record<string, string>): Undo {
  const before = Object.entries(tables).map(([table, key]) => ({ table, key, rows: rowsOf(sql, table, key) }));
  return () => {
    for (const { table, key, rows } of before) {
      const now = rowsOf(sql, table, key);
      for (const [id, row] of now) {
        const old = rows.get(id);
        if (old === undefined) sql.run(`DELETE FROM ${table} WHERE ${key} = ?`, id);
        else if (!same(old, row)) update(sql, table, key, id, old);
      }
      for (const [id, row] of rows) if (!now.has(id)) insert(sql, table, row);
    }
  };
}

type Row = Record<string, SqlValue>;

/** The text of the message does not change, and is long. */
const COLUMNS: Record<string, string> = {
  messages: 'rowid, status, status_reason, flags_json, accepted, provider_message_id, rfc_message_id',
};

function rowsOf(sql: Sql, table: string, key: string): Map<SqlValue, Row> {
  const rows = sql.all<Row>(`SELECT ${COLUMNS[table] ?? '*'} FROM ${table}`);
  return new Map(rows.map((row) => [row[key] ?? null, row]));
}

function same(a: Row, b: Row): boolean {
  return Object.keys(a).every((name) => a[name] === b[name]);
}

function update(sql: Sql, table: string, key: string, id: SqlValue, row: Row): void {
  const names = Object.keys(row);
  const values = names.map((name) => row[name] ?? null);
  sql.run(`UPDATE ${table} SET ${names.map((name) => `${name} = ?`).join(', ')} WHERE ${key} = ?`, ...values, id);
}

function insert(sql: Sql, table: string, row: Row): void {
  const names = Object.keys(row);
  const values = names.map((name) => row[name] ?? null);
  sql.run(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`, ...values);
}

/** What is said of a recipient by reports, as the table of the design has it. */
interface Model {
  status: DeliveryStatus;
  bounce_type: 'hard' | 'soft' | null;
  reported_at: number | null;
  told: string[];
  outcomes: number;
  used: number;
  reconciled: boolean;
}

/** Where the order does not matter, the end by what was among the reports. */
function endOf(start: Start, path: readonly Kind[]): DeliveryStatus {
  const ending = path.findIndex((kind) => kind === 'failed' || kind === 'rejected');
  // A failure ends what is open and nothing else; what came after it changes nothing.
  const before = ending < 0 ? path : path.slice(0, ending);
  const open = !before.some((kind) => kind !== 'deferred');
  if (ending >= 0 && open) return path[ending] as DeliveryStatus;
  if (path.includes('complained')) return 'complained';
  if (path.includes('bounced') || path.includes('soft_bounced')) return 'bounced';
  if (path.includes('delivered')) return 'delivered';
  return path.includes('deferred') ? 'deferred' : start;
}

class Walk {
  readonly rig = new MailboxRig();
  readonly start: Start;
  id: MessageId = 'msg_';
  nodes = 0;
  #reports = 0;

  constructor(start: Start) {
    this.start = start;
  }

  async run(): Promise<void> {
    ({ id: this.id } = await this.rig.send());
    await STARTS[this.start](this.rig, this.id);
    expect(this.rig.statuses(this.id)).toEqual({ [JO]: this.start });
    const used = this.start === 'submitted' ? 1 : 0;
    await this.below([], {
      status: this.start,
      bounce_type: null,
      reported_at: null,
      told: [],
      outcomes: 0,
      used,
      reconciled: false,
    });
  }

  async below(path: Kind[], model: Model): Promise<void> {
    const undo = this.remember();
    for (const kind of KINDS) {
      const next = await this.step([...path, kind], kind, model);
      if (path.length + 1 < DEPTH) await this.below([...path, kind], next);
      undo();
    }
  }

  remember(): Undo {
    const { sql, quotaStorage } = this.rig;
    const last = this.lastEvent();
    const counted = this.outcomes();
    const undo = [remember(sql, MAILBOX_TABLES), remember(quotaStorage.sql, QUOTA_TABLES)];
    return () => {
      for (const one of undo) one();
      sql.run('DELETE FROM outbox WHERE seq > ?', last);
      quotaStorage.sql.run('DELETE FROM outcomes WHERE seq > ?', counted);
      quotaStorage.sql.run('DELETE FROM applied WHERE n >= 2000000');
    };
  }

  lastEvent(): number {
    return this.rig.sql.first<{ n: number }>('SELECT COALESCE(MAX(seq), 0) AS n FROM outbox')?.n ?? 0;
  }

  outcomes(): number {
    const { sql } = this.rig.quotaStorage;
    return sql.first<{ n: number }>('SELECT COUNT(*) AS n FROM outcomes')?.n ?? 0;
  }

  /** Applies one more report, twice, and holds what it did to the model. */
  async step(path: Kind[], kind: Kind, before: Model): Promise<Model> {
    const { rig } = this;
    // Every second report was made before the one it follows.
    const occurred_at = rig.clock.now + (path.length % 2 === 0 ? -path.length : path.length);
    const event = report(rig, kind, {
      event_id: `e ${++this.#reports}`,
      provider_message_id: 'p',
      our_message_id: this.id,
      occurred_at,
    });
    const next = expected(before, event, this.start);
    const last = this.lastEvent();
    await this.consume(event);
    const changes = this.changes();
    await this.consume(event);
    const written = this.changes() - changes;
    const [delivery] = rig.sql.all<{ status: DeliveryStatus; bounce_type: string | null }>(
      'SELECT status, bounce_type FROM deliveries',
    );
    const told = rig.sql.all<{ type: string }>('SELECT type FROM outbox WHERE seq > ? ORDER BY seq', last);
    const used = rig.quotaStorage.sql.first<{ n: number }>("SELECT used AS n FROM allowances WHERE feature = 'sends'");
    const message = rig.sql.first<{ status: string }>('SELECT status FROM messages');
    const seen = {
      status: delivery?.status,
      bounce_type: delivery?.bounce_type,
      told: told.map(({ type }) => type),
      outcomes: this.outcomes(),
      used: used?.n ?? 0,
      written,
      message: message?.status,
      allowed: delivery?.status === before.status || isAllowedTransition(before.status, delivery?.status ?? 'queued'),
    };
    const wanted = {
      status: endOf(this.start, path),
      bounce_type: next.bounce_type,
      told: next.told,
      outcomes: next.outcomes,
      used: next.used,
      // A repeat writes nothing at all.
      written: 0,
      message: next.status,
      allowed: true,
    };
    this.nodes++;
    // Compared here, because an expectation costs more than the step itself.
    if (JSON.stringify(seen) !== JSON.stringify(wanted) || next.status !== wanted.status) {
      expect({ path, ...seen }).toEqual({ path, ...wanted });
    }
    return next;
  }

  /** As the consumer does: to the mailbox, and its outcome to the windows of the quota. */
  async consume(event: DeliveryEvent): Promise<void> {
    const answer = await this.rig.engine.applyEvent(event);
    if (answer.kind === 'not_found' || answer.outcome === null) return;
    this.rig.quota.recordOutcome({
      identity_id: this.rig.owner.identity_id,
      outcome: answer.outcome,
      at: event.occurred_at,
      event_id: event.event_id,
      complaint_rate_pause: 1,
      bounce_rate_pause: 1,
    });
  }

  /** Rows written in the mailbox since it began. */
  changes(): number {
    return this.rig.sql.first<{ n: number }>('SELECT total_changes() AS n')?.n ?? 0;
  }
}

const NEWS = {
  delivered: 'message.delivered',
  deferred: 'message.deferred',
  bounced: 'message.bounced',
  complained: 'message.complained',
  failed: 'message.failed',
  rejected: 'message.rejected',
} as const;

function expected(before: Model, event: DeliveryEvent, start: Start): Model {
  const cell = transition(before.status, event.kind);
  const older = before.reported_at !== null && event.occurred_at <= before.reported_at;
  const applied = typeof cell === 'object' || (cell === 'details' && !older);
  const outcomes = before.outcomes + (event.outcome === null ? 0 : 1);
  if (!applied) return { ...before, told: [], outcomes };
  const reconciled = start === 'uncertain' && !before.reconciled;
  const status = typeof cell === 'object' ? cell.to : before.status;
  const news = typeof cell === 'object' ? [NEWS[event.kind]] : [];
  return {
    status,
    bounce_type:
      event.kind === 'bounced' ? (event.hard ? 'hard' : 'soft') : cell === 'details' ? before.bounce_type : null,
    reported_at: event.occurred_at,
    told: [...(reconciled ? ['message.reconciled'] : []), ...news],
    outcomes,
    used: before.used + (isCounted(before.status) && event.kind !== 'rejected' ? 1 : 0),
    reconciled: before.reconciled || reconciled,
  };
}

function isCounted(status: DeliveryStatus): boolean {
  return status === 'queued' || status === 'uncertain';
}

describe('every sequence of up to five reports, each twice', () => {
  test.each(Object.keys(STARTS) as Start[])(
    'about a recipient that is %s stays in the table, is told once, and is counted once (V1, V2)',
    async (start) => {
      const walk = new Walk(start);
      await walk.run();
      expect(walk.nodes).toBe(7 + 7 ** 2 + 7 ** 3 + 7 ** 4 + 7 ** 5);
      // Everything was undone, so nothing of one sequence was left for the next.
      expect(walk.rig.statuses(walk.id)).toEqual({ [JO]: start });
      expect(isTerminal(walk.rig.message(walk.id).status as DeliveryStatus)).toBe(false);
    },
    120_000,
  );
});
