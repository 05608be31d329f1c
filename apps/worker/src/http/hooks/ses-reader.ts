import type { Address } from '@pmail/core/address/address.ts';
import type { DeliveryEvent } from '@pmail/core/delivery/events.ts';
import type { MessageId } from '@pmail/core/ids.ts';

/** The ids of a message that SES has taken, from its Send event. */
export interface LearnedIds {
  sender: Address;
  provider_message_id: string;
  /** The Message-ID that recipients see, without brackets. */
  rfc_message_id: string;
  /** Our own id, when the message carried it there and back. */
  our_message_id: MessageId | null;
}

/** What one notification of SES says. */
export interface SesReading {
  events: DeliveryEvent[];
  learned: LearnedIds | null;
  /** Counted and acknowledged: a report of a type that is not known, or one that cannot be read. */
  fault: 'unknown_type' | 'unparsable' | null;
}

/**
 * Reads the event in a notification.
 *
 * @param message the notification's Message, parsed from JSON
 * @param snsMessageId the same for every repeat of one notification
 */
export type SesReader = (message: unknown, snsMessageId: string) => SesReading;
