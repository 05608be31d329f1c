import { parseIpv4 } from './blocked.ts';

/** Names of this deployment, which nothing made on a customer's word may reach. */
export interface OwnHosts {
  api_host: string;
  platform_domain: string;
}

/** Names that mean something only inside a network, or nothing at all (RFC 2606, RFC 6761, RFC 6762, RFC 7686). */
const PRIVATE_SUFFIXES = ['localhost', 'local', 'internal', 'invalid', 'test', 'example', 'onion', 'arpa'];

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * What stands against a host that a customer has named, or null. It must be a public DNS name; which addresses it has is
 * looked at when it is used.
 *
 * @param host in lower case, as the URL parser or an IDNA conversion gives it
 */
export function hostFault(host: string, own: OwnHosts): string | null {
  const name = host.replace(/\.$/, '');
  if (name.startsWith('[') || parseIpv4(name) !== undefined) return 'must be a name, not an address';
  const labels = name.split('.');
  if (name.length > 253 || !labels.every((label) => LABEL.test(label))) return 'must be a DNS name';
  // Resolvers read numbers, in decimal, hexadecimal or octal, as addresses.
  if (/^(?:0x[0-9a-f]*|\d+)$/.test(labels.at(-1) ?? '')) return 'must be a name, not an address';
  if (PRIVATE_SUFFIXES.some((suffix) => isOrBelow(name, suffix))) return 'must be a public name';
  if (labels.length < 2) return 'must have at least two labels';
  if (name === own.api_host.toLowerCase().split(':')[0] || isOrBelow(name, own.platform_domain.toLowerCase())) {
    return 'must not be a host of this service';
  }
  return null;
}

function isOrBelow(name: string, parent: string): boolean {
  return name === parent || name.endsWith(`.${parent}`);
}
