import { describe, expect, test } from 'vitest';
import { bodyOf, confirmation, notification, SNS_NOW, TOPIC } from './message.fixture.ts';
import { isSnsUrl, readSns, snsFault } from './message.ts';
import { snsStringToSign } from './signature.ts';

const HOUR = 3_600_000;

describe('a body is read', () => {
  test.each([
    ['a notification', notification()],
    ['one with a subject', notification({ Subject: 'Amazon SES Email Event Notification' })],
    ['a confirmation', confirmation()],
    ['the end of a subscription', confirmation({ Type: 'UnsubscribeConfirmation' })],
  ])('%s', (_what, message) => {
    expect(readSns(bodyOf(message), message.Type)).toEqual({ ok: true, message });
    expect(readSns(bodyOf(message), null)).toEqual({ ok: true, message });
  });

  test('with further fields, which mean nothing', () => {
    const body = JSON.stringify({ ...notification(), UnsubscribeURL: 'https://sns.example/', MessageAttributes: {} });
    expect(readSns(body, 'Notification')).toEqual({ ok: true, message: notification() });
  });

  test.each([
    ['raw delivery', '{"eventType":"Bounce","mail":{}}'],
    ['no signature', JSON.stringify({ ...notification(), Signature: undefined })],
    ['no certificate', JSON.stringify({ ...notification(), SigningCertURL: undefined })],
  ])('not with %s (case 36)', (_what, body) => {
    expect(readSns(body, 'Notification')).toEqual({ ok: false, reason: 'raw delivery / no signature' });
  });

  test.each([
    ['text', 'hello'],
    ['a list', '[]'],
    ['nothing', ''],
    ['null', 'null'],
    ['another type', JSON.stringify({ ...notification(), Type: 'Gossip' })],
    ['no type', JSON.stringify({ ...notification(), Type: undefined })],
    ['a field that is no text', JSON.stringify({ ...notification(), Message: {} })],
    ['a missing field', JSON.stringify({ ...notification(), Timestamp: undefined })],
    ['a subject that is no text', JSON.stringify({ ...notification(), Subject: 7 })],
    ['a subject of two lines', JSON.stringify({ ...notification(), Subject: 'a\nTimestamp\nb' })],
    ['an id of two lines', JSON.stringify({ ...notification(), MessageId: 'a\nSubject\nb' })],
    ['a confirmation without its token', JSON.stringify({ ...confirmation(), Token: undefined })],
    ['a token of two lines', JSON.stringify({ ...confirmation(), Token: 'a\nTopicArn\nb' })],
    ['a confirmation without its URL', JSON.stringify({ ...confirmation(), SubscribeURL: undefined })],
  ])('not when it is %s', (_what, body) => {
    expect(readSns(body, null)).toEqual({ ok: false, reason: 'not a message of SNS' });
  });

  test('not when its header says another type', () => {
    const reason = 'another type than its header says';
    expect(readSns(bodyOf(notification()), 'SubscriptionConfirmation')).toEqual({ ok: false, reason });
    expect(readSns(bodyOf(confirmation()), 'Notification')).toEqual({ ok: false, reason });
  });
});

