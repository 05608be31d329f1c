import { deliveriesOf, type Evidence, mailbox, messagesOf, traceOf, type Violation } from './evidence.ts';

/** I4: every counter equals a recount of the rows it stands for. */
export function countersMatch(evidence: Evidence): Violation[] {
  const violations: Violation[] = [];
  const wrong = (text: string): void => {
    violations.push({ invariant: 'I4', text });
  };
  for (const [tenantId, quota] of evidence.deployment.quotas) {
    const identities = evidence.identities.filter(({ tenant_id }) => tenant_id === tenantId);
    let accepted = 0;
    let outbound = 0;
    let inbound = 0;
    const counted = new Map<string, number>();
    for (const identity of identities) {
      const own = recount(evidence, identity);
      accepted += own.accepted;
      outbound += own.outbound;
      inbound += own.inbound;
      const metric = `sends:${identity.identity_id}`;
      const total = sum(quota.sql.all<{ value: number }>('SELECT value FROM counters WHERE metric = ?', metric));
      counted.set(identity.identity_id, total);
      if (total !== own.counted) wrong(`${identity.address}: cap counts ${total} sends, rows say ${own.counted}`);
    }
    const tenantTotal = sum(quota.sql.all<{ value: number }>("SELECT value FROM counters WHERE metric = 'sends'"));
    const identityTotal = [...counted.values()].reduce((a, b) => a + b, 0);
    if (tenantTotal !== identityTotal) wrong(`tenant counts ${tenantTotal} sends, its identities ${identityTotal}`);
    const holds = quota.sql.first<{ n: number; units: number | null }>(
      'SELECT COUNT(*) AS n, SUM(units) AS units FROM holds',
    );
    if ((holds?.n ?? 0) > 0) wrong(`${holds?.n} holds at rest`);
    const sends = quota.sql.first<{ used: number; held: number }>(
      "SELECT used, held FROM allowances WHERE feature = 'sends'",
    );
    if ((sends?.held ?? 0) !== (holds?.units ?? 0)) wrong(`held says ${sends?.held}, holds say ${holds?.units}`);
    if ((sends?.used ?? 0) !== accepted) wrong(`used says ${sends?.used}, accepted recipients are ${accepted}`);
    for (const [metric, expected] of [
      ['usage:sends', accepted],
      ['usage:outbound', outbound],
      ['usage:inbound', inbound],
    ] as const) {
      const value = sum(quota.sql.all<{ value: number }>('SELECT value FROM counters WHERE metric = ?', metric));
      if (value !== expected) wrong(`${metric} says ${value}, rows say ${expected}`);
    }
    outcomes(evidence, identities, quota.sql.all<{ event_id: string }>('SELECT event_id FROM outcome_events'), wrong);
  }
  threads(evidence, wrong);
  return violations;
}

function sum(rows: { value: number }[]): number {
  return rows.reduce((total, { value }) => total + value, 0);
}

/** What the rows of a mailbox say was sent, by the trace of its deliveries. */
function recount(
  evidence: Evidence,
  identity: Evidence['identities'][number],
): { accepted: number; outbound: number; inbound: number; counted: number } {
  const messages = messagesOf(evidence, identity);
  const deliveries = deliveriesOf(evidence, identity);
  const trace = traceOf(evidence, identity).filter(({ address }) => address !== null);
  let accepted = 0;
  let outbound = 0;
  let counted = 0;
  for (const message of messages) {
    if (message.direction !== 'outbound') continue;
    const own = deliveries.filter(({ message_rowid }) => message_rowid === message.rowid);
    const left = own.filter(({ status }) => status !== 'suppressed' || wasQueued(trace, message.rowid));
    if (left.length > 0 && message.status !== 'canceled') counted++;
    let any = 0;
    for (const { address } of own) {
      const steps = trace.filter((step) => step.rowid === message.rowid && step.address === address);
      const submitted = steps.some((step) => step.new === 'submitted');
      const reported = steps.some((step) => UNKNOWN.includes(step.old) && REPORTED.includes(step.new));
      if (submitted || reported) any++;
    }
    accepted += any;
    if (any > 0) outbound++;
  }
  const inbound = messages.filter(({ direction }) => direction === 'inbound').length;
  return { accepted, outbound, inbound, counted };
}

