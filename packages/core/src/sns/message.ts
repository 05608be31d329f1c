import { parseRfc3339 } from '../time.ts';

/**
 * Messages of Amazon SNS as they come over HTTPS: what belongs to one, and which are taken from whom. Everything in one
 * is a stranger's word until its signature has been checked.
 */

interface Fields {
  MessageId: string;
  TopicArn: string;
  Message: string;
  Timestamp: string;
  SignatureVersion: string;
  Signature: string;
  SigningCertURL: string;
}

export type SnsMessage = Fields &
  (
    | { Type: 'Notification'; Subject: string | null }
    | { Type: 'SubscriptionConfirmation' | 'UnsubscribeConfirmation'; SubscribeURL: string; Token: string }
  );

/** The one topic that is listened to. */
export interface SnsTopic {
  region: string;
  arn: string;
}

export type SnsRead = { ok: true; message: SnsMessage } | { ok: false; reason: SnsFault };

/** Why a message is not taken, for the log: it says nothing of what the message holds. */
export type SnsFault =
  | 'not a message of SNS'
  | 'raw delivery / no signature'
  | 'another type than its header says'
  | 'signature version is not 2'
  | 'certificate from elsewhere'
  | 'another topic'
  | 'not within its time'
  | 'confirmation leads elsewhere'
  | 'signature does not match'
  | 'confirmed before';

const FIELDS = [
  'MessageId',
  'TopicArn',
  'Message',
  'Timestamp',
  'SignatureVersion',
  'Signature',
  'SigningCertURL',
] as const;

/** Reads a body. `header` is `x-amz-sns-message-type`, null when the request had none. */
export function readSns(body: string, header: string | null): SnsRead {
  const tree = parseTree(body);
  if (tree === undefined) return no('not a message of SNS');
  // With raw delivery the body is what somebody published, and nothing says that SNS brought it.
  if (tree['Signature'] === undefined || tree['SigningCertURL'] === undefined) return no('raw delivery / no signature');
  const fields: Record<string, string> = {};
  for (const name of FIELDS) {
    const value = tree[name];
    if (typeof value !== 'string') return no('not a message of SNS');
    fields[name] = value;
  }
  const { Type, Subject = null, SubscribeURL, Token } = tree;
  if (header !== null && header !== Type) return no('another type than its header says');
  const common = fields as unknown as Fields;
  if (!isWord(common.MessageId)) return no('not a message of SNS');
  switch (Type) {
    case 'Notification':
      if (Subject !== null && !isLine(Subject)) return no('not a message of SNS');
      return { ok: true, message: { ...common, Type, Subject } };
    case 'SubscriptionConfirmation':
    case 'UnsubscribeConfirmation':
      if (!isWord(SubscribeURL) || !isWord(Token)) return no('not a message of SNS');
      return { ok: true, message: { ...common, Type, SubscribeURL, Token } };
    default:
      return no('not a message of SNS');
  }
}

/**
 * What stands against a message before anything is fetched for it, or null.
 *
 * @param ageMsMax how far its time may be from `now`, in either direction
 */
export function snsFault(message: SnsMessage, topic: SnsTopic, now: number, ageMsMax: number): SnsFault | null {
  // Version 1 is SHA-1.
  if (message.SignatureVersion !== '2') return 'signature version is not 2';
  if (!isCertificateUrl(message.SigningCertURL, topic.region)) return 'certificate from elsewhere';
  if (message.TopicArn !== topic.arn) return 'another topic';
  const at = parseRfc3339(message.Timestamp);
  if (at === undefined || Math.abs(now - at) > ageMsMax) return 'not within its time';
  if (message.Type !== 'Notification' && !isSnsUrl(message.SubscribeURL, topic.region)) {
    return 'confirmation leads elsewhere';
  }
  return null;
}

/**
 * Whether a URL is one of SNS in a region. It is compared as it is written: no reader of URLs is asked, so none can see
 * another host in it than this one.
 */
export function isSnsUrl(url: string, region: string): boolean {
  return url.startsWith(`https://sns.${region}.amazonaws.com/`) && /^[\x21-\x7e]+$/.test(url) && !/[\\#]/.test(url);
}

/** A certificate is a file. The API at the same host would answer a query with what its caller has written. */
function isCertificateUrl(url: string, region: string): boolean {
  return isSnsUrl(url, region) && !url.includes('?') && url.endsWith('.pem');
}

/**
 * What is signed is lines, so a line end inside a value could pass for the next field. Only the published text may have
 * them: it comes first, and all that follows it is of one line.
 */
function isLine(value: unknown): value is string {
  return typeof value === 'string' && !/[\r\n]/.test(value);
}

function isWord(value: unknown): value is string {
  return typeof value === 'string' && /^[\x21-\x7e]+$/.test(value);
}

function no(reason: SnsFault): SnsRead {
  return { ok: false, reason };
}

function parseTree(body: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
