import { codesIn } from './codes.ts';
import type { DsnRecipient } from './dsn.ts';

/**
 * Bounces that are only text: qmail and its relatives write a paragraph per address and paste the message below a line.
 * Nobody promises this form, so what is found here says which message a report is about, and is evidence of the rest.
 */

export interface HeaderField {
  name: string;
  value: string;
}

/** An address at the beginning of a line, and what follows it. */
export const FAILURE_LINE = /^<?([^\s<>:;,@]+@[^\s<>:;,@]+)>?\s*:\s*(.*)$/;

const COPY_BELOW = /^--.*\bcopy of (?:the|your) (?:message|headers)\b|^--+\s*original message\b/i;

export function plainTextReport(text: string | null): { returned: HeaderField[]; recipients: DsnRecipient[] } {
  const lines = (text ?? '').replace(/\r\n?/g, '\n').split('\n');
  const copy = lines.findIndex((line) => COPY_BELOW.test(line));
  if (copy < 0) return { returned: [], recipients: [] };
  return { returned: headersFrom(lines.slice(copy + 1)), recipients: paragraphs(lines.slice(0, copy)) };
}

function paragraphs(lines: string[]): DsnRecipient[] {
  const texts = lines.join('\n').split(/\n\s*\n/);
  return texts.flatMap((text): DsnRecipient[] => {
    const [first = '', ...rest] = text.trim().split('\n');
    const [, address, beside = ''] = FAILURE_LINE.exec(first) ?? [];
    if (address === undefined) return [];
    const said = [beside, ...rest].join(' ').trim();
    return [
      {
        final_recipient: address,
        original_recipient: null,
        action: null,
        status: codesIn(said).enhanced_code,
        diagnostic_code: said,
        remark: null,
      },
    ];
  });
}

/** The header fields at the beginning of a pasted message. */
function headersFrom(lines: string[]): HeaderField[] {
  const start = lines.findIndex((line) => line.trim() !== '');
  if (start < 0) return [];
  const fields: HeaderField[] = [];
  for (const line of lines.slice(start)) {
    const last = fields.at(-1);
    const [, name, value = ''] = /^([!-9;-~]+):(.*)$/.exec(line) ?? [];
    if (/^[ \t]+\S/.test(line) && last !== undefined) last.value += ` ${line.trim()}`;
    else if (name !== undefined) fields.push({ name, value: value.trim() });
    else break;
  }
  return fields;
}
