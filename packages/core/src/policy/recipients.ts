import { type Address, type Mailbox, parseAddress, withoutDetail } from '../address/address.ts';
import { codePoints, hasControlCharacter, hasLoneSurrogate, withoutMarks } from '../address/names.ts';
import { LIMITS } from '../limits.ts';
import type { RecipientInput } from '../message/request.ts';
import { type FieldError, invalidRequest, ok, type Result, refuse } from '../result.ts';
import { replyTarget } from './reply-target.ts';
import type { PlannedRecipient, RecipientField, SendContext } from './types.ts';

type Entry = { path: string; field: RecipientField; input: RecipientInput };

/**
 * Recipients of a send in the order of to, cc, bcc, case-insensitive duplicates dropped (the first one stays).
 * Where they come from depends on the operation: the body, or the message that is answered.
 */
export function planRecipients(context: SendContext): Result<PlannedRecipient[]> {
  const { operation } = context;
  if (operation === 'send' || operation === 'forward') return fromBody(context);
  return fromTarget(context);
}

function fromBody({ body }: SendContext): Result<PlannedRecipient[]> {
  const entries: Entry[] = [];
  for (const field of ['to', 'cc', 'bcc'] as const) {
    (body[field] ?? []).forEach((input, index) => {
      entries.push({ path: `${field}[${index}]`, field, input });
    });
  }
  const planned: PlannedRecipient[] = [];
  const unsupported: FieldError[] = [];
  const invalid: FieldError[] = [];
  const badNames: FieldError[] = [];
  for (const { path, field, input } of entries) {
    const { address, name = '' } = typeof input === 'string' ? { address: input } : input;
    const addressPath = typeof input === 'string' ? path : `${path}.address`;
    const parsed = parseAddress(address);
    if (!parsed.ok) {
      (parsed.fault === 'invalid' ? invalid : unsupported).push({ path: addressPath, message: parsed.message });
      continue;
    }
    if (hasControlCharacter(name) || hasLoneSurrogate(name)) {
      badNames.push({ path: `${path}.name`, message: 'contains a control character or broken text' });
      continue;
    }
    if (codePoints(name) > LIMITS.name_chars_max) {
      badNames.push({ path: `${path}.name`, message: `is over ${LIMITS.name_chars_max} characters` });
      continue;
    }
    planned.push({ address: parsed.address, name: withoutMarks(name).trim(), field, filtered: null });
  }
  if (invalid.length > 0) return refuse('address_invalid', { errors: [...invalid, ...unsupported] });
  if (unsupported.length > 0) return refuse('address_unsupported', { errors: unsupported });
  if (badNames.length > 0) return invalidRequest(...badNames);
  return atLeastOne(dropDuplicates(planned));
}

function fromTarget(context: SendContext): Result<PlannedRecipient[]> {
  const { operation, target, directory } = context;
  if (target === null) return refuse('message_not_found');
  const own = new Set<Address>(directory.addresses.map(({ address }) => address));
  const to: Mailbox[] = [];
  let cc: Mailbox[] = [];
  if (operation === 'reply' && target.direction === 'outbound') {
    to.push(...target.to);
    cc = target.cc;
  } else {
    const answered = replyTarget(target, context.has_written_to);
    if (answered !== null) to.push(answered);
    if (operation === 'reply_all') {
      to.push(...target.to);
      cc = target.cc;
    }
  }
  const plan = (field: RecipientField) => (mailbox: Mailbox) => ({ ...mailbox, field, filtered: null });
  let planned = [...to.map(plan('to')), ...cc.map(plan('cc'))];
  // Reply-all never writes to this identity itself, under any of its addresses, past or present. An answer to our mail
  // names the address with the thread's token behind a plus.
  if (operation === 'reply_all') planned = planned.filter(({ address }) => !own.has(withoutDetail(address)));
  return atLeastOne(dropDuplicates(planned));
}

function dropDuplicates(planned: PlannedRecipient[]): PlannedRecipient[] {
  const seen = new Set<Address>();
  return planned.filter(({ address }) => {
    if (seen.has(address)) return false;
    seen.add(address);
    return true;
  });
}

function atLeastOne(planned: PlannedRecipient[]): Result<PlannedRecipient[]> {
  return planned.length > 0
    ? ok(planned)
    : invalidRequest({ path: 'to', message: 'names nobody that this message could be sent to' });
}
