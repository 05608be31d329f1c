import { describe, expect, test } from 'vitest';
import { isAwsRegion, sesWireId } from './names.ts';
import { sesOutcome } from './outcome.ts';

const REGION = 'eu-west-1';
const ID = '0102019ab3c4d5e6-11223344-5566-7788-99aa-bbccddeeff00-000000';

function failure(status: number, type: string | null, body: unknown = { message: 'why' }) {
  return sesOutcome({ status, error_type: type, body: JSON.stringify(body) }, REGION);
}

describe('the Message-ID that recipients see (R1)', () => {
  test.each([
    ['us-east-1', `${ID}@email.amazonses.com`],
    ['eu-west-1', `${ID}@eu-west-1.amazonses.com`],
    ['ap-southeast-2', `${ID}@ap-southeast-2.amazonses.com`],
  ])('in %s', (region, wire) => {
    expect(sesWireId(ID, region)).toBe(wire);
    expect(sesOutcome({ status: 200, error_type: null, body: JSON.stringify({ MessageId: ID }) }, region)).toEqual({
      kind: 'accepted',
      provider_message_id: ID,
      rfc_message_id: wire,
      refused: [],
      deferred: [],
      scheduled: [],
      copies: [],
    });
  });
});

describe('a refusal for good', () => {
  test.each([
    [400, 'MessageRejected', 'provider_validation'],
    [400, 'BadRequestException', 'provider_validation'],
    [400, 'MailFromDomainNotVerifiedException', 'sender_domain_unavailable'],
    [404, 'NotFoundException', 'sender_domain_unavailable'],
    // Any other with a type.
    [403, 'AccessDeniedException', 'provider_validation'],
    [413, 'SomethingNew', 'provider_validation'],
    [400, 'toString', 'provider_validation'],
  ])('%i %s is %s', (status, type, reason) => {
    expect(failure(status, type)).toEqual({ kind: 'rejected', reason, code: type, detail: 'why', refused: [] });
  });

  test('K3 of a request that was signed by a clock that is off says so, and nothing was sent', () => {
    expect(failure(403, 'InvalidSignatureException', { message: 'Signature expired: 20261130T090000Z' })).toEqual({
      kind: 'rejected',
      reason: 'provider_validation',
      code: 'InvalidSignatureException',
      detail: 'Signature expired: 20261130T090000Z',
      refused: [],
    });
  });

  test('says no more than can be kept', () => {
    const result = failure(400, 'MessageRejected', { message: 'x'.repeat(5_000) });
    expect(result).toMatchObject({ kind: 'rejected', detail: 'x'.repeat(512) });
  });
});

describe('a refusal for now', () => {
  test.each([
    [429, 'TooManyRequestsException', 'rate_limit'],
    [400, 'LimitExceededException', 'quota'],
    [400, 'AccountSuspendedException', 'paused'],
    [400, 'SendingPausedException', 'paused'],
  ])('%i %s waits as %s', (status, type, retryClass) => {
    expect(failure(status, type)).toEqual({
      kind: 'retry_later',
      class: retryClass,
      code: type,
      detail: 'why',
      refused: [],
    });
  });
});

describe('the type of an error', () => {
  test.each([
    ['MessageRejected:http://internal.amazon.com/coral/com.amazonaws.sesv2/', null],
    ['com.amazonaws.sesv2#MessageRejected', null],
    [null, { __type: 'MessageRejected', message: 'why' }],
    [null, { __type: 'com.amazonaws.sesv2#MessageRejected', Message: 'why' }],
    [null, { code: 'MessageRejected', message: 'why' }],
    ['MessageRejected', { __type: 'TooManyRequestsException', message: 'why' }],
  ])('is found in header %j or body %j', (header, body) => {
    expect(failure(400, header, body ?? { message: 'why' })).toMatchObject({
      kind: 'rejected',
      code: 'MessageRejected',
    });
  });
});

describe('an answer that says neither yes nor no is unknown', () => {
  test.each([
    ['200 without an id', 200, null, '{}'],
    ['200 with an empty id', 200, null, '{"MessageId":""}'],
    ['200 that is cut off', 200, null, '{"MessageId":"0102'],
    ['200 that is a page', 200, null, '<html>hello</html>'],
    ['201', 201, null, `{"MessageId":"${ID}"}`],
    ['a redirect', 307, 'MessageRejected', ''],
    ['400 without a type', 400, null, '{"message":"no"}'],
    ['403 of something in between', 403, null, '<html>blocked</html>'],
    ['400 with a type that is none', 400, 'not a type!', '[]'],
    ['429 without a type', 429, null, ''],
    ['500', 500, 'InternalServiceErrorException', '{}'],
    ['503 that names a refusal', 503, 'MessageRejected', '{"message":"no"}'],
  ])('%s', (_what, status, error_type, body) => {
    expect(sesOutcome({ status, error_type, body }, REGION)).toMatchObject({
      kind: 'unknown',
      reason: 'transport_connection_lost',
    });
  });
});

test('only regions become part of a host name', () => {
  for (const region of ['us-east-1', 'eu-west-1', 'us-gov-west-1', 'ap-southeast-12']) {
    expect(isAwsRegion(region)).toBe(true);
  }
  for (const text of [
    '',
    'eu',
    'eu-west',
    'eu-west-1.evil.example',
    'eu-west-1/',
    'EU-WEST-1',
    'a@b-1',
    'eu-west-1\n',
  ]) {
    expect(isAwsRegion(text), text).toBe(false);
  }
});
