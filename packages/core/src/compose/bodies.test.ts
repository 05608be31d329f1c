import { describe, expect, it } from 'vitest';
import { assembleBodies, bodyAsRead, escapeHtml, rfc5322Date, toCrlf } from './bodies.ts';
import type { ForwardedMessage } from './types.ts';

type Input = Parameters<typeof assembleBodies>[0];

const FORWARDED: ForwardedMessage = {
  from: { address: 'accounts@brightwell.example', name: 'Brightwell Leeds' },
  sent_at: Date.UTC(2026, 8, 14, 8, 12),
  subject: 'Invoice 88213 – AB12 CDE',
  to: [
    { address: 'maintenance.acme@agents.example', name: '' },
    { address: 'jo@example.net', name: 'Jo <3' },
  ],
  text: 'The invoice.',
  html: '<p>The <b>invoice</b>.</p>',
};

const NOTE = [
  '---------- Forwarded message ---------',
  'From: Brightwell Leeds <accounts@brightwell.example>',
  'Date: Mon, 14 Sep 2026 08:12:00 +0000',
  'Subject: Invoice 88213 – AB12 CDE',
  'To: maintenance.acme@agents.example, Jo <3 <jo@example.net>',
].join('\n');

const NOTE_HTML = NOTE.split('\n').map(escapeHtml).join('<br>');
const URL_HTML = 'https://example.com/u?a=1&amp;b=2';
const UNSUBSCRIBE = { url: 'https://example.com/u?a=1&b=2', mailto: null };

function bodies(input: Partial<Input> = {}) {
  return assembleBodies({
    text: 'Hello',
    html: null,
    signature: { text: null, html: null },
    disclosure: { mode: 'none', text: 'By a machine & more' },
    unsubscribe: null,
    forwarded: null,
    ...input,
  });
}

describe('bodies', () => {
  it('stay as they are when there is nothing to add', () => {
    expect(bodies()).toEqual({ text: 'Hello', html: null });
    expect(bodies({ html: '<p>Hello</p>' })).toEqual({ text: 'Hello', html: '<p>Hello</p>' });
  });

  it('have the parts in one order: text, forwarded message, signature, disclosure, unsubscribe', () => {
    const all = bodies({
      html: '<p>Hello</p>',
      signature: { text: 'Acme Desk', html: '<b>Acme</b> Desk' },
      disclosure: { mode: 'footer', text: 'By a machine & more' },
      unsubscribe: UNSUBSCRIBE,
      forwarded: FORWARDED,
    });
    expect(all.text).toBe(
      `Hello\n\n${NOTE}\n\nThe invoice.\n\n-- \nAcme Desk\n\nBy a machine & more\n\nUnsubscribe: ${UNSUBSCRIBE.url}`,
    );
    expect(all.html).toBe(
      `<p>Hello</p><br><br>${NOTE_HTML}<br><br><blockquote><p>The <b>invoice</b>.</p></blockquote>` +
        `<br><br>-- <br><b>Acme</b> Desk<p>By a machine &amp; more</p><p><a href="${URL_HTML}">Unsubscribe</a></p>`,
    );
  });
});

describe('a body as it is read', () => {
  it.each([
    [null, null],
    ['', null],
    ['\n\r\n\r', null],
    ['\ufeff\ufeff', null],
    ['a\n', 'a'],
    ['a\r\n\r\n', 'a'],
    ['\n\na \r b\r\n\n', '\n\na \n b'],
    ['\ufeffa\ufeff', 'a\ufeff'],
    ['a \t\u00a0', 'a \t\u00a0'],
    ['a\ud800', 'a\ufffd'],
  ])('%j shows as %j', (text, shown) => {
    expect(bodyAsRead(text)).toBe(shown);
  });

  it('has no byte order mark in front that would make it none', () => {
    const { text } = bodies({ text: '\ufeff', html: '<p>h</p>' });
    expect(text).toBe('');
  });
});

describe('the signature', () => {
  it('goes into each body that there is', () => {
    const signature = { text: 'Acme\nDesk', html: '<i>Acme</i>' };
    expect(bodies({ signature })).toEqual({ text: 'Hello\n\n-- \nAcme\nDesk', html: null });
    expect(bodies({ signature, html: '<p>x</p>' }).html).toBe('<p>x</p><br><br>-- <br><i>Acme</i>');
  });

  it('without HTML is its text, escaped, in the HTML body', () => {
    const signed = bodies({ signature: { text: 'A & B\r\n<Desk>', html: null }, html: '<p>x</p>' });
    expect(signed.html).toBe('<p>x</p><br><br>-- <br>A &amp; B<br>&lt;Desk&gt;');
  });

  it('without text leaves the text body alone', () => {
    expect(bodies({ signature: { text: null, html: '<i>Acme</i>' } }).text).toBe('Hello');
  });
});

