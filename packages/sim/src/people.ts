import type { MessageId } from '@pmail/core/ids.ts';
import type { DomainState } from '@pmail/core/policy/types.ts';
import type { CaseId } from './case-list.ts';
import { type Conflict, type Intent, messageOf, request } from './client.ts';
import { PLATFORM_DOMAIN, RELAY_DOMAIN, type SimIdentity, TAGGING_DOMAIN } from './population.ts';
import { Process } from './process.ts';
import type { Stage } from './schedule.ts';

/** What people, and the checks of domains, do while sends are under way. */

/** Does something after a while; what it throws ends it, and nothing else. */
export function later({ universe }: Stage, ms: number, work: () => Promise<void>): void {
  universe.scheduler.after(ms, () => {
    work().catch((error: unknown) => universe.log(`actor: ${error instanceof Error ? error.name : '?'}`));
  });
}

/** The same key with another body: must change nothing, whichever comes first. */
export async function conflict(stage: Stage, intent: Intent): Promise<void> {
  const { scheduler } = stage.universe;
  const entry: Conflict = { begun_at: scheduler.now, at: null, ok: false, id: null, code: null };
  intent.conflicts.push(entry);
  const reply = await request(stage.deployment, intent, { ...intent.body, text: 'Another text.' });
  Object.assign(entry, {
    at: scheduler.now,
    ok: reply.ok,
    id: reply.ok ? reply.message.id : null,
    code: reply.ok ? null : reply.code,
  });
}

/** The message of an intent, by the mailbox itself when its client has not been told. */
function findMessage({ deployment }: Stage, intent: Intent): MessageId | undefined {
  const told = messageOf(intent);
  if (told !== undefined) return told;
  const { sql } = deployment.mailbox(intent.identity.identity_id);
  const row = sql.first<{ id: MessageId }>(
    "SELECT id FROM messages WHERE direction = 'outbound' AND subject = ? ORDER BY rowid LIMIT 1",
    intent.body.subject ?? '',
  );
  return row?.id;
}

export async function cancel(stage: Stage, intent: Intent): Promise<void> {
  const id = findMessage(stage, intent);
  if (id === undefined) return;
  await stage.deployment.remote(new Process('canceler'), intent.identity.identity_id).cancel(id);
}

/** A person looks at a message and, when it is uncertain, says what became of it. */
export async function resolve(stage: Stage, intent: Intent, outcome: 'sent' | 'not_sent'): Promise<void> {
  const { deployment, universe } = stage;
  const id = findMessage(stage, intent);
  if (id === undefined) return;
  const remote = deployment.remote(new Process('person'), intent.identity.identity_id);
  const answer = await remote.resolve(id, outcome);
  if (!answer.ok) return;
  universe.log(`person: ${id} is ${outcome}`);
}

/** Somebody pauses an identity, and lets it go on later. */
export async function pause({ deployment, universe }: Stage, { identity_id: id }: SimIdentity): Promise<void> {
  const { standing } = deployment;
  await standing.pause(id);
  universe.scheduler.after(universe.between(10_000, 300_000), () => {
    standing.unpause(id).catch((error: unknown) => universe.log(`not unpaused: ${String(error)}`));
  });
}

export async function suspend({ deployment, universe }: Stage, { tenant_id: id }: SimIdentity): Promise<void> {
  const { standing } = deployment;
  await standing.suspend(id);
  universe.scheduler.after(universe.between(10_000, 300_000), () => {
    standing.unsuspend(id).catch((error: unknown) => universe.log(`still suspended: ${String(error)}`));
  });
}

/** Somebody puts a recipient on the tenant's list. */
export async function suppress({ deployment }: Stage, { identity, body }: Intent, nth: number): Promise<void> {
  const entry = (body.to ?? [])[nth % Math.max(1, body.to?.length ?? 0)];
  const address = typeof entry === 'string' ? entry : entry?.address;
  if (address === undefined) return;
  await deployment.standing.suppress(identity.tenant_id, address, await deployment.hashAddress(address));
}

const BAD_STATES: readonly DomainState[] = ['pending', 'verifying', 'failing', 'suspended', 'removing', 'removed'];

/** A check finds a sending domain in another state, and mostly well again later. */
export async function changeDomain({ deployment, universe }: Stage): Promise<void> {
  const name = universe.pick([PLATFORM_DOMAIN, RELAY_DOMAIN, TAGGING_DOMAIN]);
  const state = universe.pick(BAD_STATES);
  await deployment.standing.setDomain(name, state);
  if (state === 'removed' || (state === 'removing' && universe.random() < 0.5)) return;
  universe.scheduler.after(universe.between(5_000, 400_000), () => {
    const well: DomainState = universe.random() < 0.8 ? 'healthy' : 'degraded';
    deployment.standing.setDomain(name, well).catch((error: unknown) => universe.log(`domain: ${String(error)}`));
  });
}

const HOUR_MS = 3_600_000;

/** Something that the service needs goes away for a while, or for longer than an hour. */
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const TURNS = [MINUTE_MS, 60 * MINUTE_MS, DAY_MS];

/** Somebody sets the clocks: a little on or back, or a year on, and back again when it is noticed. */
export function turnClocks(stage: Stage): void {
  const { universe } = stage;
  if (universe.random() < 0.7) {
    const back = universe.random() < 0.5;
    universe.turnClocks((back ? -1 : 1) * universe.pick(TURNS));
    return;
  }
  // Whole periods are over then, and what was counted in them is gone.
  stage.since = Number.POSITIVE_INFINITY;
  universe.turnClocks(365 * DAY_MS);
  universe.scheduler.after(universe.between(1_000, 15 * MINUTE_MS), () => universe.turnClocks(-365 * DAY_MS));
}

export function breakDown({ deployment, universe }: Stage, mayBeLong: boolean): void {
  const long = mayBeLong && universe.random() < 0.5;
  const ms = long ? HOUR_MS + universe.between(0, 600_000) : universe.between(5_000, 400_000);
  const hour = long ? (['P6'] as const) : [];
  const away: [RegExp, readonly CaseId[]][] = [
    [/^directory/, hour],
    [/^(put|get|list|inspect|delete)\b/, hour],
    [/^send to /, hour],
    [/^(reserve|quota )/, ['S12']],
  ];
  const [label, cases] = away[universe.between(0, away.length)] ?? [null, []];
  if (label !== null) {
    universe.outage(label, ms, cases);
    return;
  }
  const queue = universe.pick([deployment.outbound, deployment.outbound, deployment.inbound]);
  queue.pause();
  universe.scheduler.after(ms, () => queue.resume());
}
