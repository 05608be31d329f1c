import { expect, test } from 'vitest';
import { parseListEntry } from './list-entry.ts';

test.each([
  ['jo@example.net', 'jo@example.net'],
  ['Jo.Reed@Example.NET', 'jo.reed@example.net'],
  [' jo@example.net ', 'jo@example.net'],
  ['jo+tag@example.net.', 'jo+tag@example.net'],
  ['"jo"@example.net', 'jo@example.net'],
  ['"@"@example.net', '"@"@example.net'],
  ['jo@Bücher.example', 'jo@xn--bcher-kva.example'],
  // Before the @ an asterisk is a letter like others and stands for nothing.
  ['*@example.net', '*@example.net'],
  ['@Example.NET', '@example.net'],
  ['@bücher.example', '@xn--bcher-kva.example'],
  ['@XN--BCHER-KVA.example.', '@xn--bcher-kva.example'],
])('%j is kept as %s', (text, entry) => {
  expect(parseListEntry(text)).toBe(entry);
  expect(parseListEntry(entry)).toBe(entry);
});

test.each([
  '',
  ' ',
  '@',
  'jo',
  'jo@',
  'example.net',
  '@localhost',
  '@@example.net',
  'jo@@example.net',
  '@*.example.net',
  '@.example.net',
  '@example..net',
  '@192.0.2.1',
  '@[192.0.2.1]',
  '@example.net/x',
  '@example.net,@example.org',
  'Jo <jo@example.net>',
  'josé@example.net',
  `@${'a'.repeat(64)}.example`,
  `${'a'.repeat(65)}@example.net`,
  `@${'a.'.repeat(200)}example`,
  '\0',
])('%j is no entry', (text) => {
  expect(parseListEntry(text)).toBeUndefined();
});
