import { LIMITS } from '@pmail/core/limits.ts';
import { type SesAnswer, sesOutcome } from '@pmail/core/ses/outcome.ts';
import { type SesAccount, type SesRequest, sesSendRequest } from '@pmail/core/ses/send-request.ts';
import type { MailTransport, TransportResult } from '@pmail/core/transport/types.ts';
import { boundedText } from '../bounded-body.ts';
import { byDeadline, DeadlineOver } from '../deadline.ts';

export interface SesPorts {
  now: () => number;
  /** Makes the request once; repeating it is not for anybody below the claim. */
  fetch: (url: string, init: SesInit) => Promise<Response>;
}

export type SesInit = Omit<SesRequest, 'url'> & { redirect: 'manual'; signal: AbortSignal };

/** Amazon SES, API v2, with the stored bytes. */
export function sesTransport(ports: SesPorts, account: SesAccount): MailTransport {
  return {
    provider: 'ses',
    send: async (message, deadlineMs) => {
      const request = await sesSendRequest(message, account, ports.now());
      try {
        const answer = await byDeadline(deadlineMs, (signal) => ask(ports, request, signal));
        return sesOutcome(answer, account.region);
      } catch (error) {
        return lost(error);
      }
    },
  };
}

async function ask(ports: SesPorts, { url, ...request }: SesRequest, signal: AbortSignal): Promise<SesAnswer> {
  const response = await ports.fetch(url, { ...request, redirect: 'manual', signal });
  return {
    status: response.status,
    error_type: response.headers.get('x-amzn-errortype'),
    body: await boundedText(response, LIMITS.provider_answer_bytes_max),
  };
}

/** Nobody can tell from a broken connection whether the message was taken before it broke. */
function lost(error: unknown): TransportResult {
  if (error instanceof DeadlineOver) return { kind: 'unknown', reason: 'transport_timeout', detail: error.message };
  const detail = error instanceof Error ? error.name : 'unknown';
  return { kind: 'unknown', reason: 'transport_connection_lost', detail };
}
