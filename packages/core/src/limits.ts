/**
 * Every bound of the service, the unit last in its name. A bound written anywhere else is a defect.
 */
export const LIMITS = {
  // Requests
  request_body_bytes_max: 7 * 1024 * 1024,
  idempotency_key_chars_max: 255,
  idempotency_retention_ms: 30 * 24 * 3_600_000,
  page_size_default: 25,
  page_size_max: 100,
  cursor_age_ms_max: 24 * 3_600_000,

  // A message
  recipients_count_max: 49,
  subject_chars_max: 998,
  attachments_count_max: 32,
  attachment_filename_bytes_max: 255,
  content_id_chars_max: 255,
  labels_per_message_max: 64,
  metadata_keys_max: 16,
  metadata_key_chars_max: 64,
  metadata_value_bytes_max: 512,
  /** 5 MiB is what the strictest transport takes; 8 KiB of it is kept for the headers that transports add. */
  composed_bytes_max: 5_242_880 - 8_192,

  // Headers
  header_name_bytes_max: 100,
  header_value_bytes_max: 2_048,
  /** A message whose header is asked for is read so far; all of it where the header goes on. */
  header_read_bytes: 128 * 1024,
  headers_non_x_count_max: 20,
  headers_total_bytes_max: 16 * 1024,
  references_count_max: 20,
  references_bytes_max: 2_048,
  hop_count_max: 10,

  // Addresses (RFC 5321 section 4.5.3.1)
  address_chars_max: 254,
  local_part_octets_max: 64,
  domain_octets_max: 253,
  domain_label_octets_max: 63,
  display_name_chars_max: 78,
  /** Of anybody else: a recipient, somebody in mail that arrived. */
  name_chars_max: 256,
  username_chars_max: 24,
  alias_chars_max: 40,
  /** A username together with the suffix of its tenant. */
  platform_local_part_chars_max: 40,

  // Rows (a row of a Durable Object holds 2 MB)
  row_text_bytes_max: 512 * 1024,
  row_html_bytes_max: 1024 * 1024,
  row_extracted_text_bytes_max: 256 * 1024,
  row_people_bytes_max: 24 * 1024,
  row_subject_chars_max: 4_000,
  row_references_count_max: 50,
  row_id_chars_max: 998,
  snippet_chars_max: 240,
  participants_count_max: 50,
  smtp_response_chars_max: 512,
  event_ids_kept_max: 20,

  // Metadata of a sent copy (the object store takes 8 KiB)
  sent_metadata_bcc_bytes_max: 4_096,
  sent_metadata_filtered_bytes_max: 1_200,
  sent_metadata_labels_bytes_max: 1_024,
  sent_metadata_own_bytes_max: 1_024,

  // The send path
  thread_lock_lease_ms: 120_000,
  thread_lock_claim_lease_ms: 60_000,
  thread_lock_wait_ms_max: 10_000,
  thread_lock_step_ms: 250,
  /** So long a conversation that fell back keeps the platform address after its last message. */
  fallback_quiet_ms_min: 72 * 3_600_000,
  thread_busy_retry_s_max: 60,
  /** The object store takes one write a second to one object. */
  object_rewrite_ms_min: 1_000,
  claim_ttl_ms: 5 * 60_000,
  dispatch_after_ms: 5 * 60_000,
  backoff_total_ms_max: 24 * 3_600_000,
  hold_ttl_ms: 10 * 60_000,
  hold_grace_ms: 10 * 60_000,
  transport_deadline_ms: 30_000,
  submit_deadline_ms: 30_000,
  directory_deadline_ms: 5_000,
  object_call_deadline_ms: 10_000,
  event_orphan_age_ms: 330_000,
  event_retry_s: 30,
  reconcile_before_ms: 30 * 60_000,
  reconcile_after_ms: 5 * 60_000,
  outbox_batch_max: 100,
  outbox_backoff_ms_min: 30_000,
  outbox_backoff_ms_max: 5 * 60_000,
  maintenance_every_ms: 24 * 3_600_000,
  /** Bytes of an arrived attachment may follow its message by this much. */
  attachment_settle_ms: 5 * 60_000,
  /** An object in the blob store younger than this may belong to a send still under way, so the sweep leaves it. */
  orphan_age_ms_min: 3_600_000,
  /** How far back a rebuilt ledger looks: its retention, and a day for clocks. */
  rebuild_reach_ms: 31 * 86_400_000,
  /** Sent copies looked at, and lost sends put back, in one step of a rebuild. */
  rebuild_listed_count: 500,
  rebuild_restored_count: 20,
  /** How long one request goes on with a rebuild. */
  rebuild_request_ms: 15_000,

  // A relay (RFC 5321 section 4.5.3)
  smtp_connect_ms_max: 10_000,
  smtp_command_ms_max: 30_000,
  smtp_final_reply_ms_max: 60_000,
  /** Less than a claim lives, so that the result of the longest exchange still finds its claim. */
  smtp_exchange_ms_max: 4 * 60_000,
  /** What is left to say once the result is known. */
  smtp_farewell_ms_max: 1_000,
  smtp_reply_line_bytes_max: 4_096,
  smtp_reply_lines_max: 128,
  smtp_command_line_bytes_max: 512,
  smtp_body_chunk_bytes: 64 * 1024,
  smtp_credential_bytes_max: 512,
  /** Connections to relays at the same time, of the six that an invocation has. */
  smtp_connections_max: 4,

  // Providers
  /** Cloudflare counts To, Cc and Bcc together, the hidden copy for us included. */
  cloudflare_recipients_count_max: 50,
  cloudflare_message_bytes_max: 5_242_880,
  /** How often a message is handed over again under one claim without those whom the provider suppresses. */
  suppression_rounds_max: 3,
  /** A question to a provider beside a send. */
  provider_question_ms_max: 5_000,
  provider_questions_ms_max: 20_000,
  provider_answer_bytes_max: 64 * 1024,
  /** How long after a transport took a message its Message-ID can still be learned. */
  learn_id_ms_max: 15 * 60_000,
  /** How much of a journal copy is read for the end of its header. */
  journal_header_bytes_max: 64 * 1024,
  sns_body_bytes_max: 512 * 1024,
  /** How far the time of a notification may be from ours. */
  sns_age_ms_max: 3_600_000,
  sns_certificate_bytes_max: 16 * 1024,
  sns_certificate_cache_ms: 24 * 3_600_000,
  sns_certificates_kept_max: 8,
  /** URLs at which there was no certificate are not asked again for so long. */
  sns_certificate_failure_ms: 60_000,
  sns_certificate_failures_kept_max: 100,

  // Quota
  outcomes_kept_max: 1_000,
  complaint_window_count: 1_000,
  bounce_window_count: 200,
  outcome_event_retention_ms: 7 * 24 * 3_600_000,

  // Webhooks
  webhook_url_bytes_max: 2_048,
  webhook_endpoints_per_owner_max: 20,
  webhook_identity_ids_max: 100,
  webhook_timeout_ms: 15_000,
  webhook_read_bytes_max: 4_096,
  /** Attempts at one endpoint at the same time. */
  webhook_parallel_count_max: 8,
  webhook_wait_spread_ratio: 0.1,
  /** So many failures in a row, the first of them so long ago, switch an endpoint off. */
  webhook_failures_count_max: 100,
  webhook_failures_spread_ms: 24 * 3_600_000,
  webhook_replay_events_max: 1_000,
  webhook_replay_age_ms_max: 30 * 86_400_000,
  webhook_deliveries_kept_ms: 30 * 86_400_000,
  webhook_endpoints_cache_ms: 30_000,
  webhook_wait_ms_max: 24 * 3_600_000,
  webhook_lease_ms: 120_000,
  /** No deadline of an object and no wait of a delivery is longer: clean-ups and refused daily limits come after a day. */
  wait_ms_max: 2 * 86_400_000,
  webhook_sweep_after_ms: 60_000,
  /** An event older than this is no more fanned out by the sweep. */
  fanout_until_ms: 3_600_000,
  /** How much longer than others an event is kept whose subscribers were never found. */
  unfanned_event_grace_ms: 7 * 86_400_000,
  /** How far ahead a queue can be told to wait. */
  queue_delay_ms_max: 12 * 3_600_000,
  resolver_deadline_ms: 5_000,

  // The directory
  /** How often a change that another writer overtook is worked out again. */
  directory_write_attempts_max: 3,

  // Keys
  keys_per_tenant_max: 100,
  key_overlap_hours_max: 168,
  /** Signing keys that were replaced verify on for this long; the key of cursors for as long as a cursor works. */
  thread_key_verify_ms: 90 * 86_400_000,
  link_key_verify_ms: 7 * 86_400_000,
  /** An isolate of the Worker remembers signing keys for this long, and looks again for an unknown one this often. */
  keyring_cache_ms: 5 * 60_000,
  keyring_reread_ms: 60_000,
} as const;
