import { domainOf, parseAddress } from '@pmail/core/address/address.ts';
import { composedMessageId } from '@pmail/core/compose/headers.ts';
import { type MessageId, ulidOf } from '@pmail/core/ids.ts';
import { isBlockedAddress } from '@pmail/core/net/blocked.ts';
import { wireSize } from '@pmail/core/smtp/body.ts';
import type { ExchangePlan, RelayIssue } from '@pmail/core/smtp/exchange-types.ts';
import { isLoopback, type RelayRules, type RelaySettings, relayFault, tlsOf } from '@pmail/core/smtp/settings.ts';
import { transportResult } from '@pmail/core/smtp/transport-result.ts';
import type { MailTransport, OutgoingMessage, TransportResult } from '@pmail/core/transport/types.ts';
import { type ExchangePorts, runExchange } from './run-exchange.ts';
import type { RelayClock } from './socket.ts';

export interface RelayPorts extends ExchangePorts {
  rules: RelayRules;
  /** What this service calls itself behind EHLO. */
  ehlo_name: string;
  /** Opens the sealed settings of a sending domain; null when it has none. */
  relayOf: (domain: string) => Promise<RelaySettings | null>;
  /** The id under which reports of a bounce are to name the send. */
  envelopeIdOf: (id: MessageId) => Promise<string>;
  /** Every address of a host. */
  resolve: (host: string) => Promise<string[]>;
  /** The domain's relay cannot be used as it is set up, and its health should be looked at now. */
  requestDomainCheck: (domain: string, issue: RelayIssue) => Promise<void>;
}

/** The customer's own relay: each message over a connection of its own, with the credentials opened only for it. */
export function smtpTransport(ports: RelayPorts): MailTransport {
  return { provider: 'smtp', send: (message, deadlineMs) => sendByRelay(ports, message, deadlineMs) };
}

async function sendByRelay(ports: RelayPorts, message: OutgoingMessage, deadlineMs: number): Promise<TransportResult> {
  const ends = ports.clock.now() + deadlineMs;
  const recipients = [...message.to, ...message.cc, ...message.bcc];
  const unfit = [message.from.address, ...recipients].find((address) => !isOwnSpelling(address));
  if (unfit !== undefined) {
    const detail = 'an address is not one that can be written into a command';
    return { kind: 'rejected', reason: 'provider_validation', code: 'address_invalid', detail, refused: [] };
  }
  const domain = domainOf(message.from.address);
  const found = await within(ports.clock, deadlineMs, findRelay(ports, domain));
  if (!found.ok) return { kind: 'retry_later', class: 'relay', code: found.code, detail: found.detail, refused: [] };
  const { host, port, username, password } = found.relay;
  const tls = tlsOf(found.relay);
  const plan: ExchangePlan = {
    tls,
    ehlo_name: ports.ehlo_name,
    login: { username, password },
    from: message.from.address,
    recipients,
    // Without it a bounce is only believed less.
    envelope_id: await ports.envelopeIdOf(message.message_id).catch(() => null),
    size: wireSize(message.mime),
  };
  const left = Math.max(ends - ports.clock.now(), 1);
  const result = await runExchange(ports, { host, port, tls }, plan, message.mime, left);
  if (result.kind === 'rejected' && result.issue !== null) {
    // What is known about this message stays known, whether or not somebody can be told about the domain.
    await ports.requestDomainCheck(domain, result.issue).catch(() => undefined);
  }
  return transportResult(result, host, composedMessageId(ulidOf(message.message_id), domain));
}

/** Addresses go into command lines, so each must be what our own parser makes of it, and no more. */
function isOwnSpelling(address: string): boolean {
  const parsed = parseAddress(address);
  return parsed.ok && parsed.address === address;
}

type Found = { ok: true; relay: RelaySettings } | { ok: false; code: string; detail: string };

/** The relay of a domain, once nothing stands against connecting to it. Whatever fails here, nothing was sent. */
async function findRelay(ports: RelayPorts, domain: string): Promise<Found> {
  const no = (code: string, detail: string): Found => ({ ok: false, code, detail });
  let relay: RelaySettings | null;
  try {
    relay = await ports.relayOf(domain);
  } catch {
    return no('relay_unreadable', 'the settings of the relay cannot be read');
  }
  if (relay === null) return no('relay_not_configured', 'the domain has no relay');
  const fault = relayFault(relay, ports.rules);
  if (fault !== null) return no('relay_not_allowed', `the relay ${fault}`);
  if (ports.rules.allow_loopback && isLoopback(relay.host)) return { ok: true, relay };
  let addresses: string[];
  try {
    addresses = await ports.resolve(relay.host);
  } catch {
    return no('relay_not_resolved', 'the name of the relay could not be looked up');
  }
  if (addresses.length === 0) return no('relay_not_resolved', 'the relay has no address');
  // The runtime looks the name up again when it connects, so one bad address among several is one too many.
  if (addresses.some(isBlockedAddress)) return no('relay_not_allowed', 'the relay has an address that is not public');
  return { ok: true, relay };
}

/** The finding, or that it took too long. */
function within(clock: RelayClock, ms: number, finding: Promise<Found>): Promise<Found> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(ms, () => {
      resolve({ ok: false, code: 'smtp_timeout', detail: 'the time was over before the relay could be connected to' });
    });
    finding.then(resolve, reject).finally(cancel);
  });
}
