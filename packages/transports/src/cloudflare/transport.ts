import { derivedMessageId, type MessageIdStrategy } from '@pmail/core/cloudflare/message-id.ts';
import { cloudflareFailure } from '@pmail/core/cloudflare/outcome.ts';
import { type CloudflareMail, cloudflareFault, cloudflareMail } from '@pmail/core/cloudflare/send-request.ts';
import type {
  MailTransport,
  OutgoingMessage,
  ProviderSuppression,
  TransportResult,
} from '@pmail/core/transport/types.ts';
import { byDeadline, DeadlineOver } from '../deadline.ts';

export interface CloudflarePorts {
  /** The `send_email` binding. */
  send: (mail: CloudflareMail) => Promise<unknown>;
  /** Entries of the provider's suppression list for recipients of a message; null where nobody may ask. */
  suppressions: ((message: OutgoingMessage) => Promise<ProviderSuppression[]>) | null;
}

/**
 * Cloudflare Email Service by its binding. The message is given in fields, of which Cloudflare composes one of its own,
 * with a Message-ID that it does not tell.
 */
export function cloudflareTransport(ports: CloudflarePorts, strategy: MessageIdStrategy): MailTransport {
  return {
    provider: 'cloudflare',
    send: (message, deadlineMs) => send(ports, strategy, message, deadlineMs),
    findSuppressed: (message) => ports.suppressions?.(message) ?? Promise.resolve([]),
  };
}

async function send(
  ports: CloudflarePorts,
  strategy: MessageIdStrategy,
  message: OutgoingMessage,
  deadlineMs: number,
): Promise<TransportResult> {
  const fault = cloudflareFault(message);
  if (fault !== null) return { kind: 'rejected', reason: 'provider_validation', ...fault, refused: [] };
  try {
    return accepted(await byDeadline(deadlineMs, () => ports.send(cloudflareMail(message))), strategy);
  } catch (error) {
    if (error instanceof DeadlineOver) return { kind: 'unknown', reason: 'transport_timeout', detail: error.message };
    return cloudflareFailure(error);
  }
}

/** That it came back without an error is the acceptance. */
function accepted(answer: unknown, strategy: MessageIdStrategy): TransportResult {
  const id = typeof answer === 'object' && answer !== null ? (answer as { messageId?: unknown }).messageId : undefined;
  const providerId = typeof id === 'string' && id !== '' ? id : null;
  return {
    kind: 'accepted',
    provider_message_id: providerId,
    rfc_message_id: strategy === 'derived' && providerId !== null ? derivedMessageId(providerId) : null,
    refused: [],
    deferred: [],
    scheduled: [],
    copies: [],
  };
}
