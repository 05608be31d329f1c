/** What stands at a `<` of HTML, and where it ends. */
export interface Markup {
  /** `nothing`: a comment, a script, a tag that never ends: what is neither text nor structure. */
  kind: 'start' | 'end' | 'nothing' | 'text';
  /** Of the element, in lower case. */
  name: string;
  end: number;
}

/** Elements in which nothing is a tag but their own end, and what that looks like. */
const RAW = new Map(
  ['script', 'style', 'title', 'textarea', 'xmp', 'iframe', 'noembed', 'noframes'].map((name) => [
    name,
    new RegExp(`</${name}(?=[ \\t\\n\\f\\r/>])`, 'gi'),
  ]),
);

/**
 * Reads a piece of markup as the HTML standard cuts it (section 13.2.5), with one look at each character.
 *
 * @param foreign whether it may stand in SVG or MathML, where scripts and styles are elements as any other
 */
export function readMarkup(html: string, at: number, foreign: boolean): Markup {
  const next = html.charAt(at + 1);
  if (isLetter(next)) return startTag(html, at, foreign);
  if (next === '!')
    return nothing(html.startsWith('--', at + 2) ? commentEnd(html, at + 4) : after(html, '>', at), html);
  if (next === '?') return nothing(after(html, '>', at), html);
  if (next !== '/') return { kind: 'text', name: '', end: at + 1 };
  const end = after(html, '>', at);
  const name = nameAt(html, at + 2);
  if (!isLetter(html.charAt(at + 2)) || end < 0 || RAW.has(name) || name === 'plaintext') return nothing(end, html);
  return { kind: 'end', name, end };
}

function startTag(html: string, at: number, foreign: boolean): Markup {
  const name = nameAt(html, at + 1);
  const { end, closed } = tagEnd(html, at + 1);
  const raw = RAW.get(name);
  if (raw !== undefined && !foreign && end >= 0) {
    const tag = behind(raw, html, end);
    return nothing(tag < 0 ? -1 : after(html, '>', tag), html);
  }
  // Text behind `plaintext` shows its tags; they are read as tags here, which loses less than leaving it out. SVG and
  // MathML are not kept either, and there a tag may be its own end tag.
  const goes = raw !== undefined || name === 'plaintext' || (closed && (name === 'svg' || name === 'math'));
  return goes || end < 0 ? nothing(end, html) : { kind: 'start', name, end };
}

function nothing(end: number, html: string): Markup {
  return { kind: 'nothing', name: '', end: end < 0 ? html.length : end };
}

/** The place behind the next such text; -1 when there is none. */
function after(html: string, text: string, from: number): number {
  const at = html.indexOf(text, from);
  return at < 0 ? -1 : at + text.length;
}

function commentEnd(html: string, from: number): number {
  if (html.startsWith('>', from)) return from + 1;
  if (html.startsWith('->', from)) return from + 2;
  return behind(/--!?>/g, html, from);
}

function behind(pattern: RegExp, html: string, from: number): number {
  pattern.lastIndex = from;
  return pattern.test(html) ? pattern.lastIndex : -1;
}

function nameAt(html: string, from: number): string {
  return html.slice(from, runEnd(html, from, isNamePart)).toLowerCase();
}

/** Where a start tag ends whose name begins at `from`; a quoted value may hold a `>`. */
function tagEnd(html: string, from: number): { end: number; closed: boolean } {
  for (let at = runEnd(html, from, isNamePart); ; ) {
    const attribute = runEnd(html, at, isBetweenAttributes);
    if (attribute >= html.length) return { end: -1, closed: false };
    if (html[attribute] === '>') return { end: attribute + 1, closed: html.slice(at, attribute).includes('/') };
    // The first character of a name may be any.
    at = runEnd(html, runEnd(html, attribute + 1, isAttributeName), isBlank);
    if (html[at] !== '=') continue;
    at = runEnd(html, at + 1, isBlank);
    const quote = html.charAt(at);
    at = quote === '"' || quote === "'" ? after(html, quote, at + 1) : runEnd(html, at, isUnquoted);
    if (at < 0) return { end: -1, closed: false };
  }
}

function runEnd(html: string, from: number, belongs: (char: string) => boolean): number {
  let at = from;
  while (at < html.length && belongs(html.charAt(at))) at++;
  return at;
}

function isLetter(char: string): boolean {
  return (char >= 'a' && char <= 'z') || (char >= 'A' && char <= 'Z');
}

function isBlank(char: string): boolean {
  return char === ' ' || char === '\n' || char === '\t' || char === '\r' || char === '\f';
}

function isNamePart(char: string): boolean {
  return char !== '>' && char !== '/' && !isBlank(char);
}

function isAttributeName(char: string): boolean {
  return char !== '=' && isNamePart(char);
}

function isBetweenAttributes(char: string): boolean {
  return char === '/' || isBlank(char);
}

function isUnquoted(char: string): boolean {
  return char !== '>' && !isBlank(char);
}
