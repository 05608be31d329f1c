import { BOUNDS } from './bounds.ts';

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * What speaks against parsing a text as JSON at all, or undefined. Seven megabytes of brackets or commas become a tree many
 * times their size, and many requests share the memory of one isolate; so what would become such a tree is found in the
 * text, before anything is built from it. Strings are skipped, whatever stands in them.
 *
 * @param text anything; that it is JSON is for the parser to say
 */
export function jsonShapeFault(text: string): string | undefined {
  let depth = 0;
  let parts = 0;
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case OPEN_OBJECT:
      case OPEN_LIST:
        depth++;
        parts++;
        if (depth > BOUNDS.json_depth_max) return `must not be nested deeper than ${BOUNDS.json_depth_max} levels`;
        break;
      case CLOSE_OBJECT:
      case CLOSE_LIST:
        depth--;
        break;
      case COMMA:
        parts++;
        break;
      case QUOTE: {
        const end = endOfString(text, i);
        // A string that nobody closes holds all the rest.
        if (end === undefined) return undefined;
        i = end - 1;
      }
    }
    if (parts > BOUNDS.json_parts_max) {
      return `must not have more than ${BOUNDS.json_parts_max} objects, lists and members`;
    }
  }
  return undefined;
}

/** @returns where the string that begins at `start` has ended, or undefined when it does not end */
export function endOfString(text: string, start: number): number | undefined {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let escapes = end;
    while (text.charCodeAt(escapes - 1) === BACKSLASH) escapes--;
    if ((end - escapes) % 2 === 0) return end + 1;
  }
  return undefined;
}
