import { parseAddress } from '../address/address.ts';
import { LIMITS } from '../limits.ts';
import { cutUnits } from '../message/text.ts';
import { parseRfc3339 } from '../time.ts';
import { judgeBounce, judgeOther } from './bounce-class.ts';
import type { DeliveryEvent, DeliveryKind } from './events.ts';
import { type Tree, text, tree } from './json-tree.ts';

/**
 * Events of Cloudflare Email Sending as the queue delivers them: the facts are nested in `payload`, the time stands in
 * `metadata`. Anything may be missing; what cannot be read is told apart from what is of a new type.
 */

export type CloudflareParse =
  | { kind: 'event'; event: DeliveryEvent }
  | { kind: 'unknown_type' }
  | { kind: 'unparsable' };

const PREFIX = 'cf.email.sending.message.';
const KINDS: readonly DeliveryKind[] = ['delivered', 'deferred', 'bounced', 'failed', 'rejected', 'complained'];

export function cloudflareEvent(body: unknown): CloudflareParse {
  const root = tree(body);
  const type = text(root['type']);
  if (type === null) return { kind: 'unparsable' };
  const kind = KINDS.find((name) => type === PREFIX + name);
  if (kind === undefined) return { kind: 'unknown_type' };
  const payload = tree(root['payload']);
  const delivery = tree(payload['delivery']);
  const eventId = text(payload['eventId']);
  const sender = parseAddress(text(payload['sender']) ?? '');
  const recipient = parseAddress(text(payload['recipient']) ?? '');
  const occurredAt = parseRfc3339(text(tree(root['metadata'])['eventTimestamp']) ?? '');
  if (eventId === null || !sender.ok || !recipient.ok || occurredAt === undefined) return { kind: 'unparsable' };
  const smtpCode = text(delivery['smtpStatusCode']);
  const enhancedCode = text(delivery['smtpEnhancedStatusCode']);
  const bounce = tree(payload['bounce']);
  const declared = bounce['type'] === 'hard' ? 'hard' : bounce['type'] === 'soft' ? 'soft' : null;
  const judged =
    kind === 'bounced'
      ? judgeBounce(declared, enhancedCode, smtpCode)
      : { hard: false, outcome: null, suppress: null, ...judgeOther(kind) };
  const rejection = tree(payload['rejection']);
  const reason = text(bounce['reason']) ?? text(tree(payload['failure'])['reason']) ?? text(rejection['reason']);
  const response = text(delivery['smtpResponse']) ?? reason;
  const event: DeliveryEvent = {
    source: 'cloudflare',
    event_id: eventId,
    provider_message_id: text(payload['messageId']),
    sender: sender.address,
    recipient: recipient.address,
    subject: text(payload['subject']),
    kind,
    ...judged,
    smtp_code: smtpCode,
    enhanced_code: enhancedCode,
    smtp_response: response === null ? null : cutUnits(response, LIMITS.smtp_response_chars_max),
    occurred_at: occurredAt,
  };
  if (kind === 'rejected' && saysSuppressed(rejection)) event.suppress = 'provider';
  return { kind: 'event', event };
}

/** The provider refused because the recipient stands on its own suppression list. */
function saysSuppressed(rejection: Tree): boolean {
  const party = text(rejection['party']) ?? text(rejection['type']) ?? '';
  return /suppress/i.test(text(rejection['reason']) ?? '') && /recipient/i.test(party);
}
