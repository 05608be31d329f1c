import type { EventType } from '@pmail/core/events/types.ts';
import type { EventId, IdentityId, TenantId } from '@pmail/core/ids.ts';
import type { WebhookJob } from '@pmail/core/queue/jobs.ts';
import type { AuditEntry } from '@pmail/engine/directory/audit.ts';
import { indexEvents } from '@pmail/engine/directory/events.ts';
import type { EventSink, OutboxEvent } from '@pmail/engine/ports.ts';
import type { Db } from '@pmail/engine/sql.ts';
import { deliver } from '@pmail/engine/webhooks/deliver.ts';
import {
  addEndpoint,
  changeEndpoint,
  deleteEndpoint,
  type EndpointId,
  findEndpoint,
  newEndpoint,
} from '@pmail/engine/webhooks/endpoints.ts';
import { fanOut, sweepWebhooks } from '@pmail/engine/webhooks/fan-out.ts';
import { replay, replayable } from '@pmail/engine/webhooks/replay.ts';
import { takeUp, type Work } from '@pmail/engine/webhooks/work.ts';
import type { WebhookWorld } from '@pmail/engine/webhooks/world.ts';
import type { Deployment } from './deployment.ts';
import { PLATFORM_DOMAIN } from './population.ts';
import { Process } from './process.ts';
import { type ReceiverPlan, Receivers, secretOf } from './receivers.ts';

/** An endpoint to set up. */
export interface NewEndpoint {
  /** Null for one of the platform. */
  tenant_id: TenantId | null;
  plan: ReceiverPlan;
  types?: readonly (EventType | '*')[];
  identities?: readonly IdentityId[] | null;
  inside?: boolean;
}

/** Somebody has asked for events to be delivered again. */
export interface Replayed {
  endpoint_id: EndpointId;
  event_id: EventId;
}

/** Endpoints, those behind them, and the runs that bring them events: what the Worker does for `pm-webhooks`. */
export class Subscribers {
  readonly receivers: Receivers;
  readonly replayed: Replayed[] = [];
  readonly running = new Set<Process>();
  readonly #deployment: Deployment;
  #runs = 0;

  constructor(deployment: Deployment) {
    this.#deployment = deployment;
    this.receivers = new Receivers(deployment.universe);
  }

  get any(): boolean {
    return this.receivers.all.length > 0;
  }

  // People