/** Statuses of recipients of whom nobody knows yet that they were taken, and those by which they turn out to be. */
const UNKNOWN = ['queued', 'uncertain'];
const REPORTED = ['delivered', 'deferred', 'bounced', 'complained'];

function wasQueued(trace: { rowid: number; old: string }[], rowid: number): boolean {
  return trace.some((step) => step.rowid === rowid && step.old === 'queued');
}

/** The abuse windows hold each event with an outcome exactly once. */
function outcomes(
  evidence: Evidence,
  identities: Evidence['identities'],
  recorded: { event_id: string }[],
  wrong: (text: string) => void,
): void {
  const applied = new Set<string>();
  for (const identity of identities) {
    for (const { provider_event_ids_json: json } of deliveriesOf(evidence, identity)) {
      for (const id of JSON.parse(json) as string[]) applied.add(id);
    }
  }
  const withOutcome = new Set(
    evidence.deployment.provider.reported.filter(({ outcome }) => outcome !== null).map(({ event_id }) => event_id),
  );
  const known = new Set(recorded.map(({ event_id }) => event_id));
  for (const id of applied) {
    if (withOutcome.has(id) && !known.has(id)) wrong(`outcome of ${id} was never counted`);
  }
  for (const id of known) {
    if (!applied.has(id)) wrong(`outcome of ${id} was counted, but no delivery knows it`);
  }
}

function threads(evidence: Evidence, wrong: (text: string) => void): void {
  for (const identity of evidence.identities) {
    const rows = mailbox(evidence, identity).sql.all<{
      id: string;
      message_count: number;
      n: number;
      unread_count: number;
      u: number;
    }>(
      `SELECT t.id, t.message_count, t.unread_count, COUNT(m.rowid) AS n,
         COALESCE(SUM(m.direction = 'inbound' AND m.read = 0), 0) AS u
       FROM threads t LEFT JOIN messages m ON m.thread_seq = t.seq GROUP BY t.seq`,
    );
    for (const row of rows) {
      if (row.message_count !== row.n) wrong(`${row.id} counts ${row.message_count} messages, has ${row.n}`);
      if (row.unread_count !== row.u) wrong(`${row.id} counts ${row.unread_count} unread, has ${row.u}`);
    }
  }
}

/** I9: the events of a mailbox rise by one, and each has reached the index exactly as it happened. */
export function eventsInOrder(evidence: Evidence): Violation[] {
  const violations: Violation[] = [];
  for (const identity of evidence.identities) {
    const wrong = (text: string): void => {
      violations.push({ invariant: 'I9', text: `${identity.address}: ${text}` });
    };
    const rows = mailbox(evidence, identity).sql.all<{
      seq: number;
      event_id: string;
      payload_json: string;
      dispatched_at: number | null;
    }>('SELECT seq, event_id, payload_json, dispatched_at FROM outbox ORDER BY seq');
    const indexed = new Map(
      (
        evidence.deployment.directory
          .prepare('SELECT id, sequence FROM event_index WHERE identity_id = ?')
          .all(identity.identity_id) as { id: string; sequence: number }[]
      ).map(({ id, sequence }) => [id, sequence]),
    );
    rows.forEach(({ seq, event_id, payload_json, dispatched_at }, index) => {
      const payload = JSON.parse(payload_json) as { id: string; sequence: number };
      if (seq !== index + 1) wrong(`sequence ${seq} where ${index + 1} was due`);
      if (payload.id !== event_id || payload.sequence !== seq) wrong(`event ${event_id} says it is another`);
      if (dispatched_at === null) wrong(`event ${event_id} was never handed on`);
      if (indexed.get(event_id) !== seq) wrong(`event ${event_id} is not in the index with its sequence`);
    });
    if (indexed.size !== rows.length) wrong(`the index has ${indexed.size} events, the mailbox ${rows.length}`);
  }
  return violations;
}

/** Objects without a message are gone after the sweep, and none with one is. */
export function noOrphans(evidence: Evidence): Violation[] {
  const known = new Set(
    evidence.identities.flatMap((identity) => messagesOf(evidence, identity).map(({ id }) => id as string)),
  );
  return [...evidence.deployment.blobs.keys()]
    .filter((key) => key.includes('/out/') && !known.has(/msg_[0-9A-Z]{26}/.exec(key)?.[0] ?? ''))
    .map((key) => ({ invariant: 'S2', text: `orphan left in the store: ${key}` }));
}
