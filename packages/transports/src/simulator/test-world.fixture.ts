import { createIdFactory, type IdentityId, type TenantId } from '@pmail/core/ids.ts';
import type { InboundJob } from '@pmail/core/queue/jobs.ts';
import type { OutgoingMessage } from '@pmail/core/transport/types.ts';
import type { TakenMail } from '../contract.ts';
import type { TestTransportPorts } from './transport.ts';

export const NOW = Date.UTC(2026, 10, 30, 9);
export const SENDER = {
  tenant_id: 'ten_01JD9Q3V7M8X2C4N6B5K1R0E9T' as TenantId,
  identity_id: 'idn_01JD9Q3V7M8X2C4N6B5K1R0E9T' as IdentityId,
};
export const SHOP = {
  tenant_id: 'ten_01JD9Q3V7M8X2C4N6B5K1R0E9T' as TenantId,
  identity_id: 'idn_01JD9Q3V7M8X2C4N6B5K1R0E9S' as IdentityId,
};
export const SHOP_ADDRESS = 'shop.acme@agents.example';
export const DESK_ADDRESS = 'desk.acme@agents.example';

export function outgoing(recipients: Partial<Pick<OutgoingMessage, 'to' | 'cc' | 'bcc'>>): OutgoingMessage {
  return {
    message_id: 'msg_01JD9Q3V7M8X2C4N6B5K1R0E9T',
    from: { address: DESK_ADDRESS, name: 'Desk' },
    reply_to: null,
    to: [],
    cc: [],
    bcc: [],
    ...recipients,
    subject: 'Your booking',
    text: null,
    html: null,
    headers: [],
    attachments: [],
    mime: Uint8Array.of(0x46, 0x72, 0x6f, 0x6d, 0x3a, 0xff, 0x00),
    journal_bcc: null,
  };
}

/** What the test providers reach: a directory of two addresses, a store and a queue, and the provider's own log. */
export class TestWorld {
  readonly objects = new Map<string, { bytes: Uint8Array; metadata: Record<string, string> }>();
  readonly queue: InboundJob[] = [];
  readonly log: TakenMail[] = [];
  failing: 'route' | 'put' | 'send' | 'taken' | null = null;
  readonly #newId = createIdFactory(() => 0.5);

  get ports(): TestTransportPorts {
    return {
      now: () => NOW,
      newId: this.#newId,
      route: async (address) => {
        this.#fail('route');
        return address === SHOP_ADDRESS ? SHOP : address === DESK_ADDRESS ? SENDER : undefined;
      },
      put: async (key, bytes, metadata) => {
        this.#fail('put');
        this.objects.set(key, { bytes, metadata });
      },
      send: async (job) => {
        this.#fail('send');
        this.queue.push(job);
      },
      ownerOf: () => SENDER,
      taken: async (message, recipients) => {
        this.#fail('taken');
        this.log.push({ recipients, mime: message.mime });
      },
    };
  }

  #fail(what: NonNullable<TestWorld['failing']>): void {
    if (this.failing === what) throw new Error(`${what} failed`);
  }
}
