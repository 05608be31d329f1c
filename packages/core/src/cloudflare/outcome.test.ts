import { describe, expect, test } from 'vitest';
import { cloudflareFailure } from './outcome.ts';

/** As the binding throws it. */
function thrown(code: unknown, message = 'why'): Error {
  return Object.assign(new Error(message), { code });
}

describe('an error of the provider', () => {
  test.each([
    'E_VALIDATION_ERROR',
    'E_FIELD_MISSING',
    'E_TOO_MANY_RECIPIENTS',
    'E_TOO_MANY_ATTACHMENTS',
    'E_CONTENT_TOO_LARGE',
    'E_HEADER_NOT_ALLOWED',
    'E_HEADER_USE_API_FIELD',
    'E_HEADER_VALUE_INVALID',
    'E_HEADER_VALUE_TOO_LONG',
    'E_HEADER_NAME_INVALID',
    'E_HEADERS_TOO_LARGE',
    'E_HEADERS_TOO_MANY',
    'E_DELIVERY_FAILED',
    'E_RECIPIENT_NOT_ALLOWED',
  ])('%s refuses for good', (code) => {
    expect(cloudflareFailure(thrown(code))).toEqual({
      kind: 'rejected',
      reason: 'provider_validation',
      code,
      detail: 'why',
      refused: [],
    });
  });

  test.each(['E_SENDER_DOMAIN_NOT_AVAILABLE', 'E_SENDER_NOT_VERIFIED'])('%s refuses the domain', (code) => {
    expect(cloudflareFailure(thrown(code))).toMatchObject({
      kind: 'rejected',
      reason: 'sender_domain_unavailable',
      code,
    });
  });

  test.each([
    ['E_RATE_LIMIT_EXCEEDED', 'rate_limit'],
    ['E_DAILY_LIMIT_EXCEEDED', 'quota'],
  ])('%s puts off as %s', (code, retryClass) => {
    expect(cloudflareFailure(thrown(code))).toEqual({
      kind: 'retry_later',
      class: retryClass,
      code,
      detail: 'why',
      refused: [],
    });
  });

  test('about a suppressed recipient refuses because of that', () => {
    const code = 'E_RECIPIENT_SUPPRESSED';
    expect(cloudflareFailure(thrown(code))).toEqual({ kind: 'suppressed', code, detail: 'why' });
  });

  test.each([
    ['its own fault', thrown('E_INTERNAL_SERVER_ERROR')],
    ['a code that nobody knows', thrown('E_SOMETHING_NEW')],
    ['a code in other letters', thrown('e_validation_error')],
    ['a code inside a text', new Error('E_VALIDATION_ERROR: no')],
    ['a code that is no text', thrown(400)],
    ['a code of an object', thrown('toString')],
    ['no code', new Error('socket closed')],
    ['an error of the runtime', new TypeError('Network connection lost.')],
    ['a text', 'E_VALIDATION_ERROR'],
    ['nothing', undefined],
    ['null', null],
  ])('that is %s leaves it open whether the message was taken', (_what, error) => {
    expect(cloudflareFailure(error)).toMatchObject({ kind: 'unknown', reason: 'transport_connection_lost' });
  });
});
