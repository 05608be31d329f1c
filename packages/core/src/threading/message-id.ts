const BYTES_MAX = 998;

/**
 * One Message-ID without its angle brackets: white space, folding and comments removed, the part after the last `@`
 * in lower case. An id without `@` is kept as it is. `undefined` for what cannot be an id.
 */
export function normalizeMessageId(token: string): string | undefined {
  const open = token.indexOf('<');
  const close = open < 0 ? -1 : token.indexOf('>', open + 1);
  let id = close < 0 ? token : token.slice(open + 1, close);
  id = id.replace(/\([^()]*\)/g, '').replace(/[\s<>]/g, '');
  if (id === '' || id.length > BYTES_MAX || /[\x00-\x1f\x7f]/.test(id)) return undefined;
  const at = id.lastIndexOf('@');
  return at < 0 ? id : id.slice(0, at + 1) + id.slice(at + 1).toLowerCase();
}

/** All ids of an In-Reply-To or References header, in order; ids run together without a blank come apart too. */
export function parseMessageIds(header: string): string[] {
  const bracketed = header.match(/<[^<>]*>/g);
  const tokens = bracketed ?? header.split(/\s+/).filter((token) => token !== '');
  return tokens.flatMap((token) => normalizeMessageId(token) ?? []);
}
