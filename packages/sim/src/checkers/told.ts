import type { Remembered } from '../remembered.ts';
import { type Evidence, mailbox, rowsOf, type Violation } from './evidence.ts';

/** Statuses of a message, and of a recipient, that are told as events of their own. */
const OF_MESSAGE = ['canceled', 'rejected', 'failed', 'uncertain', 'suppressed'];
const OF_RECIPIENT = ['delivered', 'deferred', 'bounced', 'complained'];
const TOLD = new Set([...OF_MESSAGE, ...OF_RECIPIENT].map((status) => `message.${status}`));

/** An event, as far as it says what happened to whom. */
interface Told {
  type: string;
  data: { message_id?: string; recipient?: string; message?: { id: string } };
}

/**
 * I9: what happened to a message was told, each change once, and nothing that did not happen: an event is written with its
 * change or not at all. A mailbox that was put back has taken both back together, so it is held to it in each of its lives.
 */
export function everythingTold(evidence: Evidence): Violation[] {
  const violations: Violation[] = [];
  for (const identity of evidence.identities) {
    for (const rows of [rowsOf(evidence, identity), ...mailbox(evidence, identity).forgotten]) {
      violations.push(...toldOnce(evidence, rows).map((text) => ({ invariant: 'I9', text })));
    }
  }
  return violations;
}

function toldOnce(evidence: Evidence, rows: Remembered): string[] {
  const wrong: string[] = [];
  const told = new Map<string, number>();
  for (const payload of rows.events) {
    const { type, data } = JSON.parse(payload) as Told;
    count(told, `${type} ${data.message_id ?? data.message?.id} ${data.recipient ?? ''}`);
  }
  const happened = happenedIn(rows);
  for (const what of told.keys()) if (TOLD.has(what.split(' ')[0] ?? '') && !happened.has(what)) happened.set(what, 0);
  for (const [what, times] of happened) {
    const n = told.get(what) ?? 0;
    if (n !== times) wrong.push(`${what} happened ${times} times, told ${n} times`);
  }
  for (const message of rows.messages) {
    const sent = told.get(`message.sent ${message.id} `) ?? 0;
    const reconciled = told.get(`message.reconciled ${message.id} `) ?? 0;
    if (sent > 1) wrong.push(`${message.id} was told to be sent ${sent} times`);
    if (sent > 0 && !mayBeSent(evidence, message.id))
      wrong.push(`${message.id} was told to be sent, and nobody took it`);
    // Of mail that nobody knew to be accepted a report tells it, with an event of its own.
    const left = message.accepted === 1 && !rows.waiting.includes(message.id);
    if (left && sent + reconciled === 0) wrong.push(`${message.id} was sent, and nobody was told`);
    if (reconciled > 0 && !rows.trace.some(({ rowid, old }) => rowid === message.rowid && old === 'uncertain')) {
      wrong.push(`${message.id} was told to be found, and was never uncertain`);
    }
  }
  return wrong;
}

/** Every change that is told, and how often it was made. */
function happenedIn({ messages, history }: Remembered): Map<string, number> {
  const out = new Map<string, number>();
  const sent = new Map(messages.flatMap((one) => (one.direction === 'outbound' ? [[one.rowid, one] as const] : [])));
  for (const { rowid, address, old, new: status } of history) {
    const message = sent.get(rowid);
    const names = address === null ? OF_MESSAGE : OF_RECIPIENT;
    if (message === undefined || !names.includes(status)) continue;
    // One that is found again and was to go to nobody is no news.
    if (old === '' && status === 'suppressed' && message.flags_json.includes('restored')) continue;
    count(out, `message.${status} ${message.id} ${address ?? ''}`);
  }
  return out;
}

function mayBeSent({ deployment }: Evidence, id: string): boolean {
  const taken = deployment.provider.log.some(({ message_id, accepted }) => message_id === id && accepted.length > 0);
  return taken || [...deployment.watcher.said].some(([message, words]) => message === id && words.has('sent'));
}

function count(sums: Map<string, number>, what: string): void {
  sums.set(what, (sums.get(what) ?? 0) + 1);
}
