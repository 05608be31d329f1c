import { isSnsUrl, readSns } from '@pmail/core/sns/message.ts';
import { type Fuzzer, fuzzer, must } from '@pmail/testkit/fuzz/fuzzer.ts';
import { foreignText } from '@pmail/testkit/fuzz/inputs.ts';
import fc from 'fast-check';

const REGION = 'eu-west-1';
const URL_BASE = `https://sns.${REGION}.amazonaws.com/SimpleNotificationService-1.pem`;
const NOTIFICATION = {
  Type: 'Notification',
  MessageId: '22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324',
  TopicArn: `arn:aws:sns:${REGION}:123456789012:pmail`,
  Subject: 'x',
  Message: '{"eventType":"Delivery"}',
  Timestamp: '2026-11-30T12:00:00.000Z',
  SignatureVersion: '2',
  Signature: 'QUJD',
  SigningCertURL: URL_BASE,
  UnsubscribeURL: URL_BASE,
};

/** Notifications with fields changed, left out, doubled or of another kind, and text that is none. */
const bodies: fc.Arbitrary<string> = fc.oneof(
  fc.string({ maxLength: 400 }),
  fc.json(),
  fc
    .tuple(
      fc.constantFrom(...Object.keys(NOTIFICATION)),
      fc.oneof(fc.jsonValue(), fc.constantFrom(null, '', 'Notification', 'SubscriptionConfirmation', URL_BASE)),
    )
    .map(([name, value]) => JSON.stringify({ ...NOTIFICATION, [name]: value })),
);

export const notifications: Fuzzer = fuzzer(
  'SNS notifications',
  fc.tuple(bodies, fc.constantFrom(null, 'Notification', 'SubscriptionConfirmation', 'x')),
  ([body, header]) => {
    const read = readSns(body, header);
    if (!read.ok) return false;
    const fields: unknown = JSON.parse(body);
    for (const [name, value] of Object.entries(read.message)) {
      // A field that is null counts as left out.
      must(
        value === undefined || value === null || (fields as Record<string, unknown>)[name] === value,
        'nothing is made up',
      );
    }
    return true;
  },
  [[JSON.stringify(NOTIFICATION), 'Notification']],
);

export const certificateUrls: Fuzzer = fuzzer(
  'addresses of certificates',
  foreignText([URL_BASE, `sns.${REGION}.amazonaws.com`], ['@', ':', '/', '.', '#', '?', '\\', '%2e', ' ', '\t']),
  (url) => {
    if (!isSnsUrl(url, REGION)) return false;
    must(new URL(url).hostname === `sns.${REGION}.amazonaws.com`, 'a key comes from one host alone');
    must(new URL(url).protocol === 'https:', 'and not in the open');
    return true;
  },
);