  async add({ tenant_id, plan, types = ['*'], identities = null, inside = false }: NewEndpoint): Promise<EndpointId> {
    const { db, newId, universe } = this.#deployment;
    const n = this.receivers.all.length;
    const host = `h${n}.receivers.dev`;
    const id = newId('whk', universe.now);
    const url = `https://${host}/hook`;
    const row = newEndpoint({ id, tenant_id, url, types, identities, secret_enc: 'sealed' }, universe.now);
    this.receivers.add({ endpoint_id: id, host, secret: secretOf(n), plan, inside });
    await addEndpoint(db, row, 20, this.#audit('webhook.create', tenant_id));
    return id;
  }

  /** Somebody turns an endpoint off, or on again. */
  async turn(id: EndpointId, on: boolean): Promise<void> {
    const { db, universe } = this.#deployment;
    const seen = await findEndpoint(db, id);
    if (seen === undefined) return;
    const change = { ...seen, enabled: on ? 1 : 0, disabled_reason: on ? null : 'manual', forgets: on } as const;
    await changeEndpoint(db, seen, change, universe.now, this.#audit('webhook.update', seen.tenant_id));
    universe.log(`endpoint ${id} is ${on ? 'on' : 'off'}`);
  }

  async remove(id: EndpointId): Promise<void> {
    const { db, universe } = this.#deployment;
    const seen = await findEndpoint(db, id);
    if (seen === undefined) return;
    await deleteEndpoint(db, id, this.#audit('webhook.delete', seen.tenant_id));
    universe.log(`endpoint ${id} is gone`);
  }

  /** Somebody asks for everything of the last minutes again. */
  async replay(process: Process, id: EndpointId, since: number): Promise<void> {
    const { universe } = this.#deployment;
    const db = this.#deployment.dbFor(process);
    const seen = await findEndpoint(db, id);
    if (seen === undefined) return;
    const events = (await replayable(db, seen, { since, until: null, status: null }, universe.now)) ?? [];
    this.replayed.push(...events.map((event) => ({ endpoint_id: id, event_id: event.id })));
    universe.log(`replay of ${events.length} events at ${id}`);
    if (events.length > 0) universe.meet('V10 replay');
    const audit = this.#audit('webhook.replay', seen.tenant_id);
    await replay(db, this.#deployment.webhooks.producer(process), seen, events, universe.now, audit);
  }

  #audit(action: string, tenant: TenantId | null): AuditEntry {
    const { newId, universe } = this.#deployment;
    return {
      id: newId('aud', universe.now),
      tenant_id: tenant,
      actor_key_id: null,
      action,
      target_type: null,
      target_id: null,
      details: null,
      request_id: null,
      at: universe.now,
    };
  }

  // The Worker

  /** A mailbox hands its events on: to the index, then to the queue where anybody listens. */
  async tell(process: Process, db: Db, events: OutboxEvent[]): ReturnType<EventSink['dispatch']> {
    const { universe, webhooks } = this.#deployment;
    const { taken, known, listened } = await indexEvents(db, events, universe.now);
    const jobs = events.map(({ id }): WebhookJob => ({ v: 1, kind: 'fanout', event_id: id }));
    if (taken === null && listened) await webhooks.producer(process).sendAll(jobs);
    return { taken, known };
  }

  async consume(process: Process, job: WebhookJob): Promise<void> {
    const world = this.#world(process);
    if (job.kind === 'fanout') return fanOut(world, job.event_id);
    const work = await takeUp(world, job.endpoint_id, job.event_id);
    if (work === undefined) return;
    const { universe } = this.#deployment;
    await universe.call(process, 'call', `begin webhook ${work.event_id}`, () => this.#begin(job.endpoint_id, work));
  }

  /** One attempt, in an invocation of its own. */
  #begin(endpoint: EndpointId, work: Work): void {
    const { universe } = this.#deployment;
    const process = new Process(`webhook run ${++this.#runs}`);
    this.running.add(process);
    process.onDeath(() => this.running.delete(process));
    deliver(this.#world(process), endpoint, work)
      .catch((error: unknown) => universe.log(`  [webhook] not recorded: ${error instanceof Error ? error.name : '?'}`))
      .finally(() => this.running.delete(process));
  }

  /** Part of the minute's cron. */
  async sweep(process: Process): Promise<void> {
    if (!this.any) return;
    const found = await sweepWebhooks(this.#world(process));
    if (found > 0) this.#deployment.universe.meet('V10 swept');
  }

  #world(process: Process): WebhookWorld {
    const { universe, newId, waits, webhooks, wiring } = this.#deployment;
    const begunAt = universe.now;
    return wiring.webhooks({
      db: this.#deployment.dbFor(process),
      now: () => universe.now,
      random: universe.random,
      newId,
      mark: (name) => universe.mark(process, name),
      log: (_level, event) => universe.hear('webhook', event),
      count: (counter) => universe.hear('count', counter),
      queue: webhooks.producer(process),
      waits,
      rules: { api_host: 'api.agents.example', platform_domain: PLATFORM_DOMAIN, allow_loopback: false },
      resolve: (host) => universe.call(process, 'call', `resolve ${host}`, () => this.receivers.addressesOf(host)),
      readEvent: async (row) => {
        const { payload_json: payload, identity_id: identity } = row;
        if (payload !== null || identity === null) return payload;
        const { engine } = this.#deployment.remote(process, identity);
        return (await engine((mailbox) => mailbox.readEvent(row.id), `read event ${row.id}`)) ?? null;
      },
      secrets: async ({ id }) => [this.receivers.byId(id).secret],
      post: (url, headers, body) => this.receivers.post(process, begunAt, url, headers, body),
    });
  }
}
