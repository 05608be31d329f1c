// Packages that import this file check it without this package's tsconfig, so the declarations are named here.
// oxlint-disable-next-line typescript/triple-slash-reference
/// <reference path="./vendor.d.ts" />
import { type BlockTextBuilder, compile, type DomNode, type Options, type TableCell, type Walk } from 'html-to-text';
import { shallow } from './shallow.ts';
import { withoutAround, withoutTrailing } from './trim.ts';

/** Quotes and lists nested deeper are plain lines; every level lengthens every line inside. */
const PREFIX_DEPTH_MAX = 16;

const LINE_BLOCKS =
  'caption center dd details div dl dt figcaption figure li summary tbody td tfoot th thead tr address article aside ' +
  'fieldset footer form header main nav section';
const PARAGRAPHS = 'h1 h2 h3 h4 h5 h6 p';
const SKIPPED = 'script style title noscript template iframe object embed applet svg math select textarea button';

const OPTIONS: Options = {
  wordwrap: false,
  // A no-break space is a blank like any other in plain text.
  whitespaceCharacters: ' \t\r\n\f\u00a0',
  limits: { maxDepth: 250, ellipsis: '' },
  formatters: {
    link: formatLink,
    picture: formatPicture,
    list: formatList,
    quote: formatQuote,
    cells: formatTable,
    rule: formatRule,
  },
  selectors: [
    ...LINE_BLOCKS.split(' ').map((selector) => block(selector, 1)),
    ...PARAGRAPHS.split(' ').map((selector) => block(selector, 2)),
    ...SKIPPED.split(' ').map((selector) => ({ selector, format: 'skip' })),
    { selector: 'a', format: 'link' },
    { selector: 'img', format: 'picture' },
    { selector: 'ul', format: 'list' },
    { selector: 'ol', format: 'list' },
    { selector: 'blockquote', format: 'quote' },
    { selector: 'table', format: 'cells' },
    { selector: 'hr', format: 'rule' },
    { selector: 'pre', format: 'pre', options: { leadingLineBreaks: 1, trailingLineBreaks: 1 } },
  ],
};

function block(selector: string, breaks: number): { selector: string; format: string; options: object } {
  return { selector, format: 'block', options: { leadingLineBreaks: breaks, trailingLineBreaks: breaks } };
}

const convert = compile(OPTIONS);

/**
 * Plain text of a mail's HTML, which must have been sanitised before: one line for each block, a blank line around
 * paragraphs and headings, links as `text (url)`, images as `[image: alt]`, list items behind `- ` or their number,
 * quotes behind `> `, the cells of a row joined by ` | `. At most two blank lines in a row, `\n` line ends, nothing
 * around it; `""` when the HTML shows no text.
 */
export function htmlToText(html: string): string {
  return convert(shallow(html))
    .replaceAll('\u00a0', ' ')
    .replace(/\r\n?/g, '\n')
    .split('\n')
    .map((line) => withoutTrailing(line, ' \t'))
    .join('\n')
    .replace(/\n{4,}/g, '\n\n\n')
    .trim();
}

/** Links in which another link stands: reading what each of them shows would read the innermost once for every one. */
const AROUND_LINKS = new WeakSet<DomNode>();

function formatLink(element: DomNode, walk: Walk, builder: BlockTextBuilder): void {
  const outer = linkAround(element);
  if (outer !== undefined) AROUND_LINKS.add(outer);
  walk(element.children, builder);
  const url = element.attribs?.['href'] ?? '';
  if (!/^(?:https?|mailto):/i.test(url)) return;
  const label = AROUND_LINKS.has(element) ? null : labelOf(element).replace(/\s+/gu, ' ').trim();
  if (label === '') builder.addInline(url, { noWordTransform: true });
  else if (label !== url && `mailto:${label}` !== url) builder.addInline(` (${url})`, { noWordTransform: true });
}

function linkAround(element: DomNode): DomNode | undefined {
  for (let node = element.parent; node; node = node.parent) if (node.name === 'a') return node;
  return undefined;
}

/** What a link shows, to tell whether it says more than its target. */
function labelOf(node: DomNode): string {
  let label = '';
  const open = [node];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next.type === 'text') label += next.data ?? '';
    else if (next.name === 'img') label += next.attribs?.['alt'] ?? '';
    for (const child of next.children?.toReversed() ?? []) open.push(child);
  }
  return label;
}

function formatPicture(element: DomNode, _walk: Walk, builder: BlockTextBuilder): void {
  const alt = (element.attribs?.['alt'] ?? '').trim();
  if (alt !== '') builder.addInline(`[image: ${alt}]`, { noWordTransform: true });
}

