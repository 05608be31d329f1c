import { isDeepStrictEqual } from 'node:util';
import type { EventEnvelope, EventType } from '@pmail/core/events/types.ts';
import type { EventId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { isFinal, type WebhookError } from '@pmail/core/webhooks/outcome.ts';
import { WEBHOOK_ATTEMPTS_MAX, webhookWaitMs } from '@pmail/core/webhooks/schedule.ts';
import type { EventIndexRow } from '@pmail/engine/directory/events.ts';
import type { EndpointId, EndpointRow } from '@pmail/engine/webhooks/endpoints.ts';
import type { DeliveryAttempt } from '@pmail/engine/webhooks/record.ts';
import type { PostRecord } from '../receivers.ts';
import { type Evidence, mailbox, type Violation } from './evidence.ts';

type Wrong = (text: string) => void;

/** V10: who subscribed to an event is told of it as the schedule says, each time in the same words, or it is dead. */
export function webhooksTold(evidence: Evidence): Violation[] {
  const { subscribers, directory } = evidence.deployment;
  if (!subscribers.any) return [];
  const violations: Violation[] = [];
  const wrong: Wrong = (text) => {
    violations.push({ invariant: 'V10', text });
  };
  const events = new Map(
    directory
      .all<EventIndexRow>('SELECT * FROM event_index')
      .map((row) => [row.id, { ...row, bytes: bytesOf(evidence, row) }]),
  );
  const endpoints = directory.all<EndpointRow>('SELECT * FROM webhook_endpoints');
  const attempts = attemptsOf(evidence);
  for (const endpoint of endpoints) {
    const on = new OnTimes(evidence, endpoint.id);
    for (const event of events.values()) {
      const about = `${event.id} at ${endpoint.url}`;
      const own = attempts.get(`${endpoint.id} ${event.id}`) ?? [];
      if (own.length === 0) {
        if (isOwed(evidence, endpoint, event, on)) wrong(`${about}: ${event.type} was never delivered`);
        continue;
      }
      if (!isWanted(endpoint, event)) wrong(`${about}: nobody subscribed to ${event.type}`);
      attemptsKept(evidence, own, about, wrong);
    }
    for (const post of subscribers.receivers.log.filter(({ endpoint_id }) => endpoint_id === endpoint.id)) {
      if (on.offThroughout(post.begun_at, post.at)) wrong(`${post.event_id} was sent to ${endpoint.url}, which is off`);
    }
    disabledAsDesigned(evidence, endpoint, wrong);
  }
  requestsKept(evidence, events, wrong);
  return violations;
}

type Told = EventIndexRow & { bytes: string | undefined };

/** An event as it was serialised when it happened. */
function bytesOf(
  evidence: Evidence,
  { id, payload_json: payload, identity_id: identity }: EventIndexRow,
): string | undefined {
  if (payload !== null) return payload;
  const owner = evidence.identities.find(({ identity_id }) => identity_id === identity);
  if (owner === undefined) return undefined;
  const { sql } = mailbox(evidence, owner);
  return sql.first<{ payload_json: string }>('SELECT payload_json FROM outbox WHERE event_id = ?', id)?.payload_json;
}

function attemptsOf({ deployment }: Evidence): Map<string, DeliveryAttempt[]> {
  const rows = deployment.directory.all<DeliveryAttempt>('SELECT * FROM webhook_deliveries ORDER BY attempt');
  return Map.groupBy(rows, ({ endpoint_id, event_id }) => `${endpoint_id} ${event_id}`);
}

/** When an endpoint was on, by the database's own record of every change. */
class OnTimes {
  readonly #changes: { enabled: number; at: number }[];

  constructor({ deployment }: Evidence, endpoint: EndpointId) {
    this.#changes = deployment.directory.all(
      'SELECT enabled, at FROM sim_endpoint WHERE endpoint_id = ? ORDER BY n',
      endpoint,
    );
  }

  /** What it was at some time between two. */
  #during(from: number, to: number): number[] {
    const before = this.#changes.findLast(({ at }) => at <= from)?.enabled ?? 0;
    return [before, ...this.#changes.filter(({ at }) => at >= from && at <= to).map(({ enabled }) => enabled)];
  }

  onThroughout(from: number, to: number): boolean {
    return this.#during(from, to).every((enabled) => enabled === 1);
  }

  offThroughout(from: number, to: number): boolean {
    return this.#during(from, to).every((enabled) => enabled === 0);
  }
}

