import PostalMime from 'postal-mime';
import { expect, it } from 'vitest';
import { parseBounded } from './bounded-parser.ts';

function mixed(...parts: [type: string, text: string][]): Buffer {
  const body = parts.map(([type, text]) => `--b\nContent-Type: ${type}\n\n${text}\n`).join('');
  return Buffer.from(`From: jo@example.net\nContent-Type: multipart/mixed; boundary=b\n\n${body}--b--\n`);
}

it('texts of one form only stand in both bodies', async () => {
  const raw = mixed(['text/plain', 'a <b> & "c"\nd '], ['text/html', '<p>e</p><p>f &amp; g</p>'], ['text/plain', 'h']);
  const { email } = await parseBounded(raw, {});
  expect(email.text).toBe('a <b> & "c"\nd \n\ne\n\nf & g\nh\n');
  expect(email.html).toBe((await PostalMime.parse(raw)).html);
});

it('of two forms of one text, each stands in its body', async () => {
  const both = mixed(['text/plain', 'a'], ['text/html', '<p>b</p>']).toString().replace('mixed', 'alternative');
  expect((await parseBounded(Buffer.from(both), {})).email).toMatchObject({ text: 'a\n', html: '<p>b</p>\n' });
});
