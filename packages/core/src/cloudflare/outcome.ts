import { LIMITS } from '../limits.ts';
import { cutUnits } from '../message/text.ts';
import type { RejectReason, RetryClass, TransportResult } from '../transport/types.ts';

/** The codes that prove a refusal. Whatever else the provider throws leaves it open whether the message was taken. */

const REFUSED = new Map<string, RejectReason>([
  ['E_VALIDATION_ERROR', 'provider_validation'],
  ['E_FIELD_MISSING', 'provider_validation'],
  ['E_TOO_MANY_RECIPIENTS', 'provider_validation'],
  ['E_TOO_MANY_ATTACHMENTS', 'provider_validation'],
  ['E_CONTENT_TOO_LARGE', 'provider_validation'],
  ['E_HEADER_NOT_ALLOWED', 'provider_validation'],
  ['E_HEADER_USE_API_FIELD', 'provider_validation'],
  ['E_HEADER_VALUE_INVALID', 'provider_validation'],
  ['E_HEADER_VALUE_TOO_LONG', 'provider_validation'],
  ['E_HEADER_NAME_INVALID', 'provider_validation'],
  ['E_HEADERS_TOO_LARGE', 'provider_validation'],
  ['E_HEADERS_TOO_MANY', 'provider_validation'],
  ['E_DELIVERY_FAILED', 'provider_validation'],
  ['E_RECIPIENT_NOT_ALLOWED', 'provider_validation'],
  ['E_SENDER_DOMAIN_NOT_AVAILABLE', 'sender_domain_unavailable'],
  ['E_SENDER_NOT_VERIFIED', 'sender_domain_unavailable'],
]);

const PUT_OFF = new Map<string, RetryClass>([
  ['E_RATE_LIMIT_EXCEEDED', 'rate_limit'],
  ['E_DAILY_LIMIT_EXCEEDED', 'quota'],
]);

const SUPPRESSED = 'E_RECIPIENT_SUPPRESSED';

/** What an error that `send()` threw means. */
export function cloudflareFailure(error: unknown): TransportResult {
  const { code, message } = partsOf(error);
  const detail = cutUnits(message, LIMITS.smtp_response_chars_max);
  const reason = REFUSED.get(code);
  if (reason !== undefined) return { kind: 'rejected', reason, code, detail, refused: [] };
  const retryClass = PUT_OFF.get(code);
  if (retryClass !== undefined) return { kind: 'retry_later', class: retryClass, code, detail, refused: [] };
  if (code === SUPPRESSED) return { kind: 'suppressed', code, detail };
  return {
    kind: 'unknown',
    reason: 'transport_connection_lost',
    detail: code === '' ? 'an error without a code' : code,
  };
}

function partsOf(error: unknown): { code: string; message: string } {
  if (typeof error !== 'object' || error === null) return { code: '', message: '' };
  const { code, message } = error as { code?: unknown; message?: unknown };
  return { code: typeof code === 'string' ? code : '', message: typeof message === 'string' ? message : '' };
}
