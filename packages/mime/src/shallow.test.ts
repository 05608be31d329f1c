import { expect, test } from 'vitest';
import { htmlToText } from './html-to-text.ts';
import { sanitizeHtml } from './sanitize.ts';
import { HTML_CHARS_MAX, shallow } from './shallow.ts';

test('ordinary markup stays as it is', () => {
  const html = '<div><p>Hello<br>you <b title="a > b">there</b><img src="cid:x"></p></div>'.repeat(3_000);
  expect(shallow(html)).toBe(html);
});

test('tags opened without end lose the deepest of them, and no text', () => {
  const deep = `${'<b>x'.repeat(5_000)}${'</b>'.repeat(5_000)}<p>after</p>`;
  const out = shallow(deep);
  expect(out.match(/<b>/g)).toHaveLength(2_000);
  expect(out.match(/x/g)).toHaveLength(5_000);
  expect(out).toContain('<p>after</p>');
});

test.each([
  '<b></x>',
  '<b><!--</b>-->',
  '<b><!-- --!></i><!--</b>-->',
  '<b><!x></i><?</b>',
  '<b><img title="</b>">',
  "<b><img title = '></b>'>",
  '<b><script></b></script>',
  '<b><TITLE a=">"></b></title\n>',
  '<b></ b>',
  '<b></\u212a>',
])('what closes nothing for a parser does not count as an end: %s', (unit) => {
  expect(shallow(unit.repeat(5_000)).match(/<b>/g)).toHaveLength(2_000);
});

test('comments, scripts and end tags of nothing go, and leave no tag behind', () => {
  expect(shallow('a<!-- <b> --!>b<!x>c<?y>d<!-->e<!--->f</x>g</>h</ i>j')).toBe('abcdefghj');
  expect(shallow('a<script>if (a<b) </scripts></SCRIPT\n>b<title/><b></title>c<plaintext><b>d')).toBe('abc<b>d');
  expect(shallow('<<!---->script>x<<!-- -->/b> 1 < 2 <')).toBe('&lt;script>x&lt;/b> 1 < 2 <');
  expect(shallow('<b title="<i>" <u>x</b <i>')).toBe('<b title="&lt;i>" &lt;u>x</b &lt;i>');
  expect(shallow('a<p b="c>d')).toBe('a');
  expect(shallow('</p>a</br>b<br></br>')).toBe('</p>a</br>b<br></br>');
  expect(shallow('<svg><title>a</title><style/></svg><svg/><style>b</style>c')).toBe('<svg>a</svg>c');
});

test('what is longer than anybody reads is cut', () => {
  expect(shallow('a'.repeat(HTML_CHARS_MAX + 5))).toHaveLength(HTML_CHARS_MAX);
});

// Without the bound each of these takes minutes and more.
test.each([
  ['opened', '<b>'.repeat(1_500_000)],
  ['opened with attributes', '<font color="#fff">'.repeat(300_000)],
  ['links', '<a href="https://example.com">x'.repeat(200_000)],
  ['half opened', '<b '.repeat(1_500_000)],
  ['closed only', '</b>'.repeat(1_000_000)],
  ['lists', '<ul><li>'.repeat(500_000)],
  ['closed by others only', '<b></x>'.repeat(300_000)],
  ['closed where others were', '<p><div></p></x>'.repeat(130_000)],
])('megabytes of tags that are %s are read', (_what, html) => {
  const safe = sanitizeHtml(html);
  expect(sanitizeHtml(safe)).toBe(safe);
  expect(typeof htmlToText(safe)).toBe('string');
});
