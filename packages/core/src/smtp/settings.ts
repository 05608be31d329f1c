import { domainOf, parseAddress } from '../address/address.ts';
import { utf8Length } from '../hash.ts';
import { LIMITS } from '../limits.ts';
import { hostFault, type OwnHosts } from '../net/host.ts';
import { type FieldError, invalidRequest, ok, type Result, refuse } from '../result.ts';
import type { ExchangePlan } from './exchange-types.ts';

/** The relay of a domain, as it is kept sealed. */
export interface RelaySettings {
  host: string;
  port: number;
  username: string;
  password: string;
  /** From of the messages that probe the relay. */
  probe_from: string;
  /** On this machine only, where ports say nothing. */
  tls?: ExchangePlan['tls'];
}

export interface RelayRules extends OwnHosts {
  /** Local runs only: relays on this machine, on any port. */
  allow_loopback: boolean;
}

/** TLS from the first byte (RFC 8314 section 3.3), and submission with STARTTLS (RFC 6409). */
const PORTS: Record<number, ExchangePlan['tls']> = { 465: 'implicit', 587: 'starttls' };

export function tlsOf({ port, tls }: Pick<RelaySettings, 'port' | 'tls'>): ExchangePlan['tls'] {
  return PORTS[port] ?? tls ?? 'starttls';
}

/**
 * What stands against a connection to a relay, or null. Asked when settings are made and again before every connection,
 * because rules change while settings stay.
 */
export function relayFault({ host, port }: Pick<RelaySettings, 'host' | 'port'>, rules: RelayRules): string | null {
  if (rules.allow_loopback && isLoopback(host)) return null;
  if (!Object.hasOwn(PORTS, port)) return 'must use port 465 or 587';
  return hostFault(host, rules);
}

/** Whether a host is this machine; it is not looked up then. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '127.0.0.1' || host === '::1';
}

/** The settings that were sealed; undefined when it is not such a text. */
export function parseRelaySettings(text: string): RelaySettings | undefined {
  let value: Partial<Record<keyof RelaySettings, unknown>> | null;
  try {
    value = JSON.parse(text) as typeof value;
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const { host, port, username, password, probe_from, tls } = value;
  if (typeof host !== 'string' || typeof port !== 'number' || typeof probe_from !== 'string') return undefined;
  if (typeof username !== 'string' || typeof password !== 'string') return undefined;
  const settings: RelaySettings = { host, port, username, password, probe_from };
  return tls === 'implicit' || tls === 'starttls' ? { ...settings, tls } : settings;
}

/** Settings as a caller gives them for a domain, checked and completed; whether the relay answers is another question. */
export function checkRelaySettings(
  input: Omit<RelaySettings, 'probe_from' | 'tls'> & { probe_from?: string },
  domain: string,
  rules: RelayRules,
): Result<RelaySettings> {
  const host = input.host.toLowerCase().replace(/\.$/, '');
  const { port, username, password } = input;
  const local = rules.allow_loopback && isLoopback(host);
  if (!local && !Object.hasOwn(PORTS, port)) return refuse('smtp_port_not_allowed');
  const errors: FieldError[] = [];
  const add = (field: string, message: string | null): void => {
    if (message !== null) errors.push({ path: `smtp.${field}`, message });
  };
  add('host', relayFault({ host, port }, rules));
  add('username', credentialFault(username));
  add('password', credentialFault(password));
  const probe = parseAddress(input.probe_from ?? `postmaster@${domain}`);
  if (!probe.ok) add('probe_from', probe.message);
  else if (domainOf(probe.address) !== domain) add('probe_from', `must be an address at ${domain}`);
  if (errors.length > 0 || !probe.ok) return invalidRequest(...errors);
  return ok({ host, port, username, password, probe_from: probe.address });
}

function credentialFault(text: string): string | null {
  if (text === '') return 'must not be empty';
  // NUL separates the parts of a PLAIN response (RFC 4616).
  if (/[\0\r\n]/.test(text)) return 'must not contain NUL, CR or LF';
  const max = LIMITS.smtp_credential_bytes_max;
  return utf8Length(text) > max ? `must have at most ${max} bytes` : null;
}

/** What we call ourselves behind EHLO: a name, or an address in brackets (RFC 5321 section 4.1.3). */
export function ehloName(apiHost: string): string {
  const host = apiHost.toLowerCase().replace(/:\d+$/, '');
  if (/^[\d.]+$/.test(host)) return `[${host}]`;
  return /^[a-z0-9-]+(?:\.[a-z0-9-]+)*$/.test(host) ? host : '[127.0.0.1]';
}
