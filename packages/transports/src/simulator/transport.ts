import { type Address, domainOf } from '@pmail/core/address/address.ts';
import { composedMessageId } from '@pmail/core/compose/headers.ts';
import { messageIdOf } from '@pmail/core/compose/originator.ts';
import { ulidOf } from '@pmail/core/ids.ts';
import type { Owner } from '@pmail/core/storage/keys.ts';
import { isSimulatorAddress, simulatorScript, testProviderId } from '@pmail/core/transport/simulator-scripts.ts';
import type { MailTransport, OutgoingMessage, ScheduledEvent, TransportResult } from '@pmail/core/transport/types.ts';
import { deliverLocally, type LocalDeliveryPorts, routeLocally } from '../loopback/local-delivery.ts';

export interface TestTransportPorts extends LocalDeliveryPorts {
  /** Whose message it is; copies name it, so that their arrival can be reported back. */
  ownerOf: (message: OutgoingMessage) => Owner;
  /** Called when a message is taken, before the answer: the provider's own log. */
  taken?: (message: OutgoingMessage, recipients: Address[]) => Promise<void>;
}

/**
 * The provider of test tenants. Recipients at simulator.invalid pick a script, recipients at local addresses get a copy.
 * One message has one fate: any `reject` rejects all of it, else any `timeout` leaves all of it unknown.
 */
export function simulatorTransport(
  ports: TestTransportPorts,
  provider: 'simulator' | 'loopback' = 'simulator',
): MailTransport {
  return { provider, send: (message) => sendTest(ports, message) };
}

/** The same provider when every recipient is a local address. */
export function loopbackTransport(ports: TestTransportPorts): MailTransport {
  return simulatorTransport(ports, 'loopback');
}

async function sendTest(ports: TestTransportPorts, message: OutgoingMessage): Promise<TransportResult> {
  const recipients = [...message.to, ...message.cc, ...message.bcc];
  const scripted = recipients
    .filter(isSimulatorAddress)
    .map((address) => ({ address, script: simulatorScript(address) }));
  if (scripted.some(({ script }) => script.answer === 'rejected')) {
    const detail = 'a recipient at the simulator asked for a rejection';
    return { kind: 'rejected', reason: 'provider_validation', code: 'E_SIMULATED_REJECT', detail, refused: [] };
  }
  if (scripted.some(({ script }) => script.answer === 'unknown')) {
    return {
      kind: 'unknown',
      reason: 'transport_timeout',
      detail: 'a recipient at the simulator asked for a time-out',
    };
  }
  const scheduled = scripted.flatMap(({ address, script }): ScheduledEvent[] =>
    script.answer === 'accepted'
      ? script.events.map((event, index) => ({ ...event, recipient: address, n: index + 1 }))
      : [],
  );
  const { found, refused } = await routeLocally(
    ports,
    recipients.filter((address) => !isSimulatorAddress(address)),
  );
  const taken = recipients.filter((address) => !refused.some((refusal) => refusal.address === address));
  if (taken.length === 0) {
    const detail = 'no recipient exists on this deployment';
    return { kind: 'rejected', reason: 'provider_validation', code: '550', detail, refused };
  }
  await ports.taken?.(message, taken);
  const copies = await deliverLocally(ports, ports.ownerOf(message), message, found);
  return {
    kind: 'accepted',
    provider_message_id: testProviderId(message.message_id),
    // A message that has fallen back keeps the Message-ID of the domain it was composed for.
    rfc_message_id:
      messageIdOf(message.mime) ?? composedMessageId(ulidOf(message.message_id), domainOf(message.from.address)),
    refused,
    deferred: [],
    scheduled,
    copies,
  };
}
