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
])('megabytes of tags that are %s are read', (_what, html) => {
  const safe = sanitizeHtml(html);
  expect(sanitizeHtml(safe)).toBe(safe);
  expect(typeof htmlToText(safe)).toBe('string');
});
