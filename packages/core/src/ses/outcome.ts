import { LIMITS } from '../limits.ts';
import { cutUnits } from '../message/text.ts';
import type { RejectReason, RetryClass, TransportResult } from '../transport/types.ts';
import { sesWireId } from './names.ts';

/** An answer of SES, its body as text. */
export interface SesAnswer {
  status: number;
  /** The header `x-amzn-ErrorType`, null when there is none. */
  error_type: string | null;
  body: string;
}

const PUT_OFF: Record<string, RetryClass> = {
  TooManyRequestsException: 'rate_limit',
  LimitExceededException: 'quota',
  AccountSuspendedException: 'paused',
  SendingPausedException: 'paused',
};

const DOMAIN_FAULTS = new Set(['MailFromDomainNotVerifiedException', 'NotFoundException']);

/**
 * What an answer means. Only a refusal that names its type is one; an answer that says neither yes nor no may stand for a
 * message that was taken.
 */
export function sesOutcome(answer: SesAnswer, region: string): TransportResult {
  const { status } = answer;
  const body = tree(answer.body);
  if (status === 200) {
    const id = body['MessageId'];
    if (typeof id === 'string' && id !== '') return accepted(id, region);
    return unknown('answered 200 without a message id');
  }
  const code = errorType(answer.error_type) ?? errorType(body['__type']) ?? errorType(body['code']);
  if (status < 400 || status >= 500 || code === null) return unknown(`answered ${status}`);
  const detail = cutUnits(text(body['message']) ?? text(body['Message']) ?? '', LIMITS.smtp_response_chars_max);
  const retryClass = Object.hasOwn(PUT_OFF, code) ? PUT_OFF[code] : undefined;
  if (retryClass !== undefined) return { kind: 'retry_later', class: retryClass, code, detail, refused: [] };
  const reason: RejectReason = DOMAIN_FAULTS.has(code) ? 'sender_domain_unavailable' : 'provider_validation';
  return { kind: 'rejected', reason, code, detail, refused: [] };
}

function accepted(id: string, region: string): TransportResult {
  return {
    kind: 'accepted',
    provider_message_id: id,
    rfc_message_id: sesWireId(id, region),
    refused: [],
    deferred: [],
    scheduled: [],
    copies: [],
  };
}

function unknown(detail: string): TransportResult {
  return { kind: 'unknown', reason: 'transport_connection_lost', detail };
}

/** The bare name of an error type, which may come with a namespace before it and a URL behind. */
function errorType(value: unknown): string | null {
  const name = (text(value) ?? '').split(':')[0]?.split('#').at(-1)?.trim() ?? '';
  return /^[A-Za-z][A-Za-z0-9]*$/.test(name) ? name : null;
}

function tree(body: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}
