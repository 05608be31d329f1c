import { parseMessageIds } from '../threading/message-id.ts';
import { FAILURE_LINE, type HeaderField, plainTextReport } from './dsn-text.ts';

/**
 * Reports about mail that come as mail (RFC 3464), from their parts as somebody else has taken them apart. Much of the
 * world writes them in its own way, so everything may be missing; what is only written for people is evidence and never
 * changes a delivery.
 */

/** The decoded parts of a report. */
export interface DsnParts {
  /** Text of each message/delivery-status part. */
  delivery_status: readonly string[];
  /** Header fields of the message that came back, or of as much of it as did; empty when nothing did. */
  returned: readonly HeaderField[];
  /** Header fields of the report itself. */
  headers: readonly HeaderField[];
  /** What is written for people. */
  text: string | null;
}

/** What a report says about one address, as it says it. */
export interface DsnRecipient {
  final_recipient: string | null;
  original_recipient: string | null;
  action: string | null;
  status: string | null;
  diagnostic_code: string | null;
  /** A line for people about this address, where the fields for machines give no detail. */
  remark: string | null;
}

export interface DsnReport {
  reporting_mta: string | null;
  original_envelope_id: string | null;
  /** Message-ID of what came back, without brackets. */
  original_message_id: string | null;
  /** Ids by which it may mean our message, the likeliest first. */
  message_ids: string[];
  /** Those of the ids that came back together, so that all are names of one message. */
  returned_ids: string[];
  /** From fields for machines; only these can change a delivery. */
  recipients: DsnRecipient[];
  /** From words for people: evidence. */
  mentioned: DsnRecipient[];
}

/** Where gateways that put a Message-ID of their own keep the first one. */
const ORIGINAL_ID_FIELDS = [
  'x-original-message-id',
  'x-microsoft-original-message-id',
  'x-google-original-message-id',
] as const;

/** What a report may name is for its author to say; nobody looks further than this. */
const IDS_MAX = 50;

export function readDsn(parts: DsnParts): DsnReport {
  const blocks = parts.delivery_status.flatMap(blocksOf);
  const recipients = blocks.filter(isRecipient);
  const perMessage = blocks.filter((block) => !isRecipient(block));
  const one = (name: string): string | null => perMessage.map((block) => block.get(name)).find(isText) ?? null;
  const prose = plainTextReport(parts.text);
  const returned = parts.returned.length > 0 ? parts.returned : prose.returned;
  const ids = (fields: readonly HeaderField[], ...names: readonly string[]): string[] =>
    names.flatMap((name) => fields.filter((field) => field.name.toLowerCase() === name).flatMap(idsIn));
  const own = ids(returned, 'message-id');
  const returnedIds = unique([...own, ...ids(returned, ...ORIGINAL_ID_FIELDS)]).slice(0, IDS_MAX);
  const remarks = remarksIn(parts.text);
  return {
    reporting_mta: withoutTypeOf(one('reporting-mta')),
    original_envelope_id: one('original-envelope-id'),
    original_message_id: own[0] ?? null,
    message_ids: unique([
      ...returnedIds,
      ...ids(parts.headers, ...ORIGINAL_ID_FIELDS),
      ...ids(parts.headers, 'in-reply-to'),
      ...ids(parts.headers, 'references').toReversed(),
    ]).slice(0, IDS_MAX),
    returned_ids: returnedIds,
    recipients: recipients.map((block) => described(block, remarks)),
    mentioned: prose.recipients,
  };
}

type Block = Map<string, string>;

/** The groups of fields of one part, which blank lines keep apart. Names in lower case, values unfolded. */
function blocksOf(part: string): Block[] {
  const unfolded = part.replace(/\r\n?/g, '\n').replace(/\n[ \t]+(?=\S)/g, ' ');
  return unfolded.split(/\n[ \t]*\n/).flatMap((text): Block[] => {
    const block: Block = new Map();
    for (const line of text.split('\n')) {
      const [, name, value = ''] = /^([!-9;-~]+)[ \t]*:(.*)$/.exec(line) ?? [];
      if (name !== undefined && !block.has(name.toLowerCase())) block.set(name.toLowerCase(), value.trim());
    }
    return block.size === 0 ? [] : [block];
  });
}

/** Whether a group is about an address; the first one is about the message, where that has not been left out. */
function isRecipient(block: Block): boolean {
  return ['final-recipient', 'original-recipient', 'action'].some((name) => block.has(name));
}

function described(block: Block, remarks: Map<string, string>): DsnRecipient {
  const field = (name: string): string | null => block.get(name) || null;
  const final = field('final-recipient');
  const original = field('original-recipient');
  const diagnostic = field('diagnostic-code');
  return {
    final_recipient: final,
    original_recipient: original,
    action: field('action'),
    status: field('status'),
    diagnostic_code: diagnostic,
    remark: diagnostic === null ? ([final, original].map(remarkOn).find(isText) ?? null) : null,
  };

  function remarkOn(address: string | null): string | undefined {
    return remarks.get((withoutTypeOf(address) ?? '').toLowerCase());
  }
}

/** `gone@example.net: 550 5.1.1 …`: what the lines for people say after an address. */
function remarksIn(text: string | null): Map<string, string> {
  const remarks = new Map<string, string>();
  for (const line of (text ?? '').split('\n')) {
    const [, address = '', said = ''] = FAILURE_LINE.exec(line.trim()) ?? [];
    if (said !== '' && !remarks.has(address.toLowerCase())) remarks.set(address.toLowerCase(), said);
  }
  return remarks;
}

/** `rfc822; jo@example.net` without the type, which some leave out. */
export function withoutTypeOf(value: string | null): string | null {
  return value === null ? null : value.replace(/^[A-Za-z0-9-]+\s*;\s*/, '').trim();
}

function idsIn({ value }: HeaderField): string[] {
  return parseMessageIds(value);
}

function isText(value: string | null | undefined): value is string {
  return value !== null && value !== undefined && value !== '';
}

function unique(values: string[]): string[] {
  return [...new Set(values)];
}
