import { idFloor } from '@pmail/core/ids.ts';
import { type Evidence, mailbox, messagesOf, type Violation } from './evidence.ts';

/**
 * I9: the events of a mailbox rise by one, and each has reached the index exactly as it happened. One whose storage was put
 * back has lost some that the index knows, and goes on above them: there numbers only have to rise, and none is given twice.
 */
export function eventsInOrder(evidence: Evidence): Violation[] {
  const violations: Violation[] = [];
  for (const identity of evidence.identities) {
    const wrong = (text: string): void => {
      violations.push({ invariant: 'I9', text: `${identity.address}: ${text}` });
    };
    const { sql, restored } = mailbox(evidence, identity);
    const rows = sql.all<{ seq: number; event_id: string; payload_json: string; dispatched_at: number | null }>(
      'SELECT seq, event_id, payload_json, dispatched_at FROM outbox ORDER BY seq',
    );
    const index = evidence.deployment.directory.all<{ id: string; sequence: number }>(
      'SELECT id, sequence FROM event_index WHERE identity_id = ?',
      identity.identity_id,
    );
    const indexed = new Map(index.map(({ id, sequence }) => [id, sequence]));
    rows.forEach(({ seq, event_id, payload_json, dispatched_at }, at) => {
      const payload = JSON.parse(payload_json) as { id: string; sequence: number };
      const due = restored ? Math.max(seq, (rows[at - 1]?.seq ?? 0) + 1) : at + 1;
      if (seq !== due) wrong(`sequence ${seq} where ${due} was due`);
      if (payload.id !== event_id || payload.sequence !== seq) wrong(`event ${event_id} says it is another`);
      if (dispatched_at === null) wrong(`event ${event_id} was never handed on`);
      if (indexed.get(event_id) !== seq) wrong(`event ${event_id} is not in the index with its sequence`);
    });
    if (indexed.size !== rows.length && !restored) {
      wrong(`the index has ${indexed.size} events, the mailbox ${rows.length}`);
    }
    if (new Set(indexed.values()).size !== index.length) wrong('a sequence was given twice');
  }
  return violations;
}

/** T3: no report was taken to be about a message that it does not mean, as the watcher saw it when it was applied. */
export function reportsUnderstood({ deployment }: Evidence): Violation[] {
  return deployment.watcher.wrong;
}

/** Objects without a message are gone after the sweep, and none with one is. */
export function noOrphans(evidence: Evidence): Violation[] {
  const known = new Set(
    evidence.identities.flatMap((identity) => messagesOf(evidence, identity).map(({ id }) => id as string)),
  );
  // One that was made while a clock ran ahead is swept when that time has come.
  const { now } = evidence.deployment.universe;
  const future = idFloor('msg', now);
  return [...evidence.deployment.store.objects.keys()]
    .filter((key) => (/msg_[0-9A-Z]{26}/.exec(key)?.[0] ?? '') < future)
    .filter((key) => key.includes('/out/') && !known.has(/msg_[0-9A-Z]{26}/.exec(key)?.[0] ?? ''))
    .map((key) => ({ invariant: 'S2', text: `orphan left in the store: ${key}` }));
}
