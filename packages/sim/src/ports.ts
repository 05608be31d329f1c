import type { InboundJob } from '@pmail/core/queue/jobs.ts';
import type { Owner } from '@pmail/core/storage/keys.ts';
import type { OutgoingMessage } from '@pmail/core/transport/types.ts';
import type { InboundWorld } from '@pmail/engine/consumers/inbound.ts';
import { lastSequence } from '@pmail/engine/directory/events.ts';
import { type Route, routeRecipient } from '@pmail/engine/directory/routing.ts';
import { workRegistry } from '@pmail/engine/directory/work.ts';
import type { MailboxPorts } from '@pmail/engine/mailbox/world.ts';
import type { AlarmClock } from '@pmail/engine/ports.ts';
import type { QuotaWorld } from '@pmail/engine/quota/types.ts';
import type { Sql } from '@pmail/engine/sql.ts';
import { loopbackTransport, simulatorTransport } from '@pmail/transports/simulator/transport.ts';
import type { Deployment } from './deployment.ts';
import type { Process } from './process.ts';
import { FACTS, THREAD_KEY } from './settings.ts';

/** The worlds of engines and consumers, each call of them over a simulated network. */

export function mailboxPorts(
  deployment: Deployment,
  owner: Owner,
  process: Process,
  sql: Sql,
  alarm: AlarmClock,
): MailboxPorts {
  const { universe, options, watcher } = deployment;
  const db = deployment.dbFor(process);
  const quota = () => deployment.quota(owner.tenant_id);
  return {
    sql,
    now: () => universe.now,
    random: universe.random,
    newId: deployment.newId,
    alarm,
    mark: (name) => universe.mark(process, name),
    waits: deployment.waits,
    log: (_level, event) => universe.hear('mailbox', event),
    blobs: deployment.store.for(process),
    outbound: deployment.outbound.producer(process),
    inbound: deployment.inbound.producer(process),
    quota: {
      reserve: (request) =>
        universe.call(process, 'call', 'reserve', () =>
          quota().invoke((engine) => watcher.reserve(owner.tenant_id, engine.reserve(request))),
        ),
      apply: (task) =>
        universe.call(process, 'call', `quota ${task.op}`, () => quota().invoke((engine) => engine.apply(task))),
    },
    events: {
      dispatch: (events) => deployment.subscribers.tell(process, db, events),
      lastSequence: (identity) => lastSequence(db, identity),
    },
    registry: workRegistry(db),
    composer: options.composer,
    parse: options.parse,
    sleep: (ms) => universe.sleep(process, ms),
    background: (name, work) => {
      work.catch((error: unknown) =>
        universe.log(`  background ${name}: ${error instanceof Error ? error.name : '?'}`),
      );
    },
  };
}

export function quotaWorld(deployment: Deployment, process: Process, sql: Sql, alarm: AlarmClock): QuotaWorld {
  const { universe, watcher } = deployment;
  return {
    sql,
    now: () => universe.now,
    alarm,
    mark: (name) => universe.mark(process, name),
    waits: deployment.waits,
    log: (_level, event) => universe.hear('quota', event),
    sendState: (identity, ref) =>
      universe.call(process, 'call', 'sendState', () =>
        deployment.mailbox(identity).invoke((engine) => watcher.sendState(engine.sendState(ref as never))),
      ),
  };
}

/** @param owner whose message is sent; null for consumers that send nothing */
export function consumerWorld(deployment: Deployment, process: Process, owner: Owner | null): InboundWorld {
  const { universe } = deployment;
  const db = deployment.dbFor(process);
  const blobs = deployment.store.for(process);
  const world: InboundWorld = {
    db,
    deployment: FACTS,
    now: () => universe.now,
    newId: deployment.newId,
    newToken: () => `token-${universe.random().toString(36).slice(2)}-${process.name}`,
    mark: (name) => universe.mark(process, name),
    log: (_level, event) => universe.hear('consumer', event),
    count: (counter) => universe.hear('count', counter),
    mailbox: (route: Route) => deployment.remote(process, route.identity_id),
    quota: (_id, tenant) => ({
      recordOutcome: (request) =>
        universe.call(process, 'call', 'abuse outcome', () =>
          deployment.quota(tenant).invoke((engine) => engine.recordOutcome(request)),
        ),
    }),
    blobs,
    outbound: deployment.outbound.producer(process),
    transports: owner === null ? {} : transportsFor(deployment, process, owner),
    hashAddress: (address) => deployment.hashAddress(address),
    hmac: (text) => deployment.hmac(text),
    parse: deployment.options.parse,
    threadKeys: () => Promise.resolve([THREAD_KEY]),
  };
  return deployment.wiring.consumer(world);
}

function transportsFor(deployment: Deployment, process: Process, owner: Owner): InboundWorld['transports'] {
  const { universe, provider } = deployment;
  const db = deployment.dbFor(process, false);
  const inbound = deployment.inbound.producer(process);
  const blobs = deployment.store.for(process);
  const test = (name: 'simulator' | 'loopback') => ({
    now: () => universe.now,
    newId: deployment.newId,
    route: (address: string) => routeRecipient(db, address),
    put: blobs.put.bind(blobs),
    send: (job: InboundJob) => inbound.send(job),
    ownerOf: () => owner,
    taken: async (message: OutgoingMessage, recipients: string[]) => {
      const record = await provider.record(process, name, message, recipients);
      record.accepted = recipients;
    },
  });
  return {
    simulator: simulatorTransport(test('simulator')),
    loopback: loopbackTransport(test('loopback')),
    cloudflare: provider.transport(process, 'cloudflare'),
    ses: provider.transport(process, 'ses'),
    smtp: provider.transport(process, 'smtp'),
  };
}
