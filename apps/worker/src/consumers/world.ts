import { type Address, withoutDetail } from '@pmail/core/address/address.ts';
import type { InboundJob } from '@pmail/core/queue/jobs.ts';
import type { Owner } from '@pmail/core/storage/keys.ts';
import type { MailTransport, OutgoingMessage, Provider } from '@pmail/core/transport/types.ts';
import type { InboundWorld } from '@pmail/engine/consumers/inbound.ts';
import { type Route, routeRecipient } from '@pmail/engine/directory/routing.ts';
import { readMail } from '@pmail/mime/read-mail.ts';
import {
  loopbackTransport,
  simulatorTransport,
  type TestTransportPorts,
} from '@pmail/transports/simulator/transport.ts';
import { config, type Env } from '../env.ts';
import { createLog } from '../log.ts';
import { marks } from '../marks.ts';
import type { CallContext } from '../objects/calls.ts';
import { mailboxStub, quotaStub } from '../objects/remote.ts';
import { r2 } from '../ports/blobs.ts';
import { signingKeys } from '../ports/keyring.ts';
import { producer } from '../ports/queue.ts';
import { newId } from '../ports/random.ts';
import { hashAddress, hmac } from '../ports/secrets.ts';
import { d1 } from '../ports/sql.ts';
import { readContent } from './content.ts';
import { providers } from './providers.ts';
import { relayTransport } from './relay.ts';

/** World of the queue consumers in the Worker. `owner` is whose message a transport is about to carry. */
export function consumerWorld(env: Env, requestId: string, owner: Owner | null): InboundWorld {
  const settings = config(env);
  const log = createLog(env.PM_LOG_LEVEL, { request_id: requestId });
  const db = d1(env.DB);
  const call = ({ tenant_id, identity_id }: Route): CallContext => ({
    v: 1,
    tenant_id,
    identity_id,
    request_id: requestId,
  });
  const ring = { db, master_key: settings.master_key, now: () => Date.now(), cacheKey: env };
  const world: InboundWorld = {
    db,
    deployment: settings.deployment,
    now: () => Date.now(),
    newId,
    newToken: () => crypto.randomUUID(),
    mark: (name) => marks.reached(name, null),
    log,
    count: (counter) => log('info', 'count', { counter }),
    mailbox: (route) => {
      const stub = mailboxStub(env, route.mailbox_do_id);
      return {
        beginTransport: (request) => stub.beginTransport(call(route), request),
        recordOutcome: (request) => stub.recordOutcome(call(route), request),
        recordSuppressed: (request) => stub.recordSuppressed(call(route), request),
        learnMessageId: (copy) => stub.learnMessageId(call(route), copy),
        stopSend: (id, reason) => stub.stopSend(call(route), id, reason),
        applyEvent: (event) => stub.applyEvent(call(route), event),
        learnId: (learned) => stub.learnId(call(route), learned),
        ingest: (request) => stub.ingest(call(route), request),
        emitEvent: (type, data, known) => stub.emitEvent(call(route), type, data, known),
      };
    },
    quota: (quotaDoId, tenantId) => {
      const stub = quotaStub(env, quotaDoId);
      const context: CallContext = { v: 1, tenant_id: tenantId, identity_id: null, request_id: requestId };
      return { recordOutcome: (request) => stub.recordOutcome(context, request) };
    },
    blobs: r2(env.BLOBS),
    outbound: producer(env.Q_OUTBOUND),
    transports: {},
    requestDomainCheck: async (_domain, issue) => {
      // The monitor of domains takes this up; until there is one it is only said.
      world.count(`domain_check_requested_total.${issue}`);
    },
    content: readContent,
    message_ids: settings.message_ids,
    threadKey: async () => (await signingKeys(ring, 'thread'))[0] ?? null,
    hashAddress: (address) => hashAddress(settings.hash_key, address),
    hmac: (text) => hmac(settings.hash_key, text),
    parse: readMail,
    threadKeys: (kid) => signingKeys(ring, 'thread', kid),
  };
  if (owner !== null) world.transports = transports(env, world, owner);
  return world;
}

/** The transports of this deployment. A test tenant's message is only ever given one of the last two. */
function transports(env: Env, world: InboundWorld, owner: Owner): { [P in Provider]?: MailTransport } {
  const inbound = producer<InboundJob>(env.Q_INBOUND);
  const ports: TestTransportPorts = {
    now: world.now,
    newId: world.newId,
    route: (address) => routeRecipient(world.db, withoutDetail(address)),
    put: (key, bytes, metadata) => world.blobs.put(key, bytes, metadata),
    send: (job) => inbound.send(job),
    ownerOf: () => owner,
    taken: (message, recipients) => recordTaken(config(env).provider_log_url, message, recipients),
  };
  const relay = config(env).deployment.smtp_enabled ? { smtp: relayTransport(env, world, owner) } : {};
  return { ...providers(env), ...relay, simulator: simulatorTransport(ports), loopback: loopbackTransport(ports) };
}

/** On a local run the simulated provider keeps a log of its own outside the runtime, so that a test can hold us to it. */
async function recordTaken(logUrl: string | null, message: OutgoingMessage, recipients: Address[]): Promise<void> {
  if (logUrl === null) return;
  await fetch(logUrl, {
    method: 'POST',
    body: JSON.stringify({ message_id: message.message_id, recipients, bytes: message.mime.length }),
  });
}
