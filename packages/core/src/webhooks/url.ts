import { utf8Length } from '../hash.ts';
import { LIMITS } from '../limits.ts';
import { hostFault, type OwnHosts } from '../net/host.ts';

export interface EndpointRules extends OwnHosts {
  /** Local runs only: endpoints on this machine, by http and by address. */
  allow_loopback: boolean;
}

/** What stands against the URL of a webhook endpoint, or null. */
export function endpointUrlFault(text: string, rules: EndpointRules): string | null {
  if (utf8Length(text) > LIMITS.webhook_url_bytes_max) return `must have at most ${LIMITS.webhook_url_bytes_max} bytes`;
  if (!/^[\x21-\x7e]+$/.test(text) || text.includes('\\')) return 'must be an absolute https URL in ASCII';
  const url = parse(text);
  if (url === undefined) return 'must be an absolute https URL';
  if (url.username !== '' || url.password !== '' || /^[^/]*\/\/[^/?#]*@/.test(text)) {
    return 'must not carry a user name or password';
  }
  if (text.includes('#')) return 'must not carry a fragment';
  if (rules.allow_loopback && isLoopbackUrl(url)) return null;
  if (url.protocol !== 'https:' || !/^https:\/\/[^/?]/i.test(text)) return 'must be an absolute https URL';
  const port = url.port === '' ? 443 : Number(url.port);
  if (port !== 443 && port < 1_024) return 'must use port 443 or one from 1024 to 65535';
  return hostFault(url.hostname, rules);
}

/** An endpoint on this machine, for trying things out. */
export function isLoopbackUrl(url: URL): boolean {
  const local = url.hostname === '127.0.0.1' || url.hostname === 'localhost' || url.hostname === '[::1]';
  return local && (url.protocol === 'http:' || url.protocol === 'https:');
}

function parse(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}
