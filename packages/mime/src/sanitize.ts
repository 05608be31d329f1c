// Packages that import this file check it without this package's tsconfig, so the declarations are named here.
// oxlint-disable-next-line typescript/triple-slash-reference
/// <reference path="./vendor.d.ts" />
import sanitize, { type Options } from 'sanitize-html';
import { shallow } from './shallow.ts';
import { withoutAround } from './trim.ts';

const TAGS =
  'a abbr b bdi bdo blockquote br caption center cite code col colgroup dd del details dfn div dl dt em figcaption ' +
  'figure font h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q s samp small span strike strong sub summary sup ' +
  'table tbody td tfoot th thead time tr tt u ul var wbr';

/** Elements that go with everything inside; the last four hold text that is no part of the mail either. */
const REMOVED =
  'script style title noscript template iframe frame frameset object embed applet svg math select textarea button ' +
  'option xmp noembed noframes';

/** Elements that are not kept but start a line of their own; as a `div` their text does not run into what follows. */
const BLOCKS = 'address article aside dir fieldset footer form header hgroup legend main menu nav section';

const OPTIONS: Options = {
  allowedTags: TAGS.split(' '),
  nonTextTags: REMOVED.split(' '),
  disallowedTagsMode: 'discard',
  selfClosing: ['br', 'col', 'hr', 'img', 'wbr'],
  allowedAttributes: {
    '*': ['lang', 'title', 'dir'],
    a: ['href', 'rel'],
    img: ['src', 'alt', 'width', 'height'],
    td: ['colspan', 'rowspan', 'align', 'valign', 'width'],
    th: ['colspan', 'rowspan', 'align', 'valign', 'width'],
    table: ['width', 'border', 'cellpadding', 'cellspacing', 'align'],
    col: ['span', 'width'],
    colgroup: ['span', 'width'],
    ol: ['start', 'type'],
    li: ['value'],
    time: ['datetime'],
  },
  allowedSchemes: ['http', 'https', 'mailto', 'tel'],
  allowedSchemesByTag: { img: ['cid'] },
  allowProtocolRelative: false,
  // Deeper markup loses its tags, not its text; this also bounds the recursion of everything that reads the result.
  nestingLimit: 200,
  parseStyleAttributes: false,
  transformTags: {
    ...Object.fromEntries(BLOCKS.split(' ').map((name) => [name, 'div'])),
    a: (tagName, attribs) => ({ tagName, attribs: linkAttributes(attribs) }),
    img: (tagName, attribs) => ({ tagName, attribs: imageAttributes(attribs) }),
  },
};

const LINK_REL = 'noopener noreferrer nofollow';

/** Without its tags one element can come to stand inside another that it closes; a few rounds settle that. */
const ROUNDS_MAX = 5;

/**
 * HTML of a mail made safe for showing: only the listed elements and attributes, links only to http, https, mailto and
 * tel, images only from the message itself (`cid:`), no style, no script, no comment. The result is a fixed
 * point: a second pass gives it back as it is. Never throws.
 */
export function sanitizeHtml(html: string): string {
  let safe = sanitize(shallow(html), OPTIONS);
  for (let round = 1; round < ROUNDS_MAX; round++) {
    const again = sanitize(safe, OPTIONS);
    if (again === safe) return safe;
    safe = again;
  }
  return safe;
}

/** Far longer than any address that is meant to be opened; one that is longer is none. */
const URL_CHARS_MAX = 8 * 1024;

const AROUND_URLS = String.fromCharCode(...Array.from({ length: 0x21 }, (_, code) => code));

/**
 * The URL as a browser reads it: white space and control characters around and inside do not count, and a `<` is asked
 * for as `%3C`. The library would look for comments in it, and copy the whole address for each that it finds.
 */
function bareUrl(value: string | undefined): string {
  if (value === undefined || value.length > URL_CHARS_MAX) return '';
  return withoutAround(value, AROUND_URLS)
    .replace(/[\t\r\n]+/g, '')
    .replaceAll('<', '%3C');
}

function linkAttributes(attribs: Record<string, string>): Record<string, string> {
  const kept = { ...attribs };
  delete kept['href'];
  delete kept['rel'];
  const url = bareUrl(attribs['href']);
  // Relative targets have nothing to be relative to in a mail.
  if (/^(?:https?:\/\/|mailto:|tel:)/i.test(url)) Object.assign(kept, { href: url, rel: LINK_REL });
  return kept;
}

function imageAttributes({ src, ...others }: Record<string, string>): Record<string, string> {
  const url = bareUrl(src);
  return /^cid:/i.test(url) ? { src: url, ...others } : others;
}
