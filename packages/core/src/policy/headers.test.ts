import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkCustomHeaders } from './headers.ts';

function errorsOf(input: Record<string, string>): { code: string; paths: string[] } | null {
  const result = checkCustomHeaders(input);
  if (result.ok) return null;
  const errors = (result.details?.['errors'] ?? []) as { path: string }[];
  return { code: result.code, paths: errors.map(({ path }) => path) };
}

describe('names of custom headers', () => {
  it.each(['X-Ticket', 'x-ticket', 'X-a_b-1', 'X--'])('X- names pass as given: %s', (name) => {
    expect(checkCustomHeaders({ [name]: 'v' })).toEqual({ ok: true, value: [{ name, value: 'v' }] });
  });

  it.each([
    ['importance', 'high', 'Importance'],
    ['PRIORITY', 'non-urgent', 'Priority'],
    ['sensitivity', 'company-confidential', 'Sensitivity'],
    ['keyWords', 'a, b', 'Keywords'],
    ['comments', 'Looks fine', 'Comments'],
    ['ORGANIZATION', 'Acme', 'Organization'],
  ])('named ones come out in their canonical spelling: %s', (name, value, canonical) => {
    expect(checkCustomHeaders({ [name]: value })).toEqual({ ok: true, value: [{ name: canonical, value }] });
  });

  it.each([
    'From',
    'to',
    'Cc',
    'BCC',
    'Subject',
    'Reply-To',
    'Sender',
    'Date',
    'Message-ID',
    'In-Reply-To',
    'References',
    'Auto-Submitted',
    'MIME-Version',
    'Content-Type',
    'DKIM-Signature',
    'Return-Path',
    'Received',
    'List-Unsubscribe',
    'List-Unsubscribe-Post',
    'X-Pylota-Mail-Hop',
    'x-pylota-anything',
    'X-AI-Generated',
    'x-ai-generated',
    'X-',
    'X-Ticket:',
    'X-Tick et',
    'X-Tückt',
    'X-Ticket\r\nBcc',
    ' X-Ticket',
    'Importance ',
    '',
    'constructor',
    'toString',
  ])('any other name is not allowed: %j', (name) => {
    expect(errorsOf({ [name]: 'v' })).toEqual({ code: 'header_not_allowed', paths: [`headers.${name}`] });
  });

  it('a name that a plain object hides is not allowed either', () => {
    expect(errorsOf(JSON.parse('{"__proto__":"v"}') as Record<string, string>)).toEqual({
      code: 'header_not_allowed',
      paths: ['headers.__proto__'],
    });
  });

  it('a name has at most 100 bytes; a longer one is not allowed', () => {
    const longest = `X-${'a'.repeat(98)}`;
    expect(errorsOf({ [longest]: 'v' })).toBeNull();
    expect(errorsOf({ [`${longest}a`]: 'v' })).toEqual({
      code: 'header_not_allowed',
      paths: [`headers.${longest}a`],
    });
  });

  it('two spellings of one name are a bad request, at the path of the second', () => {
    expect(errorsOf({ 'X-Ticket': '1', 'x-ticket': '2' })).toEqual({
      code: 'invalid_request',
      paths: ['headers.x-ticket'],
    });
    expect(errorsOf({ Importance: 'high', IMPORTANCE: 'low' })).toEqual({
      code: 'invalid_request',
      paths: ['headers.IMPORTANCE'],
    });
  });

  it('a name that is not allowed is told before any bad value', () => {
    expect(errorsOf({ 'X-Empty': '', From: 'x', Sender: 'y' })).toEqual({
      code: 'header_not_allowed',
      paths: ['headers.From', 'headers.Sender'],
    });
  });
});

