import type { InboundWorld } from '@pmail/engine/consumers/inbound.ts';
import type { MailboxPorts } from '@pmail/engine/mailbox/world.ts';
import type { QuotaWorld } from '@pmail/engine/quota/types.ts';
import type { WebhookWorld } from '@pmail/engine/webhooks/world.ts';

/**
 * What stands between the engines and the simulated world. A run passes everything through unchanged; a test puts a
 * broken part in between and looks whether the checkers find it.
 */
export interface Wiring {
  mailbox: (ports: MailboxPorts) => MailboxPorts;
  quota: (world: QuotaWorld) => QuotaWorld;
  consumer: (world: InboundWorld) => InboundWorld;
  webhooks: (world: WebhookWorld) => WebhookWorld;
}

export const STRAIGHT: Wiring = {
  mailbox: (ports) => ports,
  quota: (world) => world,
  consumer: (world) => world,
  webhooks: (world) => world,
};
