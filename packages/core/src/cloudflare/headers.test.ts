import { describe, expect, test } from 'vitest';
import { customFields, type HeaderField, headersFault, writtenOrRead } from './headers.ts';

const code = (...headers: HeaderField[]): string | null => headersFault(headers)?.code ?? null;
const h = (name: string, value = 'v'): HeaderField => ({ name, value });

describe('a header', () => {
  test.each([
    ['In-Reply-To', '<a@b.example>'],
    ['References', '<a@b.example> <c@d.example>'],
    ['X-Pylota-Mail-Hop', '1'],
    ['X-AI-Generated', 'true'],
    ['x-campaign_id', 'grüße'],
    ['Auto-Submitted', 'auto-replied'],
    ['List-Unsubscribe', '<https://acme.example.com/u?x=1>, <mailto:u@acme.example.com>'],
    ['Importance', 'high'],
    ['Priority', 'non-urgent'],
    ['Sensitivity', 'company-confidential'],
    ['Keywords', 'a, b'],
    ['Comments', 'c'],
    ['Organization', 'Acme'],
    ['X-Long', 'v'.repeat(2_048)],
    [`X-${'n'.repeat(98)}`, 'v'],
  ])('%s is taken', (name, value) => {
    expect(code(h(name, value))).toBeNull();
  });

  test.each([
    ['From', 'v', 'E_HEADER_USE_API_FIELD'],
    ['reply-to', 'v', 'E_HEADER_USE_API_FIELD'],
    ['Bcc', 'v', 'E_HEADER_USE_API_FIELD'],
    ['Date', 'v', 'E_HEADER_NOT_ALLOWED'],
    ['Message-ID', '<a@b.example>', 'E_HEADER_NOT_ALLOWED'],
    ['Return-Path', 'v', 'E_HEADER_NOT_ALLOWED'],
    ['Feedback-ID', 'v', 'E_HEADER_NOT_ALLOWED'],
    ['Sender', 'v', 'E_HEADER_NOT_ALLOWED'],
    ['Bad Header', 'v', 'E_HEADER_NAME_INVALID'],
    ['X-Bad:', 'v', 'E_HEADER_NAME_INVALID'],
    ['X-Ünder', 'v', 'E_HEADER_NAME_INVALID'],
    ['X-', 'v', 'E_HEADER_NAME_INVALID'],
    ['', 'v', 'E_HEADER_NAME_INVALID'],
    [`X-${'n'.repeat(99)}`, 'v', 'E_HEADER_NAME_INVALID'],
    ['X-Empty', '', 'E_HEADER_VALUE_INVALID'],
    ['X-Blank', '  ', 'E_HEADER_VALUE_INVALID'],
    ['X-Lines', 'a\r\nBcc: eve@evil.example', 'E_HEADER_VALUE_INVALID'],
    ['X-Line', 'a\nb', 'E_HEADER_VALUE_INVALID'],
    ['X-Return', 'a\rb', 'E_HEADER_VALUE_INVALID'],
    ['X-Long', 'v'.repeat(2_049), 'E_HEADER_VALUE_TOO_LONG'],
    ['X-Wide', 'ü'.repeat(1_025), 'E_HEADER_VALUE_TOO_LONG'],
    ['Importance', 'urgent', 'E_HEADER_VALUE_INVALID'],
    ['Auto-Submitted', 'no', 'E_HEADER_VALUE_INVALID'],
    ['List-Unsubscribe', '<http://acme.example.com/u>', 'E_HEADER_VALUE_INVALID'],
    ['List-Unsubscribe', 'https://acme.example.com/u', 'E_HEADER_VALUE_INVALID'],
    ['List-Unsubscribe-Post', 'list-unsubscribe=one-click', 'E_HEADER_VALUE_INVALID'],
    ['List-Unsubscribe-Post', 'List-Unsubscribe=One-Click', 'E_HEADER_VALUE_INVALID'],
  ])('%s: %.40s is %s', (name, value, expected) => {
    expect(code(h(name, value))).toBe(expected);
  });

  test('stands once, in whatever letters', () => {
    expect(code(h('X-A'), h('x-a'))).toBe('E_VALIDATION_ERROR');
  });

  test('of one-click unsubscription goes with an HTTPS address', () => {
    const post = h('List-Unsubscribe-Post', 'List-Unsubscribe=One-Click');
    expect(code(post, h('List-Unsubscribe', '<https://acme.example.com/u>'))).toBeNull();
    expect(code(post, h('List-Unsubscribe', '<mailto:u@acme.example.com>'))).toBe('E_HEADER_VALUE_INVALID');
  });
});

test('all headers together have a bound, and those without X- a number', () => {
  const many = (n: number): HeaderField[] =>
    Array.from({ length: n }, (_, index) => h(`X-${index}`, 'v'.repeat(2_000)));
  expect(code(...many(8))).toBeNull();
  expect(code(...many(9))).toBe('E_HEADERS_TOO_LARGE');
  const named = [
    'In-Reply-To References List-Id List-Archive List-Help List-Owner List-Post List-Subscribe Content-Language Keywords',
    'Comments Organization Require-Recipient-Valid-Since Expires Reply-By Archived-At',
  ].join(' ');
  const all = named.split(' ').map((name) => h(name));
  const valued = [
    h('Importance', 'low'),
    h('Priority', 'urgent'),
    h('Sensitivity', 'private'),
    h('Precedence', 'list'),
  ];
  expect(all.length + valued.length).toBe(20);
  expect(code(...all, ...valued)).toBeNull();
  expect(code(...all, ...valued, h('Auto-Submitted', 'auto-replied'))).toBe('E_HEADERS_TOO_MANY');
});

test('what has a field of its own, or is made by the provider, is no custom header', () => {
  const composed = 'From Reply-To To Cc Subject Date Message-ID In-Reply-To X-A MIME-Version Content-Type';
  expect(customFields(composed.split(' ').map((name) => h(name))).map(({ name }) => name)).toEqual([
    'In-Reply-To',
    'X-A',
  ]);
});

test('a value goes as it is written, or as it is read where it would be too long', () => {
  const written = [h('X-A', '=?UTF-8?Q?gr=C3=BC=C3=9Fe?=')];
  const read = [h('X-A', 'grüße')];
  expect(writtenOrRead(written, read)).toEqual(written);
  const long = [h('X-A', '=?UTF-8?Q?=C3=BC?= '.repeat(200))];
  expect(writtenOrRead(long, read)).toEqual(read);
  expect(writtenOrRead(long, [])).toEqual(long);
});
