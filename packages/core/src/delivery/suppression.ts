import type { Address } from '../address/address.ts';
import { LIMITS } from '../limits.ts';
import { cutUnits } from '../message/text.ts';
import type { ProviderSuppression } from '../transport/types.ts';
import type { DeliveryChange } from './outcome.ts';

/**
 * A provider that refuses a whole message because it delivers nothing to some of its recipients: who they are, and what
 * that makes of them.
 */

/** Those of a call whom the provider names, each once; a call for one recipient can have been refused for no other. */
export function suppressedAmong(
  recipients: readonly Address[],
  code: string,
  named: readonly ProviderSuppression[],
): ProviderSuppression[] {
  const found = recipients.flatMap((address) => named.find((entry) => entry.address === address) ?? []);
  const [only, ...others] = recipients;
  if (found.length > 0 || only === undefined || others.length > 0) return found;
  return [{ address: only, reason: code, expires_at: null }];
}

export function suppressedChanges(suppressed: readonly ProviderSuppression[]): DeliveryChange[] {
  return suppressed.map(({ address, reason }) => ({
    address,
    status: 'suppressed',
    smtp_code: null,
    enhanced_code: null,
    smtp_response: cutUnits(`provider: suppressed (${reason})`, LIMITS.smtp_response_chars_max),
  }));
}
