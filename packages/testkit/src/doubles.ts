import { DatabaseSync } from 'node:sqlite';
import { assembleBodies, rfc5322Date } from '@pmail/core/compose/bodies.ts';
import { composedMessageId } from '@pmail/core/compose/headers.ts';
import type { ComposedMail, ComposeInput, Composer } from '@pmail/core/compose/types.ts';
import { toBase64, utf8 } from '@pmail/core/hash.ts';
import { ulidOf } from '@pmail/core/ids.ts';
import type { ParsedMail } from '@pmail/engine/parsed-mail.ts';
import type { AlarmClock, BlobFacts, BlobStore, Queue } from '@pmail/engine/ports.ts';
import type { Sql, SqlValue } from '@pmail/engine/sql.ts';
import { imageOf } from './database-template.ts';
import { nodeSql } from './node-sql.ts';
import { checkPlatformLimits } from './platform-limits.ts';

/** Doubles of what an engine reaches over a wire. Each call goes through a knob, by which a test makes it go wrong. */

/** A call that failed on the way; the caller cannot tell whether it had its effect. */
export class PortFault extends Error {
  override name = 'PortFault';
}

/** How the calls of one port go. Left alone, they all work. */
export class Knob {
  calls = 0;
  #passing = 0;
  #failing = 0;
  #losing = 0;
  #late: (() => void)[] = [];
  #latecomers = 0;
  #gate: Promise<void> | undefined;

  /** The next `times` calls fail and have no effect, once `after` others have gone well. */
  failNext(times = 1, after = 0): void {
    this.#failing = times;
    this.#passing = after;
  }

  /** The next `times` calls have their effect, and their answer is lost. */
  loseNext(times = 1): void {
    this.#losing = times;
  }

  /** The next call fails at once and has its effect when `land` is called. */
  delayNext(): void {
    this.#latecomers++;
  }

  land(): void {
    for (const effect of this.#late.splice(0)) effect();
  }

  /** Calls wait before their effect until the returned function is called. */
  hold(): () => void {
    let open = (): void => {};
    this.#gate = new Promise((resolve) => {
      open = resolve;
    });
    return () => {
      this.#gate = undefined;
      open();
    };
  }

  async run<T>(effect: () => T | Promise<T>): Promise<T> {
    this.calls++;
    await this.#gate;
    if (this.#passing > 0) this.#passing--;
    else if (this.#failing > 0) {
      this.#failing--;
      throw new PortFault('failed before it had an effect');
    }
    if (this.#latecomers > 0) {
      this.#latecomers--;
      this.#late.push(() => void effect());
      throw new PortFault('timed out');
    }
    const value = await effect();
    if (this.#losing > 0) {
      this.#losing--;
      throw new PortFault('answer lost');
    }
    return value;
  }
}

/** An object store that keeps what it is given, with the metadata. */
export class MemoryBlobs implements BlobStore {
  readonly objects = new Map<string, { bytes: Uint8Array; metadata: Record<string, string> }>();
  readonly puts = new Knob();
  readonly gets = new Knob();
  readonly deletes = new Knob();
  readonly lists = new Knob();

  get keys(): string[] {
    return [...this.objects.keys()].sort();
  }

  put(key: string, bytes: Uint8Array, metadata: Record<string, string>): Promise<void> {
    // What goes over a wire is what it was at the call, and nobody shares it afterwards.
    const sent = { bytes: Uint8Array.from(bytes), metadata: { ...metadata } };
    return this.puts.run(() => {
      this.objects.set(key, sent);
    });
  }

  get(key: string): Promise<Uint8Array | null> {
    return this.gets.run(() => {
      const found = this.objects.get(key);
      return found === undefined ? null : Uint8Array.from(found.bytes);
    });
  }

  delete(keys: string[]): Promise<void> {
    return this.deletes.run(() => {
      for (const key of keys) this.objects.delete(key);
    });
  }

  list(prefix: string, startAfter: string, limit: number): Promise<{ keys: string[]; more: boolean }> {
    return this.lists.run(() => {
      const keys = this.keys.filter((key) => key.startsWith(prefix) && key > startAfter);
      return { keys: keys.slice(0, limit), more: keys.length > limit };
    });
  }

  async inspect(prefix: string, startAfter: string, limit: number): Promise<{ objects: BlobFacts[]; more: boolean }> {
    const { keys, more } = await this.list(prefix, startAfter, limit);
    const objects = keys.flatMap((key) => {
      const found = this.objects.get(key);
      return found === undefined ? [] : [{ key, bytes: found.bytes.length, metadata: { ...found.metadata } }];
    });
    return { objects, more };
  }
}

/** A queue that only writes down what was sent to it. */
export class RecordedQueue<T> implements Queue<T> {
  readonly sent: { job: T; delay_ms: number }[] = [];
  readonly sends = new Knob();

  send(job: T, delayMs = 0): Promise<void> {
    const sent = { job: structuredClone(job), delay_ms: delayMs };
    return this.sends.run(() => {
      this.sent.push(sent);
    });
  }