describe('a message is taken', () => {
  test.each([
    ['as it is', {}],
    ['an hour old', { Timestamp: new Date(SNS_NOW - HOUR).toISOString() }],
    ['an hour ahead', { Timestamp: new Date(SNS_NOW + HOUR).toISOString() }],
  ])('%s', (_what, changes) => {
    expect(snsFault(notification(changes), TOPIC, SNS_NOW, HOUR)).toBeNull();
    expect(snsFault(confirmation(changes), TOPIC, SNS_NOW, HOUR)).toBeNull();
  });

  test.each([
    ['signature version is not 2', { SignatureVersion: '1' }],
    ['signature version is not 2', { SignatureVersion: '' }],
    ['another topic', { TopicArn: 'arn:aws:sns:eu-west-1:111122223333:pylota-mail-inbound' }],
    ['another topic', { TopicArn: 'arn:aws:sns:eu-west-1:999900001111:pylota-mail' }],
    ['not within its time', { Timestamp: new Date(SNS_NOW - HOUR - 1).toISOString() }],
    ['not within its time', { Timestamp: new Date(SNS_NOW + HOUR + 1).toISOString() }],
    ['not within its time', { Timestamp: 'yesterday' }],
  ])('not with %s: %j', (fault, changes) => {
    expect(snsFault(notification(changes), TOPIC, SNS_NOW, HOUR)).toBe(fault);
    expect(snsFault(confirmation(changes), TOPIC, SNS_NOW, HOUR)).toBe(fault);
  });

  test.each([
    'http://sns.eu-west-1.amazonaws.com/cert.pem',
    'https://sns.eu-west-1.amazonaws.com.evil.example/cert.pem',
    'https://sns.eu-west-1.amazonaws.com@evil.example/cert.pem',
    'https://user:pass@sns.eu-west-1.amazonaws.com/cert.pem',
    'https://sns.eu-west-1.amazonaws.com:443/cert.pem',
    'https://sns.eu-west-1.amazonaws.com:8443/cert.pem',
    'https://sns.us-east-1.amazonaws.com/cert.pem',
    'https://sns.eu-west-1.amazonaws.com.cn/cert.pem',
    'https://evil.sns.eu-west-1.amazonaws.com/cert.pem',
    'https://snsxeu-west-1.amazonaws.com/cert.pem',
    'https://sns.eu-west-1.amazonaws.com\\@evil.example/cert.pem',
    'https:\\\\sns.eu-west-1.amazonaws.com/cert.pem',
    ' https://sns.eu-west-1.amazonaws.com/cert.pem',
    'https://sns.eu-west-1.amazonaws.com/a b.pem',
    'https://sns.eu-west-1.amazonaws.com/\tcert.pem',
    'https://sns.eu-west-1.amazonaws.com/\\cert.pem',
    'https://sns.eu-west-1.amazonaws.com/#cert.pem',
    'https://sns.eu-west-1.amazonaws.com',
    'https://evil.example/https://sns.eu-west-1.amazonaws.com/cert.pem',
    'sns.eu-west-1.amazonaws.com/cert.pem',
    '',
  ])('not with a certificate or confirmation at %s', (url) => {
    expect(isSnsUrl(url, TOPIC.region)).toBe(false);
    expect(snsFault(notification({ SigningCertURL: url }), TOPIC, SNS_NOW, HOUR)).toBe('certificate from elsewhere');
    expect(snsFault(confirmation({ SubscribeURL: url }), TOPIC, SNS_NOW, HOUR)).toBe('confirmation leads elsewhere');
  });

  test.each([
    'https://sns.eu-west-1.amazonaws.com/?Action=GetEndpointAttributes&x=.pem',
    'https://sns.eu-west-1.amazonaws.com/cert.pem?x=1',
    'https://sns.eu-west-1.amazonaws.com/cert.crt',
    'https://sns.eu-west-1.amazonaws.com/',
  ])('not with a certificate that is no file: %s', (url) => {
    expect(isSnsUrl(url, TOPIC.region)).toBe(true);
    expect(snsFault(notification({ SigningCertURL: url }), TOPIC, SNS_NOW, HOUR)).toBe('certificate from elsewhere');
  });
});

describe('what is signed', () => {
  test('of a notification without a subject', () => {
    expect(snsStringToSign(notification({ Message: 'a\nb' }))).toBe(
      `Message\na\nb\nMessageId\n165545c9-2a5c-472c-8df2-7ff2be2b3b1b\nTimestamp\n2026-11-30T08:41:00.123Z\nTopicArn\n${TOPIC.arn}\nType\nNotification\n`,
    );
  });

  test('of a notification with one', () => {
    expect(snsStringToSign(notification({ Message: 'a', Subject: '' }))).toBe(
      `Message\na\nMessageId\n165545c9-2a5c-472c-8df2-7ff2be2b3b1b\nSubject\n\nTimestamp\n2026-11-30T08:41:00.123Z\nTopicArn\n${TOPIC.arn}\nType\nNotification\n`,
    );
  });

  test.each(['SubscriptionConfirmation', 'UnsubscribeConfirmation'])('of a %s', (Type) => {
    const message = confirmation({ Type, Message: 'm', Token: 't', SubscribeURL: 'u' });
    expect(snsStringToSign(message)).toBe(
      `Message\nm\nMessageId\n165545c9-2a5c-472c-8df2-7ff2be2b3b1b\nSubscribeURL\nu\nTimestamp\n2026-11-30T08:41:00.123Z\nToken\nt\nTopicArn\n${TOPIC.arn}\nType\n${Type}\n`,
    );
  });
});
