import type { InboundJob, WebhookJob } from '@pmail/core/queue/jobs.ts';
import { consumeEvent } from '@pmail/engine/consumers/event.ts';
import { consumeInbound } from '@pmail/engine/consumers/inbound.ts';
import { consumeLearnedId } from '@pmail/engine/consumers/learned-id.ts';
import type { RelayPlaces } from '@pmail/engine/consumers/relay-places.ts';
import { consumeSend } from '@pmail/engine/consumers/send.ts';
import type { Disposition } from '@pmail/engine/consumers/world.ts';
import type { Env } from '../env.ts';
import { createLog } from '../log.ts';
import { newId } from '../ports/random.ts';
import { runBatch } from './batch.ts';
import { consumeDelivery } from './delivery.ts';
import { relayPlaces } from './relay.ts';
import { consumeTell, type OutboundWork } from './tell.ts';
import { webhookWorld } from './webhook-world.ts';
import { consumeWebhooks } from './webhooks.ts';
import { consumerWorld } from './world.ts';

/** Every queue of the deployment. A message of a shape this version does not know is acknowledged and counted. */
export async function consumeBatch(batch: MessageBatch<unknown>, env: Env): Promise<void> {
  const log = createLog(env.PM_LOG_LEVEL, { queue: batch.queue });
  switch (batch.queue) {
    case 'pm-outbound': {
      const places = relayPlaces();
      return runBatch(batch as MessageBatch<OutboundWork>, log, (job, letNext) => outbound(env, job, places(letNext)));
    }
    case 'pm-inbound':
      return runBatch(batch as MessageBatch<InboundJob>, log, (job) =>
        consumeInbound(consumerWorld(env, job.request_id, null), job),
      );
    case 'pm-delivery-events':
      return consumeDelivery(batch, env, log);
    case 'pm-webhooks':
      return consumeWebhooks(batch as MessageBatch<WebhookJob>, webhookWorld(env, newId('req', Date.now())));
    default:
      log('error', 'unknown_queue', {});
      return batch.retryAll();
  }
}

function outbound(env: Env, job: OutboundWork, places: RelayPlaces): Promise<Disposition> {
  if (job.kind === 'transport_event')
    return consumeEvent(consumerWorld(env, newId('req', Date.now()), null), job.event);
  if (job.kind === 'learned_id')
    return consumeLearnedId(consumerWorld(env, newId('req', Date.now()), null), job.learned);
  if (job.kind === 'tenant_status') return consumeTell(env, job);
  return consumeSend({ ...consumerWorld(env, job.request_id, job), relay_places: places }, job);
}