  /** Takes out what was sent so far. */
  take(): T[] {
    return this.sent.splice(0).map(({ job }) => job);
  }
}

/**
 * The storage of one Durable Object: its database and its one alarm, which is part of the storage and so goes back with
 * a transaction that fails. Instances come and go; this stays.
 */
export class ObjectStorage {
  database = new DatabaseSync(':memory:');
  readonly sql: Sql;
  #inner: Sql;
  alarmAt: number | null = null;
  readonly alarm: AlarmClock = {
    set: (at) => {
      this.alarmAt = at;
    },
  };

  /** Called before every statement; a throw fails it. */
  beforeStatement: (query: string, bindings: SqlValue[]) => void = () => {};

  constructor() {
    this.#inner = nodeSql(this.database);
    const check = (query: string, bindings: SqlValue[]): void => {
      this.beforeStatement(query, bindings);
      checkPlatformLimits(bindings);
    };
    this.sql = {
      all: (query, ...bindings) => {
        check(query, bindings);
        return this.#inner.all(query, ...bindings);
      },
      first: (query, ...bindings) => {
        check(query, bindings);
        return this.#inner.first(query, ...bindings);
      },
      run: (query, ...bindings) => {
        check(query, bindings);
        this.#inner.run(query, ...bindings);
      },
      transaction: (body) => {
        const before = this.alarmAt;
        try {
          return this.#inner.transaction(body);
        } catch (error) {
          this.alarmAt = before;
          throw error;
        }
      },
    };
  }

  /** Remembers the storage as it is now. The returned function puts it back, as often as it is called. */
  pointInTime(): () => void {
    const copy = imageOf(this.database);
    if (copy === undefined) throw new Error('this node cannot copy a database: 24.22 or newer is needed');
    const alarm = this.alarmAt;
    return () => {
      this.database = copy();
      this.#inner = nodeSql(this.database);
      this.alarmAt = alarm;
    };
  }

  /** Rows of every ordinary table as text, to search for what must not be stored. */
  dump(): string {
    const tables = this.sql.all<{ name: string }>("SELECT name FROM sqlite_schema WHERE type = 'table'");
    return tables.map(({ name }) => JSON.stringify(this.sql.all(`SELECT * FROM "${name}"`))).join('\n');
  }
}

/** A composer whose bytes are easy to read; equal input gives equal bytes. */
export const plainComposer: Composer = { compose: async (input) => compose(input) };

/** Reads what `plainComposer` wrote; text and HTML of a message with both come back as one text. */
export async function parsePlain(raw: Uint8Array): Promise<ParsedMail> {
  const [head = '', ...rest] = new TextDecoder().decode(raw).split('\r\n\r\n');
  const line = head.split('\r\n').find((text) => text.startsWith(WHOLE)) ?? `${WHOLE}{}`;
  const { from, reply_to, to, cc, subject, date, in_reply_to, references, hop, rfc } = JSON.parse(
    line.slice(WHOLE.length),
  ) as Whole & { rfc: string };
  return {
    from,
    reply_to: reply_to === null ? [] : [reply_to],
    to,
    cc,
    subject,
    sent_at: date,
    rfc_message_id: rfc,
    in_reply_to: in_reply_to === null ? [] : [in_reply_to],
    references,
    text: rest.join('\r\n\r\n').trimEnd(),
    html_sanitized: null,
    hop,
    auto_submitted: false,
    parse_degraded: false,
    attachments: [],
  };
}

type Whole = Pick<
  ComposeInput,
  'from' | 'reply_to' | 'to' | 'cc' | 'subject' | 'date' | 'in_reply_to' | 'references' | 'hop'
>;

/** A header with everything that the readable ones shorten. */
const WHOLE = 'X-Whole: ';

function wholeLine(input: ComposeInput, rfc: string): string {
  const { from, reply_to, to, cc, subject, date, in_reply_to, references, hop } = input;
  return `${WHOLE}${JSON.stringify({ from, reply_to, to, cc, subject, date, in_reply_to, references, hop, rfc })}`;
}

function compose(input: ComposeInput): ComposedMail {
  const { text, html } = assembleBodies(input);
  const rfcMessageId = composedMessageId(ulidOf(input.message_id), input.from.address.split('@')[1] ?? '');
  const people = (list: ComposeInput['to']): string => list.map(({ address }) => address).join(', ');
  const lines = [
    `From: ${input.from.address}`,
    `To: ${people(input.to)}`,
    `Cc: ${people(input.cc)}`,
    `Subject: ${input.subject}`,
    `Date: ${rfc5322Date(input.date)}`,
    `Message-ID: <${rfcMessageId}>`,
    ...input.headers.map(({ name, value }) => `${name}: ${value}`),
    wholeLine(input, rfcMessageId),
    '',
    text ?? '',
    html ?? '',
    ...input.attachments.map(({ filename, content }) => `${filename}: ${toBase64(content)}`),
  ];
  return { mime: utf8(lines.join('\r\n')), rfc_message_id: rfcMessageId, text, html, html_sanitized: html };
}
