import { utf8Length } from '../hash.ts';

const BYTES_MAX = 998;

/**
 * One Message-ID without its angle brackets: white space, folding and comments removed, the part after the last `@`
 * in lower case. An id without `@` is kept as it is. `undefined` for what cannot be an id.
 */
export function normalizeMessageId(token: string): string | undefined {
  const text = withoutComments(token);
  const open = text.indexOf('<');
  const close = open < 0 ? -1 : text.indexOf('>', open + 1);
  const bare = (close < 0 ? text : text.slice(open + 1, close)).replace(/[\s<>]/g, '');
  if (bare === '' || /[\x00-\x1f\x7f]/.test(bare)) return undefined;
  const at = bare.lastIndexOf('@');
  const id = at < 0 ? bare : bare.slice(0, at + 1) + bare.slice(at + 1).toLowerCase();
  return utf8Length(id) > BYTES_MAX ? undefined : id;
}

/** All ids of an In-Reply-To or References header, in order; ids run together without a blank come apart too. */
export function parseMessageIds(header: string): string[] {
  const text = withoutComments(header);
  const tokens = text.match(/<[^<>]*>/g) ?? text.split(/\s+/).filter((token) => token !== '');
  return tokens.flatMap((token) => normalizeMessageId(token) ?? []);
}

/** A header value with its comments (RFC 5322 section 3.2.2, they nest) replaced by a blank; an unclosed one stays. */
function withoutComments(header: string): string {
  if (!header.includes('(')) return header;
  let out = '';
  let depth = 0;
  let start = 0;
  for (let i = 0; i < header.length; i++) {
    const char = header[i];
    if (char === '(') {
      if (depth === 0) {
        out += `${header.slice(start, i)} `;
        start = i;
      }
      depth++;
    } else if (char === ')' && depth > 0) {
      depth--;
      if (depth === 0) start = i + 1;
    }
  }
  return out + header.slice(start);
}
