/**
 * HTML that a parser can read in a time that grows with its length. Parsers keep a list of open elements, and what is
 * done with the whole list for each tag makes a few megabytes of opened and never closed tags take hours.
 */

/** Characters of HTML that are looked at; a row keeps less. */
export const HTML_CHARS_MAX = 2 * 1024 * 1024;

/** Far deeper than any mail; markup beyond loses its tags and keeps its text. */
const OPEN_MAX = 2_000;

const VOID = new Set(['area', 'base', 'br', 'col', 'embed', 'hr', 'img', 'input', 'link', 'meta', 'source', 'wbr']);
const TAG = /<(\/?)([a-z][^\s/>]*)[^<>]*>?/gi;

/** Leaves out tags that would be open below more than others, and what lies beyond the bound of length. */
export function shallow(html: string): string {
  let open = 0;
  return html.slice(0, HTML_CHARS_MAX).replace(TAG, (tag, closing: string, name: string) => {
    if (closing === '/') {
      open = Math.max(0, open - 1);
      return tag;
    }
    if (VOID.has(name.toLowerCase())) return tag;
    if (open >= OPEN_MAX) return '';
    open++;
    return tag;
  });
}
