import { DurableObject } from 'cloudflare:workers';
import { MAILBOX_MIGRATIONS } from '@pmail/engine/mailbox/schema.ts';

/**
 * What an accepted send costs without the service: the same rows written by a Durable Object that does nothing else
 * (`/writes`), and behind it the same object put beside the same directory read (`/floor`). The single parts are there
 * too, to see where the time goes. And what a provider's report costs: the rows that it changes (`/updates`), and
 * those behind a directory read and before a count in a second object (`/reports`). `/flood` puts reports into the queue of the service, as a provider does.
 */

interface Env {
  DB: D1Database;
  BLOBS: R2Bucket;
  BARE: DurableObjectNamespace<Bare>;
  Q_DELIVERY: Queue;
}

export class Bare extends DurableObject<Env> {
  #n = 0;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const { sql } = ctx.storage;
    sql.exec('CREATE TABLE IF NOT EXISTS meta (k TEXT PRIMARY KEY, v TEXT NOT NULL) WITHOUT ROWID');
    const [made] = sql.exec("SELECT 1 FROM meta WHERE k = 'made'").toArray();
    if (made !== undefined) return;
    for (const { statements } of MAILBOX_MIGRATIONS) for (const text of statements) sql.exec(text);
    sql.exec("INSERT INTO meta (k, v) VALUES ('made', '1')");
  }

  nothing(): number {
    return 1;
  }

  /** The rows of one accepted send to one recipient, in one transaction. */
  write(response: string): number {
    const { sql } = this.ctx.storage;
    const n = `${Date.now()}-${++this.#n}`;
    const now = Date.now();
    this.ctx.storage.transactionSync(() => {
      const { seq } = sql
        .exec<{ seq: number }>(
          'INSERT INTO threads (id, subject, first_at, last_at, reply_from_address) VALUES (?, ?, ?, ?, ?) RETURNING seq',
          `thr_${n}`,
          'Your booking',
          now,
          now,
          'bookings.demo@agents.example',
        )
        .one();
      const { rowid } = sql
        .exec<{ rowid: number }>(
          `INSERT INTO messages (id, thread_seq, direction, status, raw_r2_key, raw_size, raw_sha256, from_address,
             from_name, sender_domain, to_json, subject, text, extracted_text, snippet, sent_at, received_at, kind,
             operation, hop, read)
           VALUES (?, ?, 'outbound', 'queued', ?, 4000, ?, ?, 'Bookings', 'agents.example', ?, 'Your booking', ?, ?, ?, ?, ?,
             'transactional', 'send', 1, 1) RETURNING rowid`,
          `msg_${n}`,
          seq,
          `t/ten/i/idn/out/${n}.eml`,
          n,
          'bookings.demo@agents.example',
          '[{"address":"delivered@simulator.invalid","name":""}]',
          TEXT,
          TEXT,
          TEXT.slice(0, 200),
          now,
          now,
        )
        .one();
      sql.exec(
        `INSERT INTO deliveries (message_rowid, address, field, status, updated_at, position) VALUES (?, ?, 'to', 'queued', ?, 0)`,
        rowid,
        'delivered@simulator.invalid',
        now,
      );
      sql.exec(
        `INSERT INTO fts (rowid, subject, participants, body_new, body_full, attachments, refs) VALUES (?, ?, ?, ?, '', '', '')`,
        rowid,
        'Your booking',
        'Bookings bookings.demo@agents.example delivered@simulator.invalid',
        TEXT,
      );
      sql.exec(
        `UPDATE threads SET last_at = ?, last_outbound_at = ?, message_count = message_count + 1, snippet = ?,
           participants_json = ? WHERE seq = ?`,
        now,
        now,
        TEXT.slice(0, 200),
        '[{"address":"delivered@simulator.invalid","name":""}]',
        seq,
      );
      sql.exec(
        `INSERT INTO contacts (address, domain, first_seen_at, last_seen_at, outbound_count, last_thread_seq)
         VALUES (?, 'simulator.invalid', ?, ?, 1, ?)
         ON CONFLICT (address) DO UPDATE SET last_seen_at = excluded.last_seen_at, outbound_count = outbound_count + 1`,
        'delivered@simulator.invalid',
        now,
        now,
        seq,
      );
      sql.exec(
        `INSERT INTO idempotency (key_hash, fingerprint, operation, message_id, response_json, created_at, expires_at)
         VALUES (?, ?, 'send', ?, ?, ?, ?)`,
        n,
        n,
        `msg_${n}`,
        response,
        now,
        now + 2_592_000_000,
      );
      sql.exec('INSERT OR REPLACE INTO meta (k, v) VALUES (?, ?)', `dispatch:msg_${n}`, String(now));
    });
    return 1;
  }

  /** Recipients to report about, one message for each. */
  prepare(count: number): void {
    const { sql } = this.ctx.storage;
    const [found] = sql.exec("SELECT 1 FROM meta WHERE k = 'prepared'").toArray();
    if (found !== undefined) return;
    this.ctx.storage.transactionSync(() => {
      sql.exec("INSERT INTO threads (seq, id, subject, first_at, last_at) VALUES (1, 'thr', 'Flood', 0, 0)");
      for (let n = 1; n <= count; n++) {
        sql.exec(
          `INSERT INTO messages (rowid, id, thread_seq, direction, status, provider_message_id, received_at, kind)
           VALUES (?, ?, 1, 'outbound', 'submitted', ?, 0, 'transactional')`,
          n,
          `msg_${n}`,
          `prov-${n}`,
        );
        sql.exec(
          "INSERT INTO deliveries (message_rowid, address, field, status, updated_at) VALUES (?, 'jo@example.net', 'to', 'submitted', 0)",
          n,
        );
      }
      sql.exec("INSERT INTO meta (k, v) VALUES ('prepared', '1'), ('event_seq', '0')");
    });
  }

  /** The rows of one report, in one transaction: the delivery, the message, the event that tells of it. */
  update(n: number): number {
    const { sql } = this.ctx.storage;
    const now = Date.now();
    this.ctx.storage.transactionSync(() => {
      sql.exec(
        `UPDATE deliveries SET status = 'delivered', smtp_code = '250', enhanced_code = '2.0.0', smtp_response = 'OK',
           provider_event_ids_json = ?, updated_at = ? WHERE message_rowid = ? AND address = 'jo@example.net'`,
        `["${n}"]`,
        now,
        n,
      );
      sql.exec("UPDATE messages SET status = 'delivered' WHERE rowid = ?", n);
      sql.exec("UPDATE meta SET v = v + 1 WHERE k = 'event_seq'");
      sql.exec(
        "INSERT INTO outbox (event_id, type, payload_json, occurred_at) VALUES (?, 'message.delivered', ?, ?)",
        `evt_${now}-${n}-${++this.#n}`,
        RESPONSE.slice(0, 400),
        now,
      );
    });
    return 1;
  }

  /** One more outcome in a window of a thousand, as a quota counts it. */
  count(n: number): number {
    const { sql } = this.ctx.storage;
    sql.exec(
      'CREATE TABLE IF NOT EXISTS outcomes (seq INTEGER PRIMARY KEY, outcome TEXT NOT NULL, at INTEGER NOT NULL)',
    );
    this.ctx.storage.transactionSync(() => {
      sql.exec('INSERT INTO outcomes (outcome, at) VALUES (?, ?)', 'delivered', n);
      sql.exec('DELETE FROM outcomes WHERE seq <= (SELECT MAX(seq) FROM outcomes) - 1000');
    });
    return 1;
  }
}

