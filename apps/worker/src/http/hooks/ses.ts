import { type SesParse, sesEvent } from '@pmail/core/delivery/ses-event.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { readSns, type SnsFault, type SnsMessage, type SnsTopic, snsFault } from '@pmail/core/sns/message.ts';
import { isSignedBy } from '@pmail/core/sns/signature.ts';
import { parseRfc3339 } from '@pmail/core/time.ts';
import type { Reports } from '@pmail/engine/consumers/reports.ts';
import type { Log } from '@pmail/engine/ports.ts';

export interface SesHookPorts {
  /** Null when no topic is set: then nobody can prove anything. */
  topic: SnsTopic | null;
  now: () => number;
  log: Log;
  count: (counter: string) => void;
  /** The public key of the certificate at a checked URL; undefined when there is none, a throw when nobody can tell. */
  keyAt: (url: string) => Promise<Uint8Array<ArrayBuffer> | undefined>;
  /** Runs `confirm` unless the confirmation with this id has been followed before; answers whether it ran. */
  once: (snsMessageId: string, confirm: () => Promise<void>) => Promise<boolean>;
  /** Follows a checked SubscribeURL. */
  follow: (url: string) => Promise<void>;
  /** Hands on what a notification says. */
  deliver: (reports: Reports) => Promise<void>;
}

export type SesHookAnswer = 'taken' | 'refused';

/**
 * One message of SNS. It is either proven to come from our topic or refused without any effect; a throw is a fault of ours,
 * after which SNS sends it again.
 *
 * @param body undefined when it is too large to be read, or no text
 */
export async function receiveSes(
  ports: SesHookPorts,
  header: string | null,
  body: string | undefined,
): Promise<SesHookAnswer> {
  const refused = (reason: SnsFault | 'too large, or no text' | 'no topic is set'): SesHookAnswer => {
    ports.count('ses_sns_rejected_total');
    ports.log('warn', 'sns_rejected', { reason });
    return 'refused';
  };
  if (ports.topic === null) return refused('no topic is set');
  if (body === undefined) return refused('too large, or no text');
  const read = readSns(body, header);
  if (!read.ok) return refused(read.reason);
  const { message } = read;
  const fault = snsFault(message, ports.topic, ports.now(), LIMITS.sns_age_ms_max);
  if (fault !== null) return refused(fault);
  const key = await ports.keyAt(message.SigningCertURL);
  if (key === undefined || !(await isSignedBy(message, key))) return refused('signature does not match');
  return (await take(ports, ports.topic, message)) ? 'taken' : refused('confirmed before');
}

/** A proven message. False only for a confirmation that was followed before. */
async function take(ports: SesHookPorts, topic: SnsTopic, message: SnsMessage): Promise<boolean> {
  switch (message.Type) {
    case 'SubscriptionConfirmation': {
      const { SubscribeURL: url } = message;
      return ports.once(message.MessageId, () => ports.follow(url));
    }
    case 'UnsubscribeConfirmation':
      // Somebody has ended the subscription: from now on nothing is heard of mail that SES takes.
      ports.log('error', 'ses_unsubscribed', {});
      ports.count('ses_unsubscribed_total');
      return true;
    case 'Notification':
      await notify(ports, topic, message);
      return true;
  }
}

/** What cannot be read, or says nothing new, is acknowledged: SNS would only send the same again. */
async function notify(ports: SesHookPorts, { region }: SnsTopic, message: SnsMessage): Promise<void> {
  const at = parseRfc3339(message.Timestamp) ?? ports.now();
  const event = sesEvent(parse(message.Message), { notification_id: message.MessageId, at, region });
  if (event.kind === 'unknown_type' || event.kind === 'unparsable') ports.count(`delivery_${event.kind}_total`);
  await ports.deliver(reportsOf(event));
}

function reportsOf(event: SesParse): Reports {
  return {
    events: event.kind === 'events' ? event.events : [],
    learned: event.kind === 'learned' ? event.learned : null,
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