describe('the AI disclosure', () => {
  it('is a footer only in footer mode', () => {
    expect(bodies({ disclosure: { mode: 'header', text: 'By a machine' }, html: '<p>x</p>' })).toEqual(
      bodies({ html: '<p>x</p>' }),
    );
    expect(bodies({ disclosure: { mode: 'footer', text: '<By> a machine' }, html: '<p>x</p>' })).toEqual({
      text: 'Hello\n\n<By> a machine',
      html: '<p>x</p><p>&lt;By&gt; a machine</p>',
    });
  });
});

describe('the unsubscribe footer', () => {
  it('is left out of a body that already names the URL', () => {
    const own = bodies({
      text: `Stop: ${UNSUBSCRIBE.url}`,
      html: `<a href="${URL_HTML}">Stop</a>`,
      unsubscribe: UNSUBSCRIBE,
    });
    expect(own).toEqual({ text: `Stop: ${UNSUBSCRIBE.url}`, html: `<a href="${URL_HTML}">Stop</a>` });
    const onlyText = bodies({ text: UNSUBSCRIBE.url, html: '<p>x</p>', unsubscribe: UNSUBSCRIBE });
    expect(onlyText).toEqual({
      text: UNSUBSCRIBE.url,
      html: `<p>x</p><p><a href="${URL_HTML}">Unsubscribe</a></p>`,
    });
  });

  it('cannot break out of its attribute', () => {
    const html = bodies({ html: '', unsubscribe: { url: 'https://example.com/"onclick="x', mailto: null } }).html;
    expect(html).toBe('<p><a href="https://example.com/&quot;onclick=&quot;x">Unsubscribe</a></p>');
  });
});

describe('a forward', () => {
  it('keeps the HTML of the original even when the caller wrote plain text', () => {
    const forward = bodies({ text: 'See\n<below>', forwarded: FORWARDED });
    expect(forward.text).toBe(`See\n<below>\n\n${NOTE}\n\nThe invoice.`);
    expect(forward.html).toBe(
      `<p>See<br>&lt;below&gt;</p><br><br>${NOTE_HTML}<br><br><blockquote><p>The <b>invoice</b>.</p></blockquote>`,
    );
  });

  it('of a plain message in plain words has no HTML', () => {
    const forward = bodies({ forwarded: { ...FORWARDED, html: null } });
    expect(forward).toEqual({ text: `Hello\n\n${NOTE}\n\nThe invoice.`, html: null });
  });

  it('of a plain message in HTML shows its text, escaped', () => {
    const forwarded = { ...FORWARDED, text: 'a < b\nc', html: null };
    expect(bodies({ html: '<p>x</p>', forwarded }).html).toContain('<blockquote><p>a &lt; b<br>c</p></blockquote>');
  });

  it('without words of its own begins with the note', () => {
    for (const text of [null, '']) {
      expect(bodies({ text, forwarded: { ...FORWARDED, html: null } }).text).toBe(`${NOTE}\n\nThe invoice.`);
    }
  });

  it('of a message without sender or text still has its note', () => {
    const bare = bodies({ text: null, forwarded: { ...FORWARDED, from: null, to: [], text: null, html: null } });
    expect(bare.text).toBe(
      NOTE.replace(/From: .*/, 'From: ')
        .replace(/To: .*/, 'To: ')
        .concat('\n\n'),
    );
  });

  it('cannot smuggle markup through names and subject', () => {
    const forwarded = { ...FORWARDED, subject: '<script>x</script>', from: { address: 'x@example.net', name: '<b>' } };
    const html = bodies({ html: '', forwarded }).html;
    expect(html).not.toContain('<script>');
    expect(html).not.toContain('<b>&lt;');
    expect(html).toContain('&lt;script&gt;x&lt;/script&gt;');
  });
});

describe('small parts', () => {
  it('escape the five characters of HTML', () => {
    expect(escapeHtml(`<a href="x">'&'</a>`)).toBe('&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;');
  });

  it('make every line end CRLF, once', () => {
    expect(toCrlf('a\nb\rc\r\nd\n\re\r\r\nf')).toBe('a\r\nb\r\nc\r\nd\r\n\r\ne\r\n\r\nf');
    expect(toCrlf(toCrlf('a\nb\r\r\n'))).toBe(toCrlf('a\nb\r\r\n'));
  });

  it('write dates as mail does, in UTC', () => {
    expect(rfc5322Date(Date.UTC(2026, 10, 1, 0, 5, 9))).toBe('Sun, 01 Nov 2026 00:05:09 +0000');
  });
});
