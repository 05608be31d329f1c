import { consumeBatch } from './consumers/index.ts';
import { runCron } from './crons/index.ts';
import { receiveEmail } from './email/receive.ts';
import type { Env } from './env.ts';
import { handlers } from './http/handlers.ts';
import { createApp } from './http/router.ts';

export { WebhookRun } from './consumers/webhooks.ts';
export { IdentityMailbox } from './objects/mailbox.ts';
export { TenantQuota } from './objects/quota.ts';

const app = createApp(handlers);

export default {
  fetch: (request, env, ctx) => app.fetch(request, env, ctx),
  queue: (batch, env) => consumeBatch(batch, env),
  email: (message, env) => receiveEmail(message, env),
  scheduled: (controller, env) => runCron(controller.cron, env),
} satisfies ExportedHandler<Env>;
