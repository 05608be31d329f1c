import { type Address, domainOf, parseAddress } from '../address/address.ts';
import { composedMessageId } from '../compose/headers.ts';
import { type MessageId, parseId, ulidOf } from '../ids.ts';
import { LIMITS } from '../limits.ts';
import { cutUnits } from '../message/text.ts';
import type { Provider } from '../transport/types.ts';
import { judgeBounce } from './bounce-class.ts';
import { codesIn, moreExact, withoutType } from './codes.ts';
import { type DsnRecipient, type DsnReport, withoutTypeOf } from './dsn.ts';
import type { DeliveryEvent } from './events.ts';

/** How a report came to us. */
export interface DsnEnvelope {
  /** The same for the same report, however often it arrives. */
  report_id: string;
  /** The address that it was sent to, which is the sender of the message it is about. */
  sender: Address;
  /** Whether its own envelope sender was null, as RFC 3464 demands. */
  null_sender: boolean;
  /**
   * Whether it proves to know the envelope of our send, by its return path or ENVID. Everybody who got the message knows
   * its Message-ID.
   */
  envelope_proof: boolean;
  /** Unix ms. */
  received_at: number;
}

/**
 * Whether a report that came as mail may change a message. Providers with reports of their own are believed through
 * those alone; only a relay has no other way to tell.
 */
export function isJudgedByDsn(provider: Provider | null): boolean {
  return provider === 'smtp';
}

/**
 * Our message that an id of our own making names. Relay mail keeps the id it was composed with, so it is found even when
 * nobody knows whether the relay took it.
 */
export function composedFor(messageId: string, sender: Address): MessageId | null {
  const ulid = messageId.slice(0, messageId.lastIndexOf('@'));
  const id = parseId('msg', `msg_${ulid.toUpperCase()}`);
  if (id === undefined || messageId !== composedMessageId(ulidOf(id), domainOf(sender))) return null;
  return id;
}

/** The first of the ids of a report that is one of ours. */
export function ourMessageIn(report: DsnReport, sender: Address): MessageId | null {
  for (const id of report.message_ids) {
    const ours = composedFor(id, sender);
    if (ours !== null) return ours;
  }
  return null;
}

/**
 * The events of a report about a message to `recipients`: one for each of them that it speaks of. Whether the message may
 * be judged by it at all is for `isJudgedByDsn` and the null sender to say.
 */
export function dsnEvents(report: DsnReport, envelope: DsnEnvelope, recipients: readonly Address[]): DeliveryEvent[] {
  if (!envelope.null_sender) return [];
  const worst = new Map<Address, { weight: number; event: DeliveryEvent }>();
  for (const entry of report.recipients) {
    const recipient = ourRecipient(entry, recipients);
    const action = recipient === null ? null : actionOf(entry);
    if (recipient === null || action === null) continue;
    // An address that forwards to several is reported once for each; the worst of them is what became of it.
    const before = worst.get(recipient);
    if (before !== undefined && before.weight >= WEIGHT[action]) continue;
    worst.set(recipient, { weight: WEIGHT[action], event: eventFor(report, envelope, entry, recipient, action) });
  }
  return [...worst.values()].map(({ event }) => event);
}

type Action = 'delivered' | 'delayed' | 'expired' | 'failed';

const WEIGHT: Record<Action, number> = { delivered: 0, delayed: 1, expired: 2, failed: 3 };

const ACTIONS = new Map<string, Action>([
  ['failed', 'failed'],
  ['failure', 'failed'],
  // Not of the standard: given up after its time, which says nothing against the address.
  ['expired', 'expired'],
  ['delayed', 'delayed'],
  ['delivered', 'delivered'],
  ['relayed', 'delivered'],
  ['expanded', 'delivered'],
]);

/** What the entry says, else what its status says; nothing for a word that nobody knows. */
function actionOf({ action, status }: DsnRecipient): Action | null {
  const word = /^[a-z]+/i.exec((action ?? '').trim())?.[0].toLowerCase();
  if (word !== undefined) return ACTIONS.get(word) ?? null;
  const severity = (status ?? '').trim()[0];
  return severity === '5' ? 'failed' : severity === '4' ? 'delayed' : severity === '2' ? 'delivered' : null;
}

/** The recipient of ours that an entry is about: where the address that failed is not ours, the one it stands for. */
function ourRecipient(entry: DsnRecipient, recipients: readonly Address[]): Address | null {
  const candidates = [entry.final_recipient, entry.original_recipient].flatMap(spellings);
  return candidates.find((address) => recipients.includes(address)) ?? null;
}

/** As it stands, and with `+2B` and the like read as the characters they stand for (RFC 3461 section 4). */
function spellings(value: string | null): Address[] {
  const bare = (withoutTypeOf(value) ?? '').replace(/^<(.*)>$/, '$1');
  const decoded = bare.replace(/\+([0-9A-F]{2})/g, (_all, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return [bare, decoded].flatMap((text) => {
    const parsed = parseAddress(text);
    return parsed.ok ? [parsed.address] : [];
  });
}

function eventFor(
  report: DsnReport,
  envelope: DsnEnvelope,
  entry: DsnRecipient,
  recipient: Address,
  action: Action,
): DeliveryEvent {
  const said = entry.diagnostic_code ?? entry.remark;
  const quoted = codesIn(said ?? '');
  const stated = /^[245]\.\d{1,3}\.\d{1,3}/.exec((entry.status ?? '').trim())?.[0] ?? null;
  const enhanced = moreExact(stated, quoted.enhanced_code);
  return {
    source: 'dsn',
    event_id: `dsn:${envelope.report_id}:${recipient}`,
    provider_message_id: null,
    message_ids: report.message_ids,
    our_message_id: ourMessageIn(report, envelope.sender),
    sender: envelope.sender,
    recipient,
    subject: null,
    ...verdict(action, enhanced, quoted.smtp_code, envelope.envelope_proof),
    smtp_code: quoted.smtp_code,
    enhanced_code: enhanced,
    smtp_response: said === null ? null : cutUnits(withoutType(said), LIMITS.smtp_response_chars_max),
    occurred_at: envelope.received_at,
  };
}

type Verdict = Pick<DeliveryEvent, 'kind' | 'hard' | 'outcome' | 'suppress'>;

/**
 * A report without proof changes the status that is shown, and nothing that outlasts it: it neither keeps the address
 * from being written to nor counts for or against its sender. Else anybody who was written to could bring both about.
 */
function verdict(action: Action, enhanced: string | null, smtp: string | null, proof: boolean): Verdict {
  const judged = judge(action, enhanced, smtp);
  return proof ? judged : { ...judged, outcome: null, suppress: null };
}

function judge(action: Action, enhanced: string | null, smtp: string | null): Verdict {
  switch (action) {
    case 'delivered':
      return { kind: 'delivered', hard: false, outcome: 'delivered', suppress: null };
    case 'delayed':
      return { kind: 'deferred', hard: false, outcome: null, suppress: null };
    case 'expired':
      return { kind: 'bounced', ...judgeBounce('soft', enhanced, smtp) };
    case 'failed':
      return { kind: 'bounced', ...judgeBounce(null, enhanced, smtp) };
  }
}
