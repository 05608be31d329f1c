import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { htmlToText } from './html-to-text.ts';
import { sanitizeHtml } from './sanitize.ts';

function text(html: string): string {
  return htmlToText(sanitizeHtml(html));
}

describe('htmlToText', () => {
  it('keeps table rows, two links in a line, headings as they are and list items apart', () => {
    const page =
      '<h1>Spring&nbsp;Sale Now</h1><table><tr><td>Car</td><td>Day</td></tr><tr><td>Van</td><td>49.50</td></tr></table>' +
      '<p>Read <a href="http://a.example.net/">one</a> or <a href="http://b.example.net/">two </a> first.</p>' +
      '<p><a href="https://c.example.net/">https://c.example.net/</a></p><ul><li>red</li><li>blue</li></ul>';
    const lines = text(page)
      .split('\n')
      .filter((line) => line !== '');
    expect(lines).toEqual([
      'Spring Sale Now',
      'Car | Day',
      'Van | 49.50',
      'Read one (http://a.example.net/) or two (http://b.example.net/) first.',
      'https://c.example.net/',
      '- red',
      '- blue',
    ]);
    expect(text(page)).not.toMatch(/\n{4}/);
  });

  it.each([
    ['paragraphs', '<p>a</p><p>b</p>', 'a\n\nb'],
    ['blocks', '<div>a</div><div>b</div>c', 'a\nb\nc'],
    ['headings', 'x<h3>Title</h3>y', 'x\n\nTitle\n\ny'],
    ['line breaks', 'a<br>b<br><br>c', 'a\nb\n\nc'],
    ['blanks', '  a \n\t b  ', 'a b'],
    ['no-break spaces', 'a&nbsp;&nbsp;b', 'a b'],
    ['entities', '&lt;b&gt; &amp;amp; &euro;', '<b> &amp; €'],
    ['a rule', 'a<hr>b', 'a\n\nb'],
    ['an ordered list', '<ol start="9"><li>a</li><li>b</li></ol>', '9. a\n10. b'],
    ['a nested list', '<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>', '- a\n  - b\n- c'],
    ['a quote', '<blockquote>a<br>b<blockquote>c</blockquote></blockquote>d', '> a\n> b\n> > c\nd'],
    ['preformatted text', '<pre>a  b\n   c</pre>', 'a  b\n   c'],
    ['an image', 'see <img src="cid:a" alt="Our logo"> and <img alt="">', 'see [image: Our logo] and'],
    ['a link that shows its target', '<a href="https://x.example/">https://x.example/</a>', 'https://x.example/'],
    ['a mail link', '<a href="mailto:jo@example.org">jo@example.org</a>', 'jo@example.org'],
    ['a named mail link', '<a href="mailto:jo@example.org">Jo</a>', 'Jo (mailto:jo@example.org)'],
    ['a telephone link', '<a href="tel:+4930">Call</a>', 'Call'],
    ['a link on an image', '<a href="https://x.example/"><img alt="Go"></a>', '[image: Go] (https://x.example/)'],
    ['a link without text', '<a href="https://x.example/"><img></a>', 'https://x.example/'],
    [
      'a link in a link',
      '<a href="https://x.example/"><b><a href="https://y.example/">y</a></b></a>',
      'y (https://y.example/) (https://x.example/)',
    ],
    [
      'a link in a cell',
      '<table><tr><td>a</td><td><a href="https://x.example/">b</a></td></tr></table>',
      'a | b (https://x.example/)',
    ],
    ['an empty cell between', '<table><tr><td>a</td><td></td><td>c</td></tr></table>', 'a |  | c'],
    ['spacer cells', '<table><tr><td>&nbsp;</td><td>a</td><td></td></tr></table>', 'a'],
    [
      'a layout table',
      '<table><tr><td><p>a</p><p>b</p></td><td>c</td></tr><tr><td>d</td></tr></table>',
      'a\n\nb\nc\n\nd',
    ],
    ['a nested table', '<table><tr><td><table><tr><td>a</td><td>b</td></tr></table></td></tr></table>', 'a | b'],
    ['text in a table outside its cells', '<table>a<tr><td>b</td></tr><caption>c</caption></table>', 'a\nb\nc'],
    ['sections', '<section>a</section><section>b</section>', 'a\nb'],
    ['a script', 'a<script>b</script><style>c</style>', 'a'],
    ['nothing', '<p> &nbsp; </p><img>', ''],
    ['many breaks', `a${'<br>'.repeat(9)}b`, 'a\n\n\nb'],
  ])('%s', (_name, html, expected) => {
    expect(text(html)).toBe(expected);
  });

  it('does not grow without bound on deep quotes and lists', () => {
    const html = `${'<blockquote><ul><li>'.repeat(60)}${'<br>'.repeat(5_000)}x`;
    const out = text(html);
    expect(out).toContain('x');
    expect(out.length).toBeLessThan(5_000 * 60);
  });

  it('gives trimmed text without long gaps for anything', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.constantFrom(
            '<p>',
            '</p>',
            '<br>',
            '<li>',
            '<ul>',
            '<td>',
            '<tr>',
            '<table>',
            '</table>',
            '<pre>',
            ' ',
            'a',
            '&nbsp;',
            '<blockquote>',
            '</blockquote>',
            '<a href="https://x.example">',
            '</a>',
          ),
        ),
        (pieces) => {
          const out = text(pieces.join(''));
          expect(out).toBe(out.trim());
          expect(out).not.toMatch(/\n{4}|\r|\u00a0/);
        },
      ),
      { numRuns: 500 },
    );
  });
});
