import type { SnsMessage, SnsTopic } from './message.ts';

/** Messages as SNS writes them, before they are signed. */

export const TOPIC: SnsTopic = { region: 'eu-west-1', arn: 'arn:aws:sns:eu-west-1:111122223333:pylota-mail' };
export const SNS_NOW = Date.UTC(2026, 10, 30, 8, 41, 5);

const COMMON = {
  MessageId: '165545c9-2a5c-472c-8df2-7ff2be2b3b1b',
  TopicArn: TOPIC.arn,
  Timestamp: '2026-11-30T08:41:00.123Z',
  SignatureVersion: '2',
  Signature: 'AAAA',
  SigningCertURL: 'https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-9c6465fa7f48f5cacd23014631ec1136.pem',
};

export function notification(changes: object = {}): SnsMessage {
  return {
    ...COMMON,
    Type: 'Notification',
    Subject: null,
    Message: '{"eventType":"Delivery","mail":{}}',
    ...changes,
  };
}

export function confirmation(changes: object = {}): SnsMessage {
  return {
    ...COMMON,
    Type: 'SubscriptionConfirmation',
    Message: 'You have chosen to subscribe to the topic.\nTo confirm, visit the SubscribeURL.',
    Token: '2336412f37fb687f5d51e6e241d09c805a5a57b30d712f7948a98bac386edfe3e10314e873973b3e0a3c09119b722dedf2b5e31c',
    SubscribeURL: `https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=${TOPIC.arn}&Token=2336412f`,
    ...changes,
  };
}

/** As it comes: a notification without a subject has no such field. */
export function bodyOf(message: SnsMessage): string {
  const { Subject, ...rest } = message as SnsMessage & { Subject?: string | null };
  return JSON.stringify(Subject === null || Subject === undefined ? rest : { ...rest, Subject });
}
