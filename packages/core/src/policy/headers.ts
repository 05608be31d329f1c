import { hasControlCharacter, hasLoneSurrogate } from '../address/names.ts';
import { utf8Length } from '../hash.ts';
import { LIMITS } from '../limits.ts';
import { type FieldError, invalidRequest, ok, type Result, refuse } from '../result.ts';

/** Headers a caller may set beside X-: canonical spelling, and the values allowed where they are few. */
const NAMED: Record<string, { name: string; values?: readonly string[] }> = {
  importance: { name: 'Importance', values: ['high', 'normal', 'low'] },
  priority: { name: 'Priority', values: ['normal', 'non-urgent', 'urgent'] },
  sensitivity: { name: 'Sensitivity', values: ['personal', 'private', 'company-confidential'] },
  keywords: { name: 'Keywords' },
  comments: { name: 'Comments' },
  organization: { name: 'Organization' },
};

export interface Header {
  name: string;
  value: string;
}

function isAllowedX(name: string): boolean {
  const lower = name.toLowerCase();
  return /^[Xx]-[A-Za-z0-9_-]+$/.test(name) && !lower.startsWith('x-pylota-') && lower !== 'x-ai-generated';
}

/**
 * The caller's headers in the order given, canonical names for the named ones. A name that callers may not set is
 * `header_not_allowed`, one that is too long included; a bad value, or a second spelling of one name, is
 * `invalid_request`.
 */
export function checkCustomHeaders(input: Record<string, string>): Result<Header[]> {
  const headers: Header[] = [];
  const refused: FieldError[] = [];
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  for (const [name, value] of Object.entries(input)) {
    const path = `headers.${name}`;
    const named = Object.hasOwn(NAMED, name.toLowerCase()) ? NAMED[name.toLowerCase()] : undefined;
    if (named === undefined && !isAllowedX(name)) {
      refused.push({ path, message: 'is not a header that callers may set' });
      continue;
    }
    if (name.length > LIMITS.header_name_bytes_max) {
      refused.push({ path, message: `has a name over ${LIMITS.header_name_bytes_max} bytes` });
      continue;
    }
    if (seen.has(name.toLowerCase())) errors.push({ path, message: 'is given twice in different spellings' });
    seen.add(name.toLowerCase());
    const fault = valueFault(value, named?.values);
    if (fault !== null) errors.push({ path, message: fault });
    headers.push({ name: named?.name ?? name, value: named?.values === undefined ? value : value.toLowerCase() });
  }
  if (refused.length > 0) return refuse('header_not_allowed', { errors: refused });
  const total = headers.reduce((sum, header) => sum + utf8Length(header.name) + utf8Length(header.value) + 4, 0);
  if (total > LIMITS.headers_total_bytes_max) {
    errors.push({ path: 'headers', message: `are larger than ${LIMITS.headers_total_bytes_max} bytes together` });
  }
  return errors.length > 0 ? invalidRequest(...errors) : ok(headers);
}

function valueFault(value: string, allowed: readonly string[] | undefined): string | null {
  if (value.trim() === '') return 'is empty';
  if (hasControlCharacter(value) || hasLoneSurrogate(value)) return 'contains a control character or broken text';
  if (utf8Length(value) > LIMITS.header_value_bytes_max) return `is over ${LIMITS.header_value_bytes_max} bytes`;
  if (allowed !== undefined && !allowed.includes(value.toLowerCase())) return `must be one of ${allowed.join(', ')}`;
  return null;
}
