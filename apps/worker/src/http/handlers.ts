import type { Handlers } from '@pmail/contracts/routes.ts';
import type { RequestContext } from './context.ts';
import { billingHandlers } from './routes/billing.ts';
import { eventHandlers } from './routes/events.ts';
import { hookHandlers } from './routes/hooks.ts';
import { identityHandlers } from './routes/identities.ts';
import { keyHandlers } from './routes/keys.ts';
import { linkHandlers } from './routes/links.ts';
import { listHandlers } from './routes/lists.ts';
import { messageHandlers } from './routes/messages.ts';
import { platformHandlers } from './routes/platform.ts';
import { recoveryHandlers } from './routes/recovery.ts';
import { sendHandlers } from './routes/sends.ts';
import { suppressionHandlers } from './routes/suppressions.ts';
import { systemHandlers } from './routes/system.ts';
import { tenantHandlers } from './routes/tenants.ts';
import { threadHandlers } from './routes/threads.ts';
import { usageHandlers } from './routes/usage.ts';
import { webhookDeliveryHandlers } from './routes/webhook-deliveries.ts';
import { webhookHandlers } from './routes/webhooks.ts';

/** One handler for each route of the contract; a missing one does not compile. */
export const handlers: Handlers<RequestContext> = {
  ...systemHandlers,
  ...tenantHandlers,
  ...billingHandlers,
  ...keyHandlers,
  ...identityHandlers,
  ...sendHandlers,
  ...messageHandlers,
  ...linkHandlers,
  ...threadHandlers,
  ...eventHandlers,
  ...usageHandlers,
  ...webhookHandlers,
  ...webhookDeliveryHandlers,
  ...suppressionHandlers,
  ...listHandlers,
  ...platformHandlers,
  ...recoveryHandlers,
  ...hookHandlers,
};
