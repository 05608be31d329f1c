import { exports, WorkerEntrypoint } from 'cloudflare:workers';
import type { WebhookJob } from '@pmail/core/queue/jobs.ts';
import { deliver } from '@pmail/engine/webhooks/deliver.ts';
import type { EndpointId } from '@pmail/engine/webhooks/endpoints.ts';
import { fanOut } from '@pmail/engine/webhooks/fan-out.ts';
import { takeUp, type Work } from '@pmail/engine/webhooks/work.ts';
import type { WebhookWorld } from '@pmail/engine/webhooks/world.ts';
import type { Env } from '../env.ts';
import { errorPlace } from '../log.ts';
import { retryAfterFault } from './batch.ts';
import { webhookWorld } from './webhook-world.ts';

/**
 * The queue of webhooks. Nobody waits for an endpoint here: a delivery that was taken up runs on its own, and stands in the
 * directory with a time by which it must have been recorded.
 */
export async function consumeWebhooks(batch: MessageBatch<WebhookJob>, world: WebhookWorld): Promise<void> {
  await Promise.all(
    batch.messages.map(async (message) => {
      try {
        await run(world, message.body);
        message.ack();
      } catch (error) {
        world.log('error', 'job_failed', {
          queue: batch.queue,
          attempts: message.attempts,
          error: errorPlace(error),
        });
        retryAfterFault(batch.queue, message);
      }
    }),
  );
}

async function run(world: WebhookWorld, job: WebhookJob): Promise<void> {
  if (job.kind === 'fanout') return fanOut(world, job.event_id);
  const work = await takeUp(world, job.endpoint_id, job.event_id);
  if (work !== undefined) await exports.WebhookRun.begin(job.endpoint_id, work);
}

/**
 * One attempt at an endpoint, in an invocation of its own: it has its own connections, and the batch that began it ends
 * whether the endpoint answers or not.
 */
export class WebhookRun extends WorkerEntrypoint<Env> {
  /** Comes back at once; the attempt goes on. */
  async begin(endpoint: EndpointId, work: Work): Promise<void> {
    const world = webhookWorld(this.env, `webhook ${work.event_id}`);
    this.ctx.waitUntil(
      deliver(world, endpoint, work).catch((error: unknown) => {
        world.log('warn', 'webhook_not_recorded', {
          endpoint_id: endpoint,
          event_id: work.event_id,
          error: errorPlace(error),
        });
      }),
    );
  }
}
