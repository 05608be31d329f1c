import { type Markup, readMarkup } from './markup.ts';

/**
 * HTML that a parser can read in a time that grows with its length. Parsers keep a list of open elements, and what is
 * done with the whole list for each tag makes a few megabytes of opened and never closed tags take hours.
 *
 * The list is bounded by counting tags as the parser does, for which an end tag in a comment or in an attribute closes
 * nothing. So comments, scripts and the like go here already, and what stays can be read in one way only.
 */

/** Characters of HTML that are looked at; a row keeps less. */
export const HTML_CHARS_MAX = 2 * 1024 * 1024;

/** Far deeper than any mail; markup beyond loses its tags and keeps its text. */
const OPEN_MAX = 2_000;

const VOID = new Set(['area', 'base', 'br', 'col', 'embed', 'hr', 'img', 'input', 'link', 'meta', 'source', 'wbr']);

/** Leaves out tags that would be open below more than others, what is nobody's text, and what lies beyond the bound. */
export function shallow(html: string): string {
  const source = html.slice(0, HTML_CHARS_MAX);
  const out: string[] = [];
  const open = new OpenElements();
  let copied = 0;
  for (let at = source.indexOf('<'); at >= 0; at = source.indexOf('<', at)) {
    const markup = readMarkup(source, at, open.inForeign);
    if (markup.kind !== 'text') {
      const text = source.slice(copied, at);
      if (open.take(markup)) out.push(text, `<${source.slice(at + 1, markup.end).replaceAll('<', '&lt;')}`);
      // A `<` that is text must not come to stand before what follows the piece that goes.
      else out.push(text.endsWith('<') ? `${text.slice(0, -1)}&lt;` : text);
      copied = markup.end;
    }
    at = markup.end;
  }
  out.push(source.slice(copied));
  return out.join('');
}

/**
 * How many elements of each name are open at most. An end tag closes what was opened inside its element too; how much
 * of that was still open depends on the parser, so it counts as open.
 */
class OpenElements {
  #count = 0;
  readonly #byName = new Map<string, number>();

  /** Whether the place may be one where scripts and the like are elements as any other. */
  get inForeign(): boolean {
    return this.#of('svg') + this.#of('math') > 0;
  }

  /** @returns whether the tag stays */
  take({ kind, name }: Markup): boolean {
    if (kind === 'nothing') return false;
    if (VOID.has(name)) return true;
    if (kind === 'start' && this.#count >= OPEN_MAX) return false;
    // Of the end tags of what is not open, this one makes an element; looking for the others takes the parser long.
    if (kind === 'end' && this.#of(name) === 0) return name === 'p';
    const change = kind === 'start' ? 1 : -1;
    this.#byName.set(name, this.#of(name) + change);
    this.#count += change;
    return true;
  }

  #of(name: string): number {
    return this.#byName.get(name) ?? 0;
  }
}
