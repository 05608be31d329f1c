import { isSnsUrl, readSns, snsFault } from '@pmail/core/sns/message.ts';
import { snsStringToSign } from '@pmail/core/sns/signature.ts';
import { type Fuzzer, fuzzer, must } from '@pmail/testkit/fuzz/fuzzer.ts';
import { foreignJson, foreignText } from '@pmail/testkit/fuzz/inputs.ts';
import fc from 'fast-check';

const REGION = 'eu-west-1';
const HOST = `https://sns.${REGION}.amazonaws.com/`;
const URL_BASE = `${HOST}SimpleNotificationService-1.pem`;
const ARN = `arn:aws:sns:${REGION}:123456789012:pmail`;
const AT = '2026-11-30T12:00:00.000Z';
const COMMON = {
  MessageId: '22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324',
  TopicArn: ARN,
  Message: '{"eventType":"Delivery"}',
  Timestamp: AT,
  SignatureVersion: '2',
  Signature: 'QUJD',
  SigningCertURL: URL_BASE,
};
const VALID = [
  { Type: 'Notification', ...COMMON, Subject: 'x', UnsubscribeURL: URL_BASE },
  { Type: 'SubscriptionConfirmation', ...COMMON, Token: 'aa', SubscribeURL: `${HOST}?Action=ConfirmSubscription` },
];
const TEXTS = VALID.map((message) => JSON.stringify(message));
const WORDS = ['Notification', 'SubscriptionConfirmation', URL_BASE, AT, '2', 'a\nb', 'https://sns.example/x.pem'];

/** Of one field that is a text like it, and else as it should be: only such come to the last checks. */
const nearly: fc.Arbitrary<string> = fc
  .tuple(
    fc.constantFrom(...VALID),
    fc.constantFrom(...Object.keys(COMMON), 'Subject', 'SubscribeURL', 'Token'),
    fc.constantFrom(...WORDS, '2026-11-29T12:00:00.000Z', `${URL_BASE}?x`, `${URL_BASE}#x.pem`, `${ARN}2`),
  )
  .map(([message, name, value]) => JSON.stringify({ ...message, [name]: value }));

/** Messages with fields changed, left out, doubled or of another kind, spoiled text, and what is no message at all. */
const bodies: fc.Arbitrary<string> = fc.oneof(
  { arbitrary: foreignJson(VALID, WORDS).map((value) => JSON.stringify(value) ?? ''), weight: 6 },
  { arbitrary: foreignText(TEXTS, [...WORDS, '"', '\\', '{', '}', ':', ',', '\\u000a', '\\r']), weight: 3 },
  { arbitrary: nearly, weight: 4 },
  { arbitrary: fc.json(), weight: 1 },
);

/** Everything that is looked at before a certificate is fetched for a stranger. */
export const notifications: Fuzzer = fuzzer(
  'SNS notifications',
  fc.tuple(
    bodies,
    fc.oneof(
      { arbitrary: fc.constant(null), weight: 3 },
      fc.constantFrom('Notification', 'SubscriptionConfirmation', 'x'),
    ),
  ),
  ([body, header]) => {
    const right = header === null && TEXTS.includes(body);
    const read = readSns(body, header);
    if (!read.ok) {
      must(!right, 'what is right is taken');
      return read.reason;
    }
    const { message } = read;
    const fields: unknown = JSON.parse(body);
    for (const [name, value] of Object.entries(message)) {
      // A field that is null counts as left out.
      must(
        value === undefined || value === null || (fields as Record<string, unknown>)[name] === value,
        'nothing is made up',
      );
    }
    // Behind the published text, which comes first, a line end would let one field pass for another.
    const behind = snsStringToSign({ ...message, Message: '' }).split('\n');
    const named = message.Type === 'Notification' ? (message.Subject === null ? 5 : 6) : 7;
    const oneLine = ![message.Timestamp, message.TopicArn].some((value) => /\n/.test(value));
    must(!oneLine || behind.length === 2 * named + 1, 'each field is one line of what is signed');
    const fault = snsFault(message, { region: REGION, arn: ARN }, Date.parse(AT), 3_600_000);
    must(fault === null || !right, 'what is right is taken');
    must(fault !== null || oneLine, 'what is taken has its time and topic on one line each');
    return fault ?? true;
  },
);

export const certificateUrls: Fuzzer = fuzzer(
  'addresses of certificates',
  foreignText([URL_BASE, `sns.${REGION}.amazonaws.com`], ['@', ':', '/', '.', '#', '?', '\\', '%2e', ' ', '\t']),
  (url) => {
    if (!isSnsUrl(url, REGION)) {
      must(url !== URL_BASE, 'what is right is taken');
      return false;
    }
    must(new URL(url).hostname === `sns.${REGION}.amazonaws.com`, 'a key comes from one host alone');
    must(new URL(url).protocol === 'https:', 'and not in the open');
    return true;
  },
);
