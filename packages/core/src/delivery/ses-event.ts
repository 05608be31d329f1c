import type { Address } from '../address/address.ts';
import { type MessageId, parseId } from '../ids.ts';
import { LIMITS } from '../limits.ts';
import { cutUnits } from '../message/text.ts';
import { SES_MESSAGE_TAG, sesWireId } from '../ses/names.ts';
import { parseRfc3339 } from '../time.ts';
import { judgeBounce, judgeOther } from './bounce-class.ts';
import { codesIn, moreExact, withoutType } from './codes.ts';
import type { DeliveryEvent, DeliveryKind, LearnedId } from './events.ts';
import { addressIn, list, type Tree, text, tree } from './json-tree.ts';

/**
 * Events of Amazon SES, as the `Message` of an SNS notification holds them. Configuration sets and identities spell them
 * in two ways, and nearly everything may be missing.
 */

export interface SesEnvelope {
  /** MessageId of the SNS notification: the same for every repeat of it. */
  notification_id: string;
  /** Unix ms at which SNS took the event; stands in where the event has no time of its own. */
  at: number;
  /** Region of the SES account, which is part of the Message-ID that recipients see. */
  region: string;
}

export type SesParse =
  | { kind: 'events'; events: DeliveryEvent[] }
  /** SES took the message: nothing has happened to a recipient, but the ids are known now. */
  | { kind: 'learned'; learned: LearnedId }
  /** A report that changes nothing, such as a recipient who says that it is not spam after all. */
  | { kind: 'nothing' }
  | { kind: 'unknown_type' }
  | { kind: 'unparsable' };

/** What all recipients of one event share. */
interface Common {
  envelope: SesEnvelope;
  mail: Tree;
  sender: Address;
}

type Recipient = { address: Address; fields: Tree };

export function sesEvent(body: unknown, envelope: SesEnvelope): SesParse {
  const root = tree(body);
  const type = text(root['eventType']) ?? text(root['notificationType']);
  const mail = tree(root['mail']);
  if (type === null) return { kind: 'unparsable' };
  const read = READERS.get(type.replaceAll(' ', '').toLowerCase());
  if (read === undefined) return { kind: 'unknown_type' };
  const [author] = list(tree(mail['commonHeaders'])['from']);
  const sender = addressIn(author) ?? addressIn(mail['source']);
  return sender === null ? { kind: 'unparsable' } : read({ envelope, mail, sender }, root);
}

/** By the name of the type without blanks, in lower case. */
const READERS = new Map<string, (common: Common, root: Tree) => SesParse>([
  ['send', (common) => learned(common)],
  ['delivery', (common, root) => delivered(common, tree(root['delivery']))],
  ['bounce', (common, root) => bounced(common, tree(root['bounce']))],
  ['complaint', (common, root) => complained(common, tree(root['complaint']))],
  ['deliverydelay', (common, root) => deferred(common, tree(root['deliveryDelay']))],
  ['reject', (common, root) => refused(common, text(tree(root['reject'])['reason']))],
  ['renderingfailure', (common, root) => refused(common, text(tree(root['failure'])['errorMessage']))],
]);

function learned({ envelope, mail, sender }: Common): SesParse {
  const id = text(mail['messageId']);
  if (id === null) return { kind: 'unparsable' };
  return {
    kind: 'learned',
    learned: {
      sender,
      provider_message_id: id,
      rfc_message_id: sesWireId(id, envelope.region),
      our_message_id: taggedId(mail),
      occurred_at: timeOf(mail, mail, envelope),
    },
  };
}

function delivered(common: Common, details: Tree): SesParse {
  const answer = reply(text(details['smtpResponse']));
  return each(common, details, details['recipients'], () => ({ kind: 'delivered', ...answer }));
}

const DECLARED = new Map<unknown, 'hard' | 'soft'>([
  ['Permanent', 'hard'],
  ['Transient', 'soft'],
  ['Undetermined', 'soft'],
]);
/** SES did not even try: the address stands on a list of its own, or on the account's. */
const NOT_TRIED = ['Suppressed', 'OnAccountSuppressionList'];
const LISTED = { hard: true, outcome: 'bounced', suppress: 'provider' } as const;