function isWanted(endpoint: EndpointRow, event: EventIndexRow): boolean {
  if (endpoint.tenant_id !== null) {
    if (event.tenant_id !== endpoint.tenant_id || event.type === ('webhook.disabled' satisfies EventType)) return false;
  }
  const types = JSON.parse(endpoint.event_types_json) as string[];
  if (!types.includes('*') && !types.includes(event.type)) return false;
  const identities = JSON.parse(endpoint.identity_ids_json ?? 'null') as string[] | null;
  return identities === null || identities.includes(event.identity_id ?? '');
}

/** So long a call may take to its other end. */
const UNDER_WAY_MS = 20;

/** Whether an endpoint has to be told: it was on from the event until somebody looked who is. */
function isOwed(evidence: Evidence, endpoint: EndpointRow, event: EventIndexRow, on: OnTimes): boolean {
  const { calmAt } = evidence;
  // An event that could be told to nobody for an hour stays as it is; a replay brings it.
  if (event.fanned_out_at === null && calmAt - event.occurred_at > LIMITS.fanout_until_ms - 3 * 60_000) return false;
  // The look at who is on comes with the write of that time, which is under way for a moment.
  const until = (event.fanned_out_at ?? Number.POSITIVE_INFINITY) + UNDER_WAY_MS;
  return isWanted(endpoint, event) && event.type !== 'webhook.test' && on.onThroughout(event.occurred_at, until);
}

/** Numbers without a gap, waits as the schedule has them, and an end. */
function attemptsKept(evidence: Evidence, rows: DeliveryAttempt[], about: string, wrong: Wrong): void {
  const { subscribers, waits } = evidence.deployment;
  const replays = subscribers.replayed.filter(
    ({ endpoint_id, event_id }) => endpoint_id === rows[0]?.endpoint_id && event_id === rows[0].event_id,
  ).length;
  let ends = 0;
  rows.forEach((row, index) => {
    const { attempt, status, error, next_attempt_at: next, created_at: begun, duration_ms: took } = row;
    if (attempt !== index + 1) wrong(`${about}: attempt ${attempt} where ${index + 1} was due`);
    const following = rows[index + 1];
    if (status !== 'failed') ends++;
    if (following === undefined) {
      if (status === 'failed') wrong(`${about}: nothing came after attempt ${attempt}, which failed`);
    } else if (next !== null && replays === 0 && following.created_at < next - 1_000) {
      wrong(`${about}: attempt ${attempt + 1} came before its time`);
    }
    if (replays > 0) return;
    if (status === 'failed') {
      const wait = (next ?? 0) - begun - (took ?? 0);
      const [least, most] = [0, 1].map((random) =>
        Math.min(webhookWaitMs(attempt, random) ?? 0, waits.webhook_wait_ms_max),
      );
      if (wait < (least ?? 0) || wait > (most ?? 0)) wrong(`${about}: waits ${wait} ms after attempt ${attempt}`);
    }
    const final = error !== null && isFinal(error as WebhookError);
    if (status === 'dead' && !final && attempt !== WEBHOOK_ATTEMPTS_MAX) wrong(`${about}: given up after ${attempt}`);
  });
  if (ends > 1 + replays) wrong(`${about}: ended ${ends} times`);
}

/** What a receiver has of an attempt whose record says that it was called. */
const CALLED = ['timeout', 'connect', 'redirect', 'status_4xx', 'status_410', 'status_5xx'];

