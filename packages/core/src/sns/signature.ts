import { fromBase64, utf8 } from '../hash.ts';
import type { SnsMessage } from './message.ts';

/** What is signed of a message: the names and values of its fields, each on a line, in the order of the names. */
export function snsStringToSign(message: SnsMessage): string {
  const { Message, MessageId, Timestamp, TopicArn, Type } = message;
  const fields: Record<string, string> =
    message.Type === 'Notification'
      ? {
          Message,
          MessageId,
          ...(message.Subject === null ? {} : { Subject: message.Subject }),
          Timestamp,
          TopicArn,
          Type,
        }
      : { Message, MessageId, SubscribeURL: message.SubscribeURL, Timestamp, Token: message.Token, TopicArn, Type };
  return Object.entries(fields)
    .map(([name, value]) => `${name}\n${value}\n`)
    .join('');
}

/**
 * Whether the key of a certificate has signed a message, by version 2 (RSASSA-PKCS1-v1_5 with SHA-256).
 *
 * @param spki the certificate's public key as SubjectPublicKeyInfo (DER)
 */
export async function isSignedBy(message: SnsMessage, spki: Uint8Array<ArrayBuffer>): Promise<boolean> {
  const signature = fromBase64(message.Signature);
  if (signature === undefined || signature.length === 0) return false;
  const algorithm = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('spki', spki, algorithm, false, ['verify']);
  return crypto.subtle.verify(algorithm.name, key, signature, utf8(snsStringToSign(message)));
}
