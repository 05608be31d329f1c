import type { ErrorCode } from '@pmail/core/errors.ts';

/**
 * What `details` holds for the codes that have any, as example values. The errors page lists the names, the OpenAPI
 * document shows the whole.
 */
export const ERROR_DETAILS: Partial<Record<ErrorCode, Record<string, unknown>>> = {
  permission_denied: { required: 'messages:send' },
  scope_denied: {
    field: 'identity_daily_send_cap',
    reason: 'above_ceiling',
    ceiling: 500,
    ceiling_source: 'deployment',
  },
  invalid_request: { errors: [{ path: 'to[3].address', message: 'is required' }] },
  address_invalid: { errors: [{ path: 'to[0]', message: 'is not an address of the form name@domain' }] },
  address_unsupported: { errors: [{ path: 'to[0]', message: 'has a local part outside ASCII' }] },
  header_not_allowed: { errors: [{ path: 'headers.Bcc', message: 'is not a header that callers may set' }] },
  marketing_requirements_missing: { errors: [{ path: 'unsubscribe.url', message: 'must be an https URL' }] },
  payload_too_large: { limit: 7_340_032 },
  test_mode_recipient: { recipients: ['jo@example.net'] },
  too_many_recipients: { limit: 10 },
  spf_lookup_limit: { lookups: 12 },
  idempotency_conflict: { original_message_id: 'msg_01JABCDEFGHJKMNPQRSTVWXYZ0' },
  existing_mx: { records: [{ name: 'example.com', value: 'mx.example.net', priority: 10 }] },
  domain_not_dedicated: { records: [{ name: 'example.com', value: '192.0.2.1' }] },
  domain_exists: { domain_id: 'dom_01JABCDEFGHJKMNPQRSTVWXYZ0' },
  domain_in_use: { reason: 'zone_has_domains', domain_ids: ['dom_01JABCDEFGHJKMNPQRSTVWXYZ0'] },
  domain_not_ready: { state: 'verifying' },
  identity_paused: { reason: 'manual' },
  thread_busy: { retry_after: 12 },
  loop_detected: { hop: 10 },
  not_cancelable: { status: 'submitted' },
  not_uncertain: { status: 'delivered' },
  all_recipients_suppressed: {
    recipients: [{ address: 'jo@example.net', field: 'to', status: 'suppressed', reason: 'hard_bounce' }],
  },
  recipient_blocked: {
    recipients: [{ address: 'jo@example.net', field: 'to', status: 'suppressed', reason: 'send_block' }],
  },
  transport_unavailable: { reason: 'ses_not_configured' },
  address_limit_reached: { limit: 20 },
  webhook_limit_reached: { limit: 20 },
  key_limit_reached: { limit: 100 },
  billing_limit: {
    feature: 'sends',
    granted: 1000,
    used: 1000,
    resets_at: '2026-11-01T00:00:00.000Z',
    upgrade_url: null,
  },
  rate_limited: { retry_after: 12, bucket: 'key' },
  daily_cap_reached: { cap: 'identity', resets_at: '2026-10-10T00:00:00.000Z' },
  upstream_rate_limited: { retry_after: 60 },
  upstream_error: { step: 'create_zone' },
  // The second only where a setting is missing or wrong.
  unavailable: { step: 'quota', config_invalid: ['PM_API_HOST'] },
  timeout: { step: 'mailbox' },
  internal_error: { step: 'object' },
};
