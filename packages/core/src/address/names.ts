/** Rules for text that ends up in a header next to an address: display names, subjects, file names. */

const CONTROL = /[\x00-\x1f\x7f-\x9f\u2028\u2029]/;

/** Whether text holds a control character (C0, DEL, C1, or a Unicode line separator), which no header value may hold. */
export function hasControlCharacter(text: string): boolean {
  return CONTROL.test(text);
}

/**
 * Text without byte order marks. They show nothing, and a reader loses those at the start of an encoded-word, so what
 * is kept of a message would differ from what is read out of its bytes.
 */
export function withoutMarks(text: string): string {
  return text.replaceAll('\ufeff', '');
}

/** Number of characters as a person counts them for a limit: Unicode code points. */
export function codePoints(text: string): number {
  let count = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0xd800 && unit <= 0xdbff && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) i++;
    count++;
  }
  return count;
}

/** Whether text holds a surrogate without its partner, which has no UTF-8 form and so cannot be sent unchanged. */
export function hasLoneSurrogate(text: string): boolean {
  return !text.isWellFormed();
}
