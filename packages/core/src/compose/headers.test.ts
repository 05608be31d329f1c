import { describe, expect, it } from 'vitest';
import { composedMessageId, serviceHeaders } from './headers.ts';

type Input = Parameters<typeof serviceHeaders>[0];

function lines(input: Partial<Input> = {}): string[] {
  return serviceHeaders({
    in_reply_to: null,
    references: [],
    auto_submitted: false,
    hop: 1,
    disclosure: { mode: 'none', text: '' },
    unsubscribe: null,
    list_unsubscribe: null,
    headers: [],
    ...input,
  }).map(({ name, value }) => `${name}: ${value}`);
}

describe('headers of the service', () => {
  it('always count the hop, from 1', () => {
    expect(lines()).toEqual(['X-Pylota-Mail-Hop: 1']);
    expect(lines({ hop: 4 })).toEqual(['X-Pylota-Mail-Hop: 4']);
  });

  it('name the message answered and those before it, in brackets', () => {
    expect(lines({ in_reply_to: 'b@example.net', references: ['a@example.net', 'b@example.net'] })).toEqual([
      'In-Reply-To: <b@example.net>',
      'References: <a@example.net> <b@example.net>',
      'X-Pylota-Mail-Hop: 1',
    ]);
  });

  it('can have References alone, as on a forward', () => {
    expect(lines({ references: ['a@example.net'] })[0]).toBe('References: <a@example.net>');
  });

  it('mark automatic replies', () => {
    expect(lines({ auto_submitted: true })).toContain('Auto-Submitted: auto-replied');
    expect(lines().join()).not.toContain('Auto-Submitted');
  });

  it('disclose AI in header mode only', () => {
    expect(lines({ disclosure: { mode: 'header', text: 'x' } })).toContain('X-AI-Generated: true');
    expect(lines({ disclosure: { mode: 'footer', text: 'x' } }).join()).not.toContain('X-AI-Generated');
  });

  it('offer one-click unsubscribe, with mail where given', () => {
    expect(lines({ unsubscribe: { url: 'https://example.com/u', mailto: null } }).slice(-2)).toEqual([
      'List-Unsubscribe: <https://example.com/u>',
      'List-Unsubscribe-Post: List-Unsubscribe=One-Click',
    ]);
    expect(lines({ unsubscribe: { url: 'https://example.com/u', mailto: 'u@example.com' } })).toContain(
      'List-Unsubscribe: <https://example.com/u>, <mailto:u@example.com>',
    );
  });

  it("offer it on the system identity's mail too", () => {
    expect(lines({ list_unsubscribe: { url: 'https://console.example/u' } }).slice(-2)).toEqual([
      'List-Unsubscribe: <https://console.example/u>',
      'List-Unsubscribe-Post: List-Unsubscribe=One-Click',
    ]);
  });

  it('come before those of the caller, which keep their order', () => {
    const headers = [
      { name: 'X-B', value: '1' },
      { name: 'Importance', value: 'high' },
    ];
    expect(lines({ headers, auto_submitted: true })).toEqual([
      'Auto-Submitted: auto-replied',
      'X-Pylota-Mail-Hop: 1',
      'X-B: 1',
      'Importance: high',
    ]);
  });
});

describe('a Message-ID of our own', () => {
  it('is the ulid at the From domain, without brackets', () => {
    expect(composedMessageId('01jd9q3v7m8x2c4n6b5k1r0e9t', 'acme.example.com')).toBe(
      '01jd9q3v7m8x2c4n6b5k1r0e9t@acme.example.com',
    );
  });
});
