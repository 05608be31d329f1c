/** One entry of the catalogue. `retryable` says whether the same request, unchanged, may succeed later. */
export interface ErrorEntry {
  status: number;
  retryable: boolean;
  /** What is wrong, for a log or a person. */
  message: string;
  /** What the caller (a person or an agent) does about it. */
  fix: string;
}

function entry(status: number, message: string, fix: string): ErrorEntry {
  return { status, retryable: false, message, fix };
}

function retryable(status: number, message: string, fix: string): ErrorEntry {
  return { status, retryable: true, message, fix };
}

function notFound(noun: string): ErrorEntry {
  return entry(404, `No such ${noun} within this key's reach.`, `Check the ${noun} id and that the key reaches it.`);
}

/**
 * Every error the API can answer. The code is the stable name; status, retryable, message and fix are fixed per code.
 * docs/errors.md is generated from this table.
 */
export const ERRORS = {
  // Authentication and authorisation
  unauthenticated: entry(
    401,
    'No valid API key was presented.',
    'Send a current API key as "Authorization: Bearer pmk_…".',
  ),
  key_expired: entry(401, 'The API key has expired.', 'Use another key, or create one with a later expiry.'),
  key_revoked: entry(401, 'The API key was revoked.', 'Use another key; a revoked key never works again.'),
  permission_denied: entry(
    403,
    'The key lacks the permission this route needs.',
    'Use a key with the permission named in details.required.',
  ),
  scope_denied: entry(
    403,
    'The key does not reach this resource or may not set this value.',
    'Use a key of a wider level, or a value within the bound in details.',
  ),
  key_scope_exceeded: entry(
    403,
    'A key cannot make or change a key wider than itself.',
    'Stay within the permissions, the tenant and the identity of the key in use, or use a wider one.',
  ),
  tenant_suspended: entry(403, 'The tenant is suspended.', 'The operator of this deployment must resume the tenant.'),
  test_mode_recipient: entry(
    403,
    'A test tenant can only write to simulator and local addresses.',
    'Use an address at simulator.invalid or an identity address of this deployment, or a live tenant.',
  ),
  invalid_signature: entry(
    403,
    'The notification is not signed by the expected topic.',
    'Check the topic ARN and that the topic uses SNS signature version 2 without raw delivery.',
  ),

  // Requests
  invalid_request: entry(400, 'The request is not valid.', 'Correct the fields listed in details.errors.'),
  idempotency_key_required: entry(
    400,
    'This route needs an Idempotency-Key header.',
    'Send one key per message, 1 to 255 printable ASCII characters, and repeat it on every retry.',
  ),
  invalid_idempotency_key: entry(
    400,
    'The Idempotency-Key header is not valid.',
    'Use 1 to 255 printable ASCII characters (0x20 to 0x7E).',
  ),
  address_invalid: entry(400, 'An address is not a valid email address.', 'Correct the address named in details.'),
  address_unsupported: entry(
    400,
    'An address has a local part outside ASCII, which the transports cannot carry.',
    'Use an address whose part before the @ is ASCII.',
  ),
  address_reserved: entry(400, 'This name is reserved.', 'Choose another name.'),
  local_part_too_long: entry(
    400,
    'The address would be too long before the @.',
    'Choose a shorter name; name and tenant suffix together have at most 40 characters.',
  ),
  header_not_allowed: entry(
    400,
    'A custom header has a name that callers may not set.',
    'Drop the header, or give it an X- name.',
  ),
  marketing_requirements_missing: entry(
    400,
    'A marketing message needs an unsubscribe URL and recorded consent.',
    'Add unsubscribe.url (https) and consent; replies cannot be marketing.',
  ),
  too_many_recipients: entry(
    400,
    'The message has more recipients than the policy allows.',
    'Split the message; details.limit is the most that one message may have.',
  ),
  smtp_port_not_allowed: entry(400, 'This port is not allowed for a relay.', 'Use port 465 or 587.'),
  spf_lookup_limit: entry(
    400,
    'The merged SPF record would need more than ten DNS lookups.',
    'Flatten the includes named in the message.',
  ),
  message_too_large: entry(
    413,
    'The composed message is larger than the transports take.',
    'Shrink the attachments, or set the policy large_attachments to "link".',
  ),
  payload_too_large: entry(413, 'The request body is larger than 7 MiB.', 'Send a smaller body.'),
  route_not_found: entry(404, 'No such route.', 'Check the path against openapi.yaml.'),
  method_not_allowed: entry(405, 'This path does not take this method.', 'Use a method listed in the Allow header.'),

  // Things that are not there, or not for this key: both look the same
  tenant_not_found: notFound('tenant'),
  identity_not_found: notFound('identity'),
  address_not_found: notFound('address'),
  domain_not_found: notFound('domain'),
  thread_not_found: notFound('thread'),
  message_not_found: notFound('message'),
  attachment_not_found: notFound('attachment'),
  event_not_found: notFound('event'),
  webhook_not_found: notFound('webhook'),
  key_not_found: notFound('key'),
  erasure_not_found: notFound('erasure request'),
  suppression_not_found: notFound('suppression'),
  list_entry_not_found: notFound('list entry'),
  dlq_item_not_found: notFound('dead letter'),

  // Conflicts with state
  idempotency_conflict: entry(
    409,
    'This Idempotency-Key was used with a different request.',
    'Use a new key for a new request. Of a send, details.original_message_id is the message that the key made.',
  ),
  request_in_progress: retryable(
    409,
    'A request with this Idempotency-Key is still running.',
    'Wait a moment and repeat the same request with the same key.',
  ),
  client_id_conflict: entry(
    409,
    'This client_id was used with a different body.',
    'Repeat the first body, or use another client_id.',
  ),
  username_taken: entry(409, 'The username is taken.', 'Choose another username.'),
  slug_taken: entry(409, 'The slug is taken.', 'Choose another slug.'),
  suffix_taken: entry(409, 'The address suffix is taken or too similar to another.', 'Choose another suffix.'),
  address_taken: entry(409, 'The address is taken or was used before.', 'Choose another address.'),
  address_is_primary: entry(409, 'The address is the primary one.', 'Promote another address first.'),
  address_in_use: entry(
    409,
    'The address cannot be changed in this way.',
    'Retire it instead; the platform address stays for life.',
  ),
  not_quarantined: entry(409, 'The message is not quarantined.', 'Nothing to do.'),
  domain_not_suspended: entry(409, 'The domain is not suspended.', 'Nothing to do.'),
  existing_mx: entry(
    409,
    'The domain already receives mail elsewhere.',
    'Repeat with replace_mx: true when that mail may stop.',
  ),
  domain_not_dedicated: entry(
    409,
    'The domain already serves a website or mail.',
    'Repeat with confirm_dedicated: true when those may stop.',
  ),
  zone_hold: entry(409, 'The zone is on hold.', 'Release the hold at the DNS provider.'),
  domain_exists: entry(409, 'The domain is already connected.', 'Use another name, or the domain in details.'),
  domain_in_use: entry(409, 'The domain is still in use.', 'Retire its addresses first.'),
  domain_not_ready: retryable(
    409,
    'The sending domain or address is not verified yet.',
    'Publish the domain records and repeat once its state is healthy.',
  ),
  tenant_erased: entry(409, 'The tenant was erased.', 'None: erasure is final.'),
  identity_paused: entry(
    409,
    'The identity is paused.',
    'Resume it; details.reason says why it was paused and so who can.',
  ),
  identity_owner_required: entry(
    409,
    'The identity has no accountable owner.',
    'Set owner.name and owner.email on the identity.',
  ),
  thread_busy: retryable(
    409,
    'Another message of this thread is being sent.',
    'Repeat the same request with the same key after details.retry_after seconds.',
  ),
  loop_detected: entry(
    409,
    'The thread went back and forth between automatic senders too often.',
    'Stop the automatic exchange; let a person write.',
  ),
  auto_reply_not_allowed: entry(
    409,
    'An automatic reply is not allowed here.',
    'Let a person reply, with kind transactional.',
  ),
  not_cancelable: entry(
    409,
    'The message can no longer be cancelled.',
    'Read the message: it has been handed to a transport or has ended.',
  ),
  not_uncertain: entry(409, 'The message is not uncertain.', 'Read the message: its status is known.'),
  raw_expired: entry(410, 'The raw message is not kept any more.', 'Use the parsed fields.'),
  cursor_expired: entry(410, 'The cursor is older than 24 hours.', 'Start the list again without a cursor.'),

  // Understood but impossible
  all_recipients_suppressed: entry(
    422,
    'Every recipient is suppressed.',
    'Change the recipients; details.recipients gives each reason.',
  ),
  recipient_blocked: entry(
    422,
    'Every recipient is blocked by policy.',
    'Change the recipients or the policy; details.recipients gives each reason.',
  ),
  transport_unavailable: entry(
    422,
    'No usable transport for this message or domain.',
    'Configure what details.reason names, or choose another domain.',
  ),
  smtp_tls_required: entry(422, 'The relay does not offer TLS.', 'Enable STARTTLS on port 587 or use port 465.'),
  smtp_auth_failed: entry(422, 'The relay refused the credentials.', 'Correct the user name and password.'),
  cf_token_required: entry(422, 'This needs a Cloudflare API token.', 'Set PM_CF_API_TOKEN on the deployment.'),
  address_limit_reached: entry(422, 'The identity has the most addresses allowed.', 'Remove unused addresses.'),
  webhook_limit_reached: entry(422, 'The most webhook endpoints exist already.', 'Remove unused endpoints.'),
  key_limit_reached: entry(
    422,
    'The most keys allowed are in use.',
    'Revoke unused API keys; a signing key makes room when its time to verify is over.',
  ),

  // Allowances, rates, caps
  billing_limit: entry(
    402,
    'The allowance for this feature is used up.',
    'Raise the allowance, then repeat with the same key; details name feature, granted and used.',
  ),
  rate_limited: retryable(429, 'Too many requests.', 'Wait details.retry_after seconds and repeat with the same key.'),
  daily_cap_reached: retryable(
    429,
    'The daily sending cap is reached.',
    'Wait until details.resets_at, or have the cap raised; repeat with the same key.',
  ),
  upstream_rate_limited: retryable(429, 'A provider limits our calls.', 'Wait details.retry_after seconds and repeat.'),

  // Faults
  internal_error: retryable(
    500,
    'Something failed on our side.',
    'Repeat with the same key; report request_id when it persists.',
  ),
  upstream_error: retryable(502, 'A provider answered with an error.', 'Repeat; details.step names the call.'),
  unavailable: retryable(
    503,
    'A part of the service is not reachable, or the deployment is not configured.',
    'Repeat with the same key; details.config_invalid lists settings that the operator must set.',
  ),
  timeout: retryable(504, 'The request took too long.', 'Repeat with the same key: nothing is sent twice.'),
} satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof ERRORS;

/** The body of every error answer. */
export interface WireError {
  error: {
    code: ErrorCode;
    message: string;
    retryable: boolean;
    fix: string;
    request_id: string;
    details?: Record<string, unknown>;
  };
}

export function wireError(code: ErrorCode, requestId: string, details?: Record<string, unknown>): WireError {
  const { message, retryable: again, fix } = ERRORS[code];
  const error: WireError['error'] = { code, message, retryable: again, fix, request_id: requestId };
  if (details !== undefined) error.details = details;
  return { error };
}
