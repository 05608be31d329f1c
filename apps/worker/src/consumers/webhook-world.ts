import type { EventIndexRow } from '@pmail/engine/directory/events.ts';
import { routeIdentity } from '@pmail/engine/directory/routing.ts';
import type { Db } from '@pmail/engine/sql.ts';
import type { WebhookWorld } from '@pmail/engine/webhooks/world.ts';
import { config, type Env } from '../env.ts';
import { createLog } from '../log.ts';
import { marks } from '../marks.ts';
import { mailboxStub } from '../objects/remote.ts';
import { post } from '../ports/post.ts';
import { producer } from '../ports/queue.ts';
import { newId, random } from '../ports/random.ts';
import { resolveHost } from '../ports/resolver.ts';
import { d1 } from '../ports/sql.ts';
import { signingSecrets } from '../ports/webhook-secrets.ts';

/** World of whatever delivers webhooks: the consumer of their queue, the sweep, a test on request. */
export function webhookWorld(env: Env, requestId: string): WebhookWorld {
  const settings = config(env);
  const log = createLog(env.PM_LOG_LEVEL, { request_id: requestId });
  const db = d1(env.DB);
  return {
    db,
    now: () => Date.now(),
    random,
    newId,
    mark: (name) => marks.reached(name, null),
    log,
    count: (counter) => log('info', 'count', { counter }),
    queue: producer(env.Q_WEBHOOKS),
    waits: settings.waits,
    rules: endpointRules(env),
    resolve: (host) => resolveHost(settings.resolvers, host),
    readEvent: (row) => readEvent(env, db, requestId, row),
    secrets: (endpoint, now) => signingSecrets(settings.master_key, endpoint, now),
    post,
  };
}

export function endpointRules(env: Env): WebhookWorld['rules'] {
  const { api_host, platform_domain, webhook_loopback: allow_loopback } = config(env);
  return { api_host, platform_domain, allow_loopback };
}

async function readEvent(env: Env, db: Db, requestId: string, row: EventIndexRow): Promise<string | null> {
  if (row.payload_json !== null) return row.payload_json;
  if (row.owner_kind !== 'mailbox' || row.identity_id === null) return null;
  const route = await routeIdentity(db, row.identity_id);
  if (route === undefined || route.mailbox_do_id === '') return null;
  const { tenant_id, identity_id, mailbox_do_id: id } = route;
  const call = { v: 1 as const, tenant_id, identity_id, request_id: requestId };
  return (await mailboxStub(env, id).readEvent(call, row.id)) ?? null;
}
