import { expect, test } from 'vitest';
import { downloadHeaders } from '../src/http/download.ts';

/** What a browser is told of a file: the type of a few harmless ones, and of all others only that they are bytes. */

const typeOf = (contentType: string): string | undefined =>
  downloadHeaders({ filename: 'a', contentType, size: 1 })['content-type'];

test.each(['application/pdf', 'image/png', 'text/plain', 'text/csv'])('%s is said to be that', (type) => {
  expect(typeOf(type)).toBe(type);
  expect(typeOf(type.toUpperCase())).toBe(type);
});

test.each([
  'message/rfc822',
  'Message/RFC822',
  'message/global',
  'text/html',
  'image/svg+xml',
  'application/xhtml+xml',
  '',
])('%j is said to be bytes', (type) => {
  expect(typeOf(type)).toBe('application/octet-stream');
});
