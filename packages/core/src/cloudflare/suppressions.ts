import { type Address, domainOf, parseAddress } from '../address/address.ts';
import { parseRfc3339 } from '../time.ts';
import type { ProviderSuppression } from '../transport/types.ts';

/** The suppression list of a Cloudflare account, as its REST API shows it. */

export interface CloudflareAccount {
  id: string;
  token: string;
}

/** The question about one address. The list has no more than a few entries for it, so one page is all. */
export function suppressionsPath({ id }: CloudflareAccount, address: Address): string {
  return `/client/v4/accounts/${encodeURIComponent(id)}/email/sending/suppressions?email=${encodeURIComponent(address)}`;
}

/**
 * The entry that keeps mail of a sender from an address, or null when the answer holds none: one of the whole account, or
 * of the sender's own domain. Of several the one that lasts longest counts.
 */
export function suppressionIn(body: unknown, address: Address, sender: Address): ProviderSuppression | null {
  const { success, result } = tree(body);
  if (success !== true || !Array.isArray(result)) return null;
  let found: ProviderSuppression | null = null;
  for (const item of result) {
    const { email, reason, expires_at: expires, scope } = tree(item);
    if (typeof email !== 'string' || !isSame(email, address) || !covers(scope, domainOf(sender))) continue;
    const entry: ProviderSuppression = {
      address,
      reason: typeof reason === 'string' && reason !== '' ? reason : 'unknown',
      expires_at: typeof expires === 'string' ? (parseRfc3339(expires) ?? null) : null,
    };
    if (found === null || lastsLonger(entry, found)) found = entry;
  }
  return found;
}

function lastsLonger(a: ProviderSuppression, b: ProviderSuppression): boolean {
  return b.expires_at !== null && (a.expires_at === null || a.expires_at > b.expires_at);
}

/** An entry without a scope is of the account: there were no others once. */
function covers(scope: unknown, domain: string): boolean {
  if (scope === undefined || scope === null) return true;
  const { type, value } = tree(scope);
  return type === 'account' || (type === 'sending_domain' && value === domain);
}

function isSame(text: string, address: Address): boolean {
  const parsed = parseAddress(text);
  return parsed.ok && parsed.address === address;
}

function tree(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}
