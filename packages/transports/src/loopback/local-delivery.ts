import { type Address, withoutDetail } from '@pmail/core/address/address.ts';
import type { IdentityId, IdFactory, TenantId } from '@pmail/core/ids.ts';
import type { InboundJob } from '@pmail/core/queue/jobs.ts';
import { type Owner, rawKey } from '@pmail/core/storage/keys.ts';
import type { OutgoingMessage, RecipientRefusal } from '@pmail/core/transport/types.ts';

/** What local delivery needs of the world. */
export interface LocalDeliveryPorts {
  now: () => number;
  newId: IdFactory;
  /** The mailbox that receives for an address (without detail), or undefined. */
  route: (address: Address) => Promise<{ tenant_id: TenantId; identity_id: IdentityId } | undefined>;
  put: (key: string, bytes: Uint8Array, metadata: Record<string, string>) => Promise<void>;
  /** Puts the pointer on the inbound queue. */
  send: (job: InboundJob) => Promise<void>;
}

export interface LocalRoutes {
  found: { recipient: Address; owner: Owner }[];
  refused: RecipientRefusal[];
}

/** Which mailboxes of this deployment receive for the recipients; the others are refused, as by a receiving server. */
export async function routeLocally(
  ports: Pick<LocalDeliveryPorts, 'route'>,
  recipients: Address[],
): Promise<LocalRoutes> {
  const routes: LocalRoutes = { found: [], refused: [] };
  for (const recipient of recipients) {
    const owner = await ports.route(withoutDetail(recipient));
    if (owner !== undefined) {
      routes.found.push({ recipient, owner });
      continue;
    }
    const detail = '550 5.1.1 No such recipient here';
    routes.refused.push({ address: recipient, smtp_code: '550', enhanced_code: '5.1.1', detail });
  }
  return routes;
}

/**
 * Carries a message to mailboxes of this deployment, as Email Routing would: the raw bytes into the receiving mailbox's
 * place in the object store, then a pointer on the inbound queue. The sender's bytes are copied unchanged.
 */
export async function deliverLocally(
  ports: LocalDeliveryPorts,
  sender: Owner,
  message: OutgoingMessage,
  routes: LocalRoutes['found'],
): Promise<InboundJob[]> {
  const copies: InboundJob[] = [];
  for (const { recipient, owner } of routes) {
    const at = ports.now();
    const id = ports.newId('msg', at);
    const key = rawKey(owner, id);
    await ports.put(key, message.mime, { tenant: owner.tenant_id, identity: owner.identity_id, message: id });
    const job: InboundJob = {
      v: 1,
      kind: 'message',
      source: { type: 'routing' },
      message_id: id,
      tenant_id: owner.tenant_id,
      identity_id: owner.identity_id,
      r2_key: key,
      raw_size: message.mime.length,
      envelope_from: message.from.address,
      envelope_to: recipient,
      received_at: at,
      request_id: ports.newId('req', at),
      loopback: { tenant_id: sender.tenant_id, identity_id: sender.identity_id, message_id: message.message_id },
    };
    await ports.send(job);
    copies.push(job);
  }
  return copies;
}
