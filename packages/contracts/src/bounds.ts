/** Bounds of the management API, the unit last in the name; those of mail itself are in the core's limits. */
export const BOUNDS = {
  tenant_name_chars_max: 200,
  owner_name_chars_max: 200,
  key_name_chars_max: 100,
  purpose_chars_max: 64,
  client_id_chars_max: 255,
  signature_text_chars_max: 4_000,
  signature_html_bytes_max: 16 * 1024,
  ai_disclosure_chars_max: 500,
  link_ttl_hours_max: 168,
  cloudflare_zones_count_max: 50,
  webhook_text_bytes_max: 65_536,
  webhook_description_chars_max: 200,
  note_chars_max: 500,
  replay_event_ids_max: 100,
  events_days_max: 365,
  key_overlap_hours_default: 24,
  permissions_count_max: 64,
  thread_messages_default: 20,
  search_chars_max: 500,
  usage_days_max: 92,
  unsubscribe_mailto_chars_max: 500,

  // Far above what the rules allow, which answer with the exact bound; these only keep the work of checking small.
  labels_sent_max: 1_000,
  map_members_max: 5_000,
  /** No body of the contract is deeper than six levels. */
  json_depth_max: 32,
  /**
   * Objects, lists and the commas between members. The largest body that a schema takes has labels, metadata and headers at
   * the bounds above and is far below 20,000; so many small values take a few megabytes once parsed.
   */
  json_parts_max: 50_000,
  field_errors_max: 50,
  field_path_chars_max: 200,
} as const;