/** What receivers were sent: genuine, the event's own bytes, one at a time; and each record is of a request that was made. */
function requestsKept(evidence: Evidence, events: ReadonlyMap<EventId, Told>, wrong: Wrong): void {
  const { receivers } = evidence.deployment.subscribers;
  const anyRestored = [...evidence.deployment.mailboxes.values()].some(({ restored }) => restored);
  const byDelivery = Map.groupBy(receivers.log, ({ endpoint_id, event_id }) => `${endpoint_id} ${event_id}`);
  for (const [about, posts] of byDelivery) {
    posts.forEach((post, index) => {
      if (!post.genuine) wrong(`${about}: the signature is of something else`);
      const bytes = events.get(post.event_id)?.bytes;
      // What a mailbox lost that was put back is not there to compare.
      if (bytes === undefined && anyRestored) return;
      const same = post.body === bytes || (bytes !== undefined && hasHappenedAgain(evidence, post.body, bytes));
      if (!same) wrong(`${about}: other bytes than the event has`);
      else if ((JSON.parse(bytes) as EventEnvelope).id !== post.event_id) wrong(`${about}: two ids`);
      const before = posts[index - 1];
      if (before !== undefined && endOf(before) > post.at) wrong(`${about}: two attempts at once`);
    });
  }
  for (const { endpoint_id, inside, host } of receivers.all) {
    if (inside && receivers.log.some((post) => post.endpoint_id === endpoint_id))
      wrong(`${host} is inside, and was called`);
  }
  for (const [about, rows] of attemptsOf(evidence)) {
    for (const { attempt, error, http_status: status, created_at: at, duration_ms: took } of rows) {
      if (error !== null && !CALLED.includes(error)) continue;
      const answer = status ?? error;
      const made = (byDelivery.get(about) ?? []).some(
        (post) => post.answer === answer && post.at >= at && post.ended_at <= at + (took ?? 0),
      );
      if (!made) wrong(`${about}: attempt ${attempt} is recorded with ${answer}, and was never made`);
    }
  }
}

/**
 * Whether a mailbox that was put back has lived an event twice, under one id. Its data can tell of another time, as the
 * numbers by which an identity was paused for abuse.
 */
function hasHappenedAgain({ deployment }: Evidence, told: string, now: string): boolean {
  const [a, b] = [JSON.parse(told), JSON.parse(now)] as [EventEnvelope, EventEnvelope];
  const restored = deployment.mailboxes.get(a.identity_id ?? '')?.restored === true;
  return restored && isDeepStrictEqual({ ...a, data: null }, { ...b, data: null });
}

/** A request whose maker died ends with it. */
function endOf({ at, ended_at }: PostRecord): number {
  return ended_at === Number.POSITIVE_INFINITY ? at : ended_at;
}

/** An endpoint that said it is gone is off until somebody turns it on, and the platform was told of each time once. */
function disabledAsDesigned({ deployment }: Evidence, { id, url }: EndpointRow, wrong: Wrong): void {
  const { directory } = deployment;
  const off = directory.all<{ at: number }>(
    "SELECT at FROM sim_endpoint WHERE endpoint_id = ? AND enabled = 0 AND reason = 'failing'",
    id,
  ).length;
  const told = directory
    .all<{ payload_json: string }>("SELECT payload_json FROM event_index WHERE type = 'webhook.disabled'")
    .filter(({ payload_json: json }) => (JSON.parse(json) as EventEnvelope).data['webhook_id'] === id).length;
  if (off !== told) wrong(`${url} was turned off ${off} times, and the platform told ${told} times`);
  const gone = directory.first("SELECT 1 FROM webhook_deliveries WHERE endpoint_id = ? AND error = 'status_410'", id);
  if (gone !== undefined && off === 0) wrong(`${url} is gone, and was never turned off`);
}
