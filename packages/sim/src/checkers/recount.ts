import type { SimIdentity } from '../population.ts';
import type { DeliveryTrace, Remembered, Step } from '../remembered.ts';
import { type Evidence, mailbox, rowsOf } from './evidence.ts';

/** What the rows of a mailbox say was sent, by the trace of its deliveries. */

export interface Recount {
  /** Recipients that a transport took. */
  accepted: Set<string>;
  /** Messages of which it took any. */
  outbound: Set<string>;
  inbound: Set<string>;
  /** Messages that count against a day's cap. */
  counted: Set<string>;
}

/**
 * What was counted of a mailbox is what its rows say. One whose storage was put back has forgotten some of what was
 * counted, so there it is at least what is left and at most what ever was.
 */
export interface Bounds {
  least: Recount;
  most: Recount;
}

export function recount(evidence: Evidence, identity: SimIdentity): Bounds {
  const now = recountRows(rowsOf(evidence, identity), evidence.since);
  const { forgotten } = mailbox(evidence, identity);
  if (forgotten.length === 0) return { least: now, most: now };
  const before = forgotten.map((rows) => ({ known: idsOf(rows), of: recountRows(rows, evidence.since) }));
  const ofBefore = (name: keyof Recount): string[] => before.flatMap(({ of }) => [...of[name]]);
  // A send that was given up in the time that is forgotten, or was never committed, is shown again and was not counted.
  const sure = [...now.counted].filter((id) => {
    const knew = before.filter(({ known }) => known.has(id));
    return knew.every(({ of }) => of.counted.has(id)) && (knew.length > 0 || !wasLost(evidence, identity, id));
  });
  return {
    least: { ...now, counted: new Set(sure) },
    most: {
      accepted: new Set([...now.accepted, ...ofBefore('accepted')]),
      outbound: new Set([...now.outbound, ...ofBefore('outbound')]),
      inbound: new Set([...now.inbound, ...ofBefore('inbound')]),
      counted: new Set([...now.counted, ...ofBefore('counted')]),
    },
  };
}

function idsOf({ messages }: Remembered): Set<string> {
  return new Set(messages.map(({ id }) => id));
}

function wasLost(evidence: Evidence, identity: SimIdentity, id: string): boolean {
  const { sql } = mailbox(evidence, identity);
  const row = sql.first<{ flags_json: string }>('SELECT flags_json FROM messages WHERE id = ?', id);
  return row?.flags_json.includes('restored') === true;
}

function recountRows({ messages, deliveries, trace }: Remembered, since: number): Recount {
  const out: Recount = { accepted: new Set(), outbound: new Set(), inbound: new Set(), counted: new Set() };
  for (const { id, rowid, direction, status, received_at: at } of messages) {
    if (at < since) continue;
    if (direction === 'inbound') {
      out.inbound.add(id);
      continue;
    }
    const own = deliveries.filter(({ message_rowid }) => message_rowid === rowid);
    const steps = trace.filter((step) => step.address !== null && step.rowid === rowid);
    const queued = own.some((row) => row.status !== 'suppressed') || steps.some(({ old }) => old === 'queued');
    if (queued && status !== 'canceled') out.counted.add(id);
    for (const row of own) {
      if (!steps.some((step) => step.address === row.address && wasTaken(step, row))) continue;
      out.accepted.add(`${id} ${row.address}`);
      out.outbound.add(id);
    }
  }
  return out;
}

/** Statuses of recipients of whom nobody knows yet that they were taken, and those by which they turn out to be. */
const UNKNOWN = ['queued', 'uncertain'];
const REPORTED = ['delivered', 'deferred', 'bounced', 'complained'];

/** Whoever reports that it gave up had taken it first; a person or a dead claim says so too, and without a report. */
function wasTaken({ old, new: next }: Step, { reported_at }: DeliveryTrace): boolean {
  if (next === 'submitted') return true;
  return UNKNOWN.includes(old) && (REPORTED.includes(next) || (next === 'failed' && reported_at !== null));
}