function bounced(common: Common, details: Tree): SesParse {
  const declared = DECLARED.get(details['bounceType']) ?? null;
  const listed = declared === 'hard' && NOT_TRIED.includes(text(details['bounceSubType']) ?? '');
  return each(common, details, details['bouncedRecipients'], ({ fields }) => {
    const said = diagnosis(fields);
    const verdict = listed ? LISTED : judgeBounce(declared, said.enhanced_code, said.smtp_code);
    return { kind: 'bounced', ...verdict, ...said };
  });
}

function complained(common: Common, details: Tree): SesParse {
  const feedback = text(details['complaintFeedbackType']);
  if (feedback?.toLowerCase() === 'not-spam') return { kind: 'nothing' };
  // Nobody has complained of this mail: SES has not sent it, because of an earlier complaint.
  const listed = details['complaintSubType'] === 'OnAccountSuppressionList';
  return each(common, details, details['complainedRecipients'], () =>
    listed
      ? { kind: 'bounced', ...LISTED, outcome: 'other', ...reply('on the suppression list of the account') }
      : { kind: 'complained', ...reply(null) },
  );
}

function deferred(common: Common, details: Tree): SesParse {
  return each(common, details, details['delayedRecipients'], ({ fields }) => {
    const said = diagnosis(fields);
    return { kind: 'deferred', ...said, smtp_response: said.smtp_response ?? text(details['delayType']) };
  });
}

/** The whole message was turned down after it had been taken, so for everybody it was to go to. */
function refused(common: Common, reason: string | null): SesParse {
  return each(common, {}, common.mail['destination'], () => ({ kind: 'rejected', ...reply(reason) }));
}

type Said = Pick<DeliveryEvent, 'smtp_code' | 'enhanced_code' | 'smtp_response'>;

function reply(response: string | null): Said {
  const bounded = response === null ? null : cutUnits(withoutType(response), LIMITS.smtp_response_chars_max);
  return { ...codesIn(response ?? ''), smtp_response: bounded };
}

/** Status and diagnostic of one recipient. */
function diagnosis(fields: Tree): Said {
  const said = reply(text(fields['diagnosticCode']));
  const status = codesIn(text(fields['status']) ?? '').enhanced_code;
  return { ...said, enhanced_code: moreExact(status, said.enhanced_code) };
}

type Judged = { kind: DeliveryKind } & Said & Partial<Pick<DeliveryEvent, 'hard' | 'outcome' | 'suppress'>>;

/**
 * One event per recipient that the report names. Where it names none, and the mail went to a single one, that one is
 * meant.
 */
function each(
  { envelope, mail, sender }: Common,
  details: Tree,
  named: unknown,
  judge: (recipient: Recipient) => Judged,
): SesParse {
  const destination = recipientsOf(mail['destination']);
  let recipients = recipientsOf(named);
  if (recipients.length === 0 && destination.length === 1) recipients = destination;
  if (recipients.length === 0) return { kind: 'unparsable' };
  const id = text(mail['messageId']);
  const events = recipients.map((recipient): DeliveryEvent => {
    const judged = judge(recipient);
    const usual = judged.kind === 'bounced' ? null : judgeOther(judged.kind);
    return {
      source: 'ses',
      event_id: `ses:${envelope.notification_id}:${recipient.address}`,
      provider_message_id: id,
      rfc_message_id: id === null ? null : sesWireId(id, envelope.region),
      our_message_id: taggedId(mail),
      sender,
      recipient: recipient.address,
      subject: text(tree(mail['commonHeaders'])['subject']),
      hard: false,
      outcome: null,
      suppress: null,
      ...usual,
      ...judged,
      occurred_at: timeOf(details, mail, envelope),
    };
  });
  return { kind: 'events', events };
}

/** Recipients as bare addresses or with details, each once. */
function recipientsOf(value: unknown): Recipient[] {
  const found = new Map<Address, Recipient>();
  for (const entry of list(value)) {
    const fields = tree(entry);
    const address = addressIn(entry) ?? addressIn(fields['emailAddress']);
    if (address !== null && !found.has(address)) found.set(address, { address, fields });
  }
  return [...found.values()];
}

function taggedId(mail: Tree): MessageId | null {
  const [value] = list(tree(mail['tags'])[SES_MESSAGE_TAG]);
  return parseId('msg', text(value) ?? '') ?? null;
}

/** When the thing happened, else when the mail was sent, else when SNS took the report. */
function timeOf(details: Tree, mail: Tree, { at }: SesEnvelope): number {
  return parseRfc3339(text(details['timestamp']) ?? '') ?? parseRfc3339(text(mail['timestamp']) ?? '') ?? at;
}