const TEXT = 'Hello Jo, your table for two on Friday at seven is booked. See you then. '.repeat(8);
const RESPONSE = JSON.stringify({ id: 'msg', filler: 'x'.repeat(1_400) });
const BYTES = new TextEncoder().encode('x'.repeat(4_000));

/** The reads of a send: a key, an identity with its tenant, its addresses, the recipients' rows. */
async function read(env: Env): Promise<void> {
  const all = (sql: string, ...values: string[]): D1PreparedStatement => env.DB.prepare(sql).bind(...values);
  await env.DB.batch([
    all('SELECT k.*, t.status AS s FROM api_keys k LEFT JOIN tenants t ON t.id = k.tenant_id WHERE k.lookup = ?', 'x'),
    all('SELECT id, tenant_id, status, mailbox_do_id, is_system FROM identities WHERE id = ?', 'x'),
    all('SELECT i.*, t.* FROM identities i JOIN tenants t ON t.id = i.tenant_id WHERE i.username = ?', 'bookings'),
    all(
      'SELECT a.*, d.* FROM addresses a JOIN domains d ON d.id = a.domain_id WHERE a.local_part = ?',
      'bookings.demo',
    ),
    all("SELECT name FROM domains WHERE kind = 'platform' LIMIT 1"),
    all('SELECT address_hash, reason FROM suppressions WHERE tenant_id = ? AND address_hash IN (?)', 'x', 'y'),
    all(
      "SELECT kind, entry FROM sender_lists WHERE tenant_id = ? AND direction = 'send' AND entry IN (?, ?)",
      'x',
      'y',
      'z',
    ),
    all("SELECT address FROM addresses WHERE status IN ('active', 'retiring') AND address IN (?)", 'x'),
  ]);
}

/** The read of a report: whose mailbox a sender's address leads to. */
async function route(env: Env): Promise<void> {
  await env.DB.prepare(
    `SELECT a.identity_id, a.tenant_id, i.mailbox_do_id FROM addresses a JOIN identities i ON i.id = a.identity_id
     WHERE a.address = ?`,
  )
    .bind('x')
    .all();
}

let puts = 0;

async function put(env: Env): Promise<void> {
  await env.BLOBS.put(`bench/${Date.now()}-${++puts}-${crypto.randomUUID()}`, BYTES, { customMetadata: { a: 'b' } });
}

export default {
  fetch: async (request, env) => {
    const url = new URL(request.url);
    const object = env.BARE.getByName(url.searchParams.get('object') ?? 'one');
    if (url.pathname === '/flood') {
      const bodies = await request.json<unknown[]>();
      await env.Q_DELIVERY.sendBatch(bodies.map((body) => ({ body, contentType: 'json' })));
      return new Response('ok', { status: 202 });
    }
    if (request.body !== null) await request.text();
    switch (url.pathname) {
      case '/writes':
        await object.write(RESPONSE);
        break;
      case '/floor':
        await Promise.all([put(env), read(env)]);
        await object.write(RESPONSE);
        break;
      case '/read':
        await read(env);
        break;
      case '/put':
        await put(env);
        break;
      case '/prepare':
        await object.prepare(Number(url.searchParams.get('count')));
        break;
      case '/updates':
        // One after the other, as the messages of a batch are.
        for (let n = Number(url.searchParams.get('from')); n < Number(url.searchParams.get('to')); n++) {
          await object.update(n);
        }
        break;
      case '/reports':
        for (let n = Number(url.searchParams.get('from')); n < Number(url.searchParams.get('to')); n++) {
          await route(env);
          await object.update(n);
          await env.BARE.getByName('count').count(n);
        }
        break;
      case '/call':
        await object.nothing();
        break;
      case '/nothing':
        break;
      default:
        return new Response('no such part', { status: 404 });
    }
    return new Response('ok', { status: 202 });
  },
} satisfies ExportedHandler<Env>;