describe('values of custom headers', () => {
  it.each([
    ['empty', ''],
    ['blank', '  '],
    ['with CR', 'a\rb'],
    ['with LF', 'a\nb'],
    ['with CRLF and a header', 'a\r\nBcc: x@example.net'],
    ['with NUL', 'a\u0000'],
    ['with a tab', 'a\tb'],
    ['with DEL', 'a\u007f'],
    ['with C1', 'a\u0085b'],
    ['with a line separator', 'a\u2028b'],
    ['with half a character', 'a\ud83d'],
  ])('are a bad request when %s', (_what, value) => {
    expect(errorsOf({ 'X-Ticket': value })).toEqual({ code: 'invalid_request', paths: ['headers.X-Ticket'] });
  });

  it('have at most 2,048 bytes of UTF-8', () => {
    expect(errorsOf({ 'X-A': 'v'.repeat(2_048), 'X-B': 'é'.repeat(1_024) })).toBeNull();
    expect(errorsOf({ 'X-A': 'v'.repeat(2_049) })).toEqual({ code: 'invalid_request', paths: ['headers.X-A'] });
    expect(errorsOf({ 'X-B': 'é'.repeat(1_025) })).toEqual({ code: 'invalid_request', paths: ['headers.X-B'] });
  });

  it.each([
    ['Importance', ['high', 'normal', 'low']],
    ['Priority', ['normal', 'non-urgent', 'urgent']],
    ['Sensitivity', ['personal', 'private', 'company-confidential']],
  ])('%s takes only the values of its standard, in any case', (name, values) => {
    for (const value of values) {
      expect(checkCustomHeaders({ [name]: value.toUpperCase() })).toEqual({ ok: true, value: [{ name, value }] });
    }
    expect(errorsOf({ [name]: 'other' })).toEqual({ code: 'invalid_request', paths: [`headers.${name}`] });
  });

  it('are all told at once', () => {
    expect(errorsOf({ 'X-A': '', 'X-B': 'fine', Priority: 'asap' })).toEqual({
      code: 'invalid_request',
      paths: ['headers.X-A', 'headers.Priority'],
    });
  });
});

describe('all custom headers together', () => {
  /** Eight lines of 2,048 bytes each make 16 KiB, with `: ` and the line end counted. */
  const lines = (last: number): Record<string, string> =>
    Object.fromEntries(
      Array.from({ length: 8 }, (_, i) => [`X-${i}`, 'v'.repeat((i === 7 ? last : 2_048) - 'X-0'.length - 4)]),
    );

  it('have at most 16 KiB', () => {
    expect(errorsOf(lines(2_048))).toBeNull();
    expect(errorsOf(lines(2_049))).toEqual({ code: 'invalid_request', paths: ['headers'] });
  });

  it('cannot be more than 20 that are not X-, with all of the service among them', () => {
    const named = { Importance: 'low', Priority: 'urgent', Sensitivity: 'private', Keywords: 'k', Comments: 'c' };
    const result = checkCustomHeaders({ ...named, Organization: 'o' });
    const service = ['In-Reply-To', 'References', 'Auto-Submitted', 'List-Unsubscribe', 'List-Unsubscribe-Post'];
    expect(result.ok && result.value.length + service.length).toBeLessThanOrEqual(20);
  });

  it('keep their order', () => {
    const result = checkCustomHeaders({ 'X-B': '1', Comments: '2', 'X-A': '3' });
    expect(result.ok && result.value.map(({ name }) => name)).toEqual(['X-B', 'Comments', 'X-A']);
  });
});

describe('whatever is given', () => {
  it('only names and values without line ends come out', () => {
    const anyName = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('X-A', 'x-b', 'Keywords', 'X-A\n'));
    fc.assert(
      fc.property(fc.dictionary(anyName, fc.string({ unit: 'binary' })), (input) => {
        const result = checkCustomHeaders(input);
        if (!result.ok) return;
        for (const { name, value } of result.value) {
          expect(name).toMatch(/^[A-Za-z0-9_-]{1,100}$/);
          expect(value).not.toMatch(/[\r\n\0]/);
        }
      }),
    );
  });
});
