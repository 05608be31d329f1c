import { suppressedAmong } from '@pmail/core/delivery/suppression.ts';
import type { ProviderSuppression, TransportResult } from '@pmail/core/transport/types.ts';
import type { Route } from '../directory/routing.ts';
import type { ClaimedSend } from '../mailbox/claimed-send.ts';
import type { SuppressedAnswer, SuppressedRequest } from '../mailbox/suppression-round.ts';
import { suppressAddress } from './event.ts';
import { type HandOver, notSent } from './hand-over.ts';
import type { ConsumerWorld, MailboxRemote } from './world.ts';

/** What follows a refusal because of some recipients: the mailbox's word, or a result that is recorded like any other. */
export type AfterRefusal = SuppressedAnswer | { kind: 'record'; result: TransportResult };

/**
 * A provider has refused a whole message because it delivers nothing to some of its recipients. Who they are is asked,
 * they go on the tenant's list, and the mailbox decides about the others. Nothing was sent to anybody until then, so what
 * fails here puts the message off; only whom nobody can name is refused for good.
 */
export async function afterRefusal(
  world: ConsumerWorld,
  route: Route,
  mailbox: MailboxRemote,
  send: ClaimedSend,
  result: Extract<TransportResult, { kind: 'suppressed' }>,
  call: HandOver['call'],
): Promise<AfterRefusal> {
  const recipients = [...send.to, ...send.cc, ...send.bcc];
  // Also about a single recipient, of whom it is clear: the provider says for how long.
  const suppressed = suppressedAmong(recipients, result.code, await ask(world, send, call));
  if (suppressed.length === 0) return { kind: 'record', result };
  try {
    for (const { address, expires_at } of suppressed) {
      await suppressAddress(world, route, address, 'provider', send.message_id, expires_at);
    }
  } catch (error) {
    world.log('warn', 'suppressions_not_synced', { message_id: send.message_id, error: name(error) });
    return { kind: 'record', ...notSent('suppressions_not_synced', name(error)) };
  }
  world.mark('consume.suppressed_synced');
  return claimNext(world, mailbox, {
    message_id: send.message_id,
    claim_token: send.claim_token,
    next_token: world.newToken(),
    result,
    suppressed,
  });
}

async function ask(world: ConsumerWorld, send: ClaimedSend, call: HandOver['call']): Promise<ProviderSuppression[]> {
  try {
    return (await call?.transport.findSuppressed?.(call.message)) ?? [];
  } catch (error) {
    world.log('warn', 'suppressions_not_told', { message_id: send.message_id, error: name(error) });
    return [];
  }
}

/** The answer can be lost on the way; this run has not made the next call, so it may ask for it once more. */
async function claimNext(
  world: ConsumerWorld,
  mailbox: MailboxRemote,
  request: SuppressedRequest,
): Promise<SuppressedAnswer> {
  try {
    return await mailbox.recordSuppressed(request);
  } catch (error) {
    world.log('warn', 'round_answer_lost', { message_id: request.message_id, error: name(error) });
    return mailbox.recordSuppressed(request);
  }
}

function name(error: unknown): string {
  return error instanceof Error ? error.name : 'unknown';
}
