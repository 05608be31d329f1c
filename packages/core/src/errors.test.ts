import { describe, expect, it } from 'vitest';
import { ERRORS, type ErrorCode, type ErrorEntry, wireError } from './errors.ts';

/** The catalogue of the design: codes by status. */
const CODES: Record<number, string> = {
  400: `invalid_request idempotency_key_required invalid_idempotency_key address_invalid address_unsupported
    address_reserved local_part_too_long header_not_allowed marketing_requirements_missing too_many_recipients
    smtp_port_not_allowed spf_lookup_limit`,
  401: 'unauthenticated key_expired key_revoked',
  402: 'billing_limit',
  403: 'permission_denied scope_denied key_scope_exceeded tenant_suspended test_mode_recipient invalid_signature',
  404: `tenant_not_found identity_not_found address_not_found domain_not_found thread_not_found message_not_found
    attachment_not_found event_not_found webhook_not_found key_not_found erasure_not_found suppression_not_found
    list_entry_not_found dlq_item_not_found route_not_found`,
  405: 'method_not_allowed',
  409: `idempotency_conflict request_in_progress client_id_conflict username_taken slug_taken suffix_taken
    address_taken address_is_primary address_in_use not_quarantined domain_not_suspended existing_mx
    domain_not_dedicated zone_hold domain_exists domain_in_use domain_not_ready tenant_erased identity_paused
    identity_owner_required thread_busy loop_detected auto_reply_not_allowed not_cancelable not_uncertain`,
  410: 'raw_expired cursor_expired',
  413: 'message_too_large payload_too_large',
  422: `all_recipients_suppressed recipient_blocked transport_unavailable smtp_tls_required smtp_auth_failed
    cf_token_required address_limit_reached webhook_limit_reached key_limit_reached`,
  429: 'rate_limited daily_cap_reached upstream_rate_limited',
  500: 'internal_error',
  502: 'upstream_error',
  503: 'unavailable',
  504: 'timeout',
};

const RETRYABLE = `request_in_progress domain_not_ready thread_busy rate_limited daily_cap_reached
  upstream_rate_limited internal_error upstream_error unavailable timeout`;

const entries = Object.entries(ERRORS as Record<string, ErrorEntry>);
const words = (text: string): string[] => text.split(/\s+/);

describe('the error catalogue', () => {
  it.each(Object.entries(CODES))('has the codes of status %s', (status, codes) => {
    for (const code of words(codes)) expect(ERRORS).toHaveProperty(code);
    for (const code of words(codes)) expect(ERRORS[code as ErrorCode].status).toBe(Number(status));
  });

  it('calls retryable what may succeed unchanged, and nothing else', () => {
    const retryable = entries.filter(([, entry]) => entry.retryable).map(([code]) => code);
    expect(retryable.toSorted()).toEqual(words(RETRYABLE).toSorted());
  });

  it.each(entries)('says what is wrong and what to do: %s', (code, entry) => {
    expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/);
    expect(entry.message).toMatch(/^[A-Z].{5,}\.$/);
    expect(entry.fix).toMatch(/^[A-Z].{5,}[.…]$/);
    expect(Number.isInteger(entry.status) && entry.status >= 400 && entry.status <= 599).toBe(true);
  });

  it('never blames the caller for our faults: 5xx are retryable', () => {
    for (const [, entry] of entries) if (entry.status >= 500) expect(entry.retryable).toBe(true);
  });
});

describe('an error on the wire', () => {
  it('carries code, text, fix, retryable and the request id', () => {
    const { message, fix } = ERRORS.thread_busy;
    expect(wireError('thread_busy', 'req_1', { retry_after: 5 })).toEqual({
      error: { code: 'thread_busy', message, retryable: true, fix, request_id: 'req_1', details: { retry_after: 5 } },
    });
  });

  it('has no details member when there are none', () => {
    expect(Object.keys(wireError('internal_error', 'req_1').error)).not.toContain('details');
  });
});