function formatRule(_element: DomNode, _walk: Walk, builder: BlockTextBuilder): void {
  builder.openBlock({ leadingLineBreaks: 1 });
  builder.closeBlock({ trailingLineBreaks: 1 });
}

function formatQuote(element: DomNode, walk: Walk, builder: BlockTextBuilder): void {
  const prefixed = prefixDepth(element) < PREFIX_DEPTH_MAX;
  builder.openBlock({ leadingLineBreaks: 1 });
  walk(element.children, builder);
  builder.closeBlock({ trailingLineBreaks: 1, blockTransform: (text) => (prefixed ? quoted(text) : text) });
}

function quoted(text: string): string {
  return withoutAround(text, '\n')
    .split('\n')
    .map((line) => (line === '' ? '>' : `> ${line}`))
    .join('\n');
}

function formatList(element: DomNode, walk: Walk, builder: BlockTextBuilder): void {
  const items = (element.children ?? []).filter((child) => child.type === 'tag' || !isBlank(child));
  if (items.length === 0) return;
  if (prefixDepth(element) < PREFIX_DEPTH_MAX) formatItems(element, items, walk, builder);
  // A list indents the lines of all lists in it, by nothing too, which costs as much; blocks leave them as they are.
  else for (const item of items) formatLine(item, walk, builder);
}

function formatLine(item: DomNode, walk: Walk, builder: BlockTextBuilder): void {
  builder.openBlock({ leadingLineBreaks: 1 });
  walk([item], builder);
  builder.closeBlock({ trailingLineBreaks: 1 });
}

function formatItems(list: DomNode, items: readonly DomNode[], walk: Walk, builder: BlockTextBuilder): void {
  const start = Number(list.attribs?.['start'] ?? '1');
  let index = Number.isSafeInteger(start) ? start : 1;
  builder.openList({ interRowLineBreaks: 1, leadingLineBreaks: 1 });
  for (const item of items) {
    const prefix = list.name === 'ol' ? () => `${index++}. ` : () => '- ';
    builder.openListItem({ prefix: item.name === 'li' ? prefix() : '' });
    walk([item], builder);
    builder.closeListItem();
  }
  builder.closeList({ trailingLineBreaks: 1 });
}

function prefixDepth(element: DomNode): number {
  let depth = 0;
  for (let node = element.parent; node; node = node.parent) {
    if (node.name === 'blockquote' || node.name === 'ul' || node.name === 'ol') depth++;
  }
  return depth;
}

function isBlank(node: DomNode): boolean {
  return node.type !== 'tag' && !/\S/.test(node.data ?? '');
}

/** Mail uses tables for layout as well as for data, so what stands beside rows and cells is kept as a row of its own. */
function formatTable(element: DomNode, walk: Walk, builder: BlockTextBuilder): void {
  builder.openTable();
  const cell = (nodes: DomNode[]): void => {
    builder.openTableCell();
    walk(nodes, builder);
    builder.closeTableCell();
  };
  const row = (nodes: DomNode[]): void => {
    builder.openTableRow();
    for (const node of nodes) {
      if (node.name === 'td' || node.name === 'th') cell(node.children ?? []);
      else if (!isBlank(node)) cell([node]);
    }
    builder.closeTableRow();
  };
  const rows = (nodes: DomNode[]): void => {
    for (const node of nodes) {
      if (node.name === 'thead' || node.name === 'tbody' || node.name === 'tfoot') rows(node.children ?? []);
      else if (node.name === 'tr') row(node.children ?? []);
      else if (!isBlank(node)) row([node]);
    }
  };
  rows(element.children ?? []);
  builder.closeTable({ tableToString, leadingLineBreaks: 1, trailingLineBreaks: 1 });
}

function tableToString(rows: TableCell[][]): string {
  let out = '';
  let afterTall = false;
  for (const cells of rows) {
    const texts = cells.map(({ text }) => text.trim());
    const first = texts.findIndex((text) => text !== '');
    if (first < 0) continue;
    const shown = texts.slice(first, texts.findLastIndex((text) => text !== '') + 1);
    // Cells of several lines are columns of a layout; beside each other their lines would mix.
    const tall = shown.some((text) => text.includes('\n'));
    const line = tall ? shown.filter((text) => text !== '').join('\n') : shown.join(' | ');
    out += out === '' ? line : `${tall || afterTall ? '\n\n' : '\n'}${line}`;
    afterTall = tall;
  }
  return out;
}
