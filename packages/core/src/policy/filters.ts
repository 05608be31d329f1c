import { type Address, domainOf } from '../address/address.ts';
import type { FilterReason, SendContext } from './types.ts';

/** Why nothing may be sent to a recipient, or null. The first rule that matches names the reason. */
export function filterReason(
  context: Pick<SendContext, 'directory' | 'is_known_contact'>,
  address: Address,
): FilterReason | null {
  const { directory } = context;
  const suppressed = Object.hasOwn(directory.suppressions, address) ? directory.suppressions[address] : undefined;
  if (suppressed !== undefined) return suppressed;
  const listed = (entries: string[]): boolean => entries.includes(address) || entries.includes(`@${domainOf(address)}`);
  if (listed(directory.send_block)) return 'send_block';
  if (directory.tenant.policy.send_allowlist_only && !listed(directory.send_allow)) return 'not_on_allowlist';
  if (directory.identity.send_policy.require_known_recipient === true && !context.is_known_contact(address)) {
    return 'unknown_recipient';
  }
  return null;
}

const LIST_RULES: readonly FilterReason[] = ['send_block', 'not_on_allowlist', 'unknown_recipient'];

/** By it a rule of ours is told from what a server said. */
export const FILTER_TEXT_PREFIX = 'policy: ';

/** How a delivery row records the rule that kept it from being sent. */
export function filterText(reason: FilterReason): string {
  return LIST_RULES.includes(reason)
    ? `${FILTER_TEXT_PREFIX}${reason}`
    : `${FILTER_TEXT_PREFIX}suppression (${reason})`;
}

/** Whether the reason is an entry of the suppression list, not a rule of a list or policy. */
export function isSuppression(reason: FilterReason): boolean {
  return !LIST_RULES.includes(reason);
}
