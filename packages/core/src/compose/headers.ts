import type { ComposeInput } from './types.ts';

/** Header names of the service; other spellings of these are refused from callers. */
export const HOP_HEADER = 'X-Pylota-Mail-Hop';
export const AI_HEADER = 'X-AI-Generated';

/** Message-ID of our own making, without angle brackets. */
export function composedMessageId(ulid: string, fromDomain: string): string {
  return `${ulid}@${fromDomain}`;
}

/**
 * Headers beside the originator, destination, subject, date and Message-ID fields, in the order they are written: the
 * service's own, then the caller's.
 */
export function serviceHeaders(
  input: Pick<
    ComposeInput,
    | 'in_reply_to'
    | 'references'
    | 'auto_submitted'
    | 'hop'
    | 'disclosure'
    | 'unsubscribe'
    | 'list_unsubscribe'
    | 'headers'
  >,
): { name: string; value: string }[] {
  const headers: { name: string; value: string }[] = [];
  const add = (name: string, value: string): void => {
    headers.push({ name, value });
  };
  if (input.in_reply_to !== null) add('In-Reply-To', `<${input.in_reply_to}>`);
  if (input.references.length > 0) add('References', input.references.map((id) => `<${id}>`).join(' '));
  if (input.auto_submitted) add('Auto-Submitted', 'auto-replied');
  add(HOP_HEADER, String(input.hop));
  if (input.disclosure.mode === 'header') add(AI_HEADER, 'true');
  const oneClick = input.unsubscribe?.url ?? input.list_unsubscribe?.url;
  if (oneClick !== undefined) {
    const mailto = input.unsubscribe?.mailto ?? null;
    add('List-Unsubscribe', mailto === null ? `<${oneClick}>` : `<${oneClick}>, <mailto:${mailto}>`);
    add('List-Unsubscribe-Post', 'List-Unsubscribe=One-Click');
  }
  headers.push(...input.headers);
  return headers;
}
