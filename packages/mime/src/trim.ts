/**
 * Characters taken off the ends of text that strangers write, at one look for each. A pattern such as `/ +$/` begins
 * anew at every character of a run that something else follows: a megabyte of blanks in the middle takes it minutes.
 */

/** Text without those of the given characters that it ends with. */
export function withoutTrailing(text: string, chars: string): string {
  let end = text.length;
  while (end > 0 && chars.includes(text.charAt(end - 1))) end--;
  return text.slice(0, end);
}

/** Text without those of the given characters that it begins or ends with. */
export function withoutAround(text: string, chars: string): string {
  let start = 0;
  while (start < text.length && chars.includes(text.charAt(start))) start++;
  return withoutTrailing(text.slice(start), chars);
}
