import { parseAddress } from '../address/address.ts';
import { LIMITS } from '../limits.ts';
import type { AddressFacts, SendContext, ThreadFacts } from './types.ts';

/**
 * The From address of a send, or the message that refuses it.
 *
 * An explicit `from_address` wins. A retiring address may be used only in threads that already use it, so that a
 * counterparty keeps its correspondent while new threads move to the primary. A pending address passes here: the next
 * step answers that it is not ready yet.
 */
export function selectFrom(context: SendContext): AddressFacts | string {
  const { directory, thread, body } = context;
  const { addresses } = directory;
  const usedHere = (address: string): boolean =>
    thread !== null && (thread.reply_from_address === address || thread.used_from.includes(address));
  let chosen: AddressFacts | undefined;
  if (body.from_address !== undefined) {
    const parsed = parseAddress(body.from_address);
    if (!parsed.ok) return parsed.message;
    chosen = addresses.find(({ address }) => address === parsed.address);
    if (chosen === undefined || chosen.status === 'retired') return 'is not an active address of this identity';
    if (chosen.status === 'retiring' && !usedHere(chosen.address)) {
      return 'is retiring and can only be used in threads that already use it';
    }
  } else {
    chosen = threadFrom(context) ?? addresses.find(({ role }) => role === 'primary');
    if (chosen === undefined) return 'the identity has no primary address';
  }
  return chosen.domain.sending ? chosen : 'is on a domain that does not send';
}

function threadFrom({ directory, thread, now }: SendContext): AddressFacts | undefined {
  if (thread === null) return undefined;
  if (thread.fallback_pinned && !isPinOver({ directory, now }, thread)) {
    return directory.addresses.find(({ domain, status }) => domain.is_platform && status !== 'retired');
  }
  return directory.addresses.find(
    ({ address, status }) => address === thread.reply_from_address && (status === 'active' || status === 'retiring'),
  );
}

/**
 * Whether a thread that was pinned to the platform address when its domain failed may go back: the domain is well again,
 * and the conversation has been quiet for so long that another From address does not come in the middle of it.
 */
export function isPinOver(context: Pick<SendContext, 'directory' | 'now'>, thread: ThreadFacts): boolean {
  const { addresses } = context.directory;
  const own =
    addresses.find(({ address }) => address === thread.reply_from_address) ??
    addresses.find(({ role }) => role === 'primary');
  return own?.domain.state === 'healthy' && thread.last_at < context.now - LIMITS.fallback_quiet_ms_min;
}
