-- The directory: who may do what, and which address belongs to whom. Times are Unix ms. Append only: a change of
-- schema is a new file.

CREATE TABLE tenants (
  id TEXT PRIMARY KEY,
  slug TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  owner_name TEXT,
  owner_email TEXT,
  mode TEXT NOT NULL CHECK (mode IN ('live', 'test')),
  status TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'suspended', 'erasing', 'erased')),
  suspended_at INTEGER,
  suspended_by TEXT CHECK (suspended_by IN ('platform')),
  address_suffix TEXT NOT NULL UNIQUE,
  suffix_fold TEXT NOT NULL,
  timezone TEXT NOT NULL DEFAULT 'UTC',
  policy_json TEXT NOT NULL DEFAULT '{}',
  policy_ceilings_json TEXT NOT NULL DEFAULT '{}',
  policy_version INTEGER NOT NULL DEFAULT 0,
  billing_mode TEXT NOT NULL DEFAULT 'disabled' CHECK (billing_mode IN ('metered', 'exempt', 'disabled')),
  granted_json TEXT NOT NULL DEFAULT '{}',
  quota_do_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX tenants_suffix_fold ON tenants (suffix_fold) WHERE suffix_fold <> '';

CREATE TABLE domains (
  id TEXT PRIMARY KEY,
  tenant_id TEXT REFERENCES tenants (id),
  name TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL CHECK (kind IN ('platform', 'zone', 'delegated', 'external')),
  method TEXT NOT NULL CHECK (method IN ('platform', 'cloudflare_zone', 'nameservers', 'dns_records', 'send_only',
    'smtp_relay', 'delegated_subdomain')),
  zone_id TEXT,
  is_apex INTEGER NOT NULL,
  routing_mode TEXT NOT NULL CHECK (routing_mode IN ('catch_all', 'literal', 'forward')),
  inbound TEXT NOT NULL CHECK (inbound IN ('routing', 'ses', 'forward', 'none')),
  transport TEXT NOT NULL CHECK (transport IN ('cloudflare', 'ses', 'smtp')),
  reply_token TEXT NOT NULL CHECK (reply_token IN ('subaddress', 'none')),
  receiving INTEGER NOT NULL,
  sending INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'verifying', 'healthy', 'degraded', 'failing', 'suspended',
    'removing', 'removed')),
  state_reason TEXT,
  state_changed_at INTEGER NOT NULL,
  ownership_token TEXT,
  ownership_verified_at INTEGER,
  expected_ns_json TEXT,
  rdap_fingerprint TEXT,
  sending_tag TEXT,
  event_subscription_id TEXT,
  ses_identity TEXT,
  ses_region TEXT,
  mail_from_domain TEXT,
  smtp_sealed BLOB,
  smtp_pending_sealed BLOB,
  probe_last_at INTEGER,
  probe_last_json TEXT,
  records_json TEXT NOT NULL DEFAULT '[]',
  monitor_do_id TEXT NOT NULL DEFAULT '',
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);
CREATE INDEX domains_tenant ON domains (tenant_id, state);
CREATE INDEX domains_zone ON domains (zone_id);

CREATE TABLE identities (
  id TEXT PRIMARY KEY,
  tenant_id TEXT NOT NULL REFERENCES tenants (id),
  username TEXT NOT NULL,
  username_fold TEXT NOT NULL,
  display_name TEXT NOT NULL,
  purpose TEXT,
  client_id TEXT,
  client_fingerprint TEXT,
  owner_name TEXT,
  owner_email TEXT,
  signature_text TEXT,
  signature_html TEXT,
  status TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'paused', 'deleting', 'deleted')),
  pause_reason TEXT CHECK (pause_reason IN ('manual', 'abuse_threshold', 'tenant_suspended')),
  send_policy_json TEXT NOT NULL DEFAULT '{}',
  metadata_json TEXT NOT NULL DEFAULT '{}',
  mailbox_do_id TEXT NOT NULL,
  is_system INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX identities_system ON identities (is_system) WHERE is_system = 1;
CREATE UNIQUE INDEX identities_client ON identities (tenant_id, client_id) WHERE client_id IS NOT NULL;
CREATE UNIQUE INDEX identities_username ON identities (tenant_id, username) WHERE status <> 'deleted';
CREATE UNIQUE INDEX identities_username_fold ON identities (tenant_id, username_fold) WHERE status <> 'deleted';
CREATE INDEX identities_tenant ON identities (tenant_id, status);
CREATE INDEX identities_created ON identities (created_at DESC, id DESC);

CREATE TABLE addresses (
  id TEXT PRIMARY KEY,
  address TEXT NOT NULL UNIQUE,
  local_part TEXT NOT NULL,
  domain_id TEXT NOT NULL REFERENCES domains (id),
  tenant_id TEXT NOT NULL REFERENCES tenants (id),
  identity_id TEXT NOT NULL REFERENCES identities (id),
  role TEXT NOT NULL CHECK (role IN ('primary', 'alias')),
  status TEXT NOT NULL CHECK (status IN ('pending', 'active', 'retiring', 'retired')),
  routing_rule_id TEXT,
  retire_at INTEGER,
  retired_at INTEGER,
  ses_bounce_rule TEXT,
  forwarding TEXT CHECK (forwarding IN ('unverified', 'ok', 'failed')),
  forwarding_checked_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX addresses_primary ON addresses (identity_id) WHERE role = 'primary';
CREATE INDEX addresses_identity ON addresses (identity_id, status);
CREATE INDEX addresses_retiring ON addresses (status, retire_at) WHERE status = 'retiring';

CREATE TABLE address_tombstones (
  address_hash TEXT PRIMARY KEY,
  identity_id TEXT NOT NULL,
  reason TEXT NOT NULL CHECK (reason IN ('deleted', 'erased'))
);

CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  lookup TEXT NOT NULL UNIQUE,
  hash TEXT NOT NULL,
  prev_hash TEXT,
  prev_expires_at INTEGER,
  name TEXT NOT NULL,
  level TEXT NOT NULL CHECK (level IN ('platform', 'tenant', 'identity')),
  tenant_id TEXT REFERENCES tenants (id),
  identity_id TEXT REFERENCES identities (id),
  mode TEXT NOT NULL CHECK (mode IN ('live', 'test')),
  permissions_json TEXT NOT NULL,
  created_by_key_id TEXT,
  expires_at INTEGER,
  revoked_at INTEGER,
  last_used_at INTEGER,
  created_at INTEGER NOT NULL,
  CHECK ((level = 'platform' AND tenant_id IS NULL AND identity_id IS NULL)
    OR (level = 'tenant' AND tenant_id IS NOT NULL AND identity_id IS NULL)
    OR (level = 'identity' AND tenant_id IS NOT NULL AND identity_id IS NOT NULL))
);
CREATE INDEX api_keys_tenant ON api_keys (tenant_id);

CREATE TABLE suppressions (
  tenant_id TEXT NOT NULL REFERENCES tenants (id),
  address_hash TEXT NOT NULL,
  address_hint TEXT NOT NULL,
  reason TEXT NOT NULL CHECK (reason IN ('hard_bounce', 'complaint', 'unsubscribe', 'manual', 'provider')),
  source_message_id TEXT,
  note TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  PRIMARY KEY (tenant_id, address_hash)
) WITHOUT ROWID;

CREATE TABLE sender_lists (
  tenant_id TEXT NOT NULL,
  direction TEXT NOT NULL CHECK (direction IN ('receive', 'send')),
  kind TEXT NOT NULL CHECK (kind IN ('allow', 'block')),
  entry TEXT NOT NULL,
  note TEXT,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, direction, kind, entry)
) WITHOUT ROWID;

CREATE TABLE event_index (
  id TEXT PRIMARY KEY,
  tenant_id TEXT,
  identity_id TEXT,
  type TEXT NOT NULL,
  sequence INTEGER,
  owner_kind TEXT NOT NULL CHECK (owner_kind IN ('mailbox', 'domain', 'job', 'platform')),
  owner_id TEXT NOT NULL,
  payload_json TEXT,
  occurred_at INTEGER NOT NULL,
  fanned_out_at INTEGER
) WITHOUT ROWID;
CREATE INDEX event_index_tenant ON event_index (tenant_id, occurred_at, id);
CREATE INDEX event_index_identity ON event_index (identity_id, occurred_at, id);
CREATE INDEX event_index_time ON event_index (occurred_at, id);

CREATE TABLE idempotency_records (
  scope TEXT NOT NULL,
  key_id TEXT NOT NULL,
  idem_key TEXT NOT NULL,
  tenant_id TEXT,
  identity_id TEXT,
  method TEXT NOT NULL,
  path TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('in_progress', 'completed')),
  response_status INTEGER,
  response_body TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (scope, key_id, idem_key)
) WITHOUT ROWID;
CREATE INDEX idempotency_records_expiry ON idempotency_records (expires_at);

CREATE TABLE usage_daily (
  tenant_id TEXT NOT NULL,
  day TEXT NOT NULL,
  metric TEXT NOT NULL CHECK (metric IN ('inbound', 'outbound', 'sends', 'storage_bytes')),
  value INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, day, metric)
) WITHOUT ROWID;

CREATE TABLE audit_log (
  id TEXT PRIMARY KEY,
  tenant_id TEXT,
  actor_key_id TEXT,
  action TEXT NOT NULL,
  target_type TEXT,
  target_id TEXT,
  details_json TEXT,
  request_id TEXT,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX audit_log_tenant ON audit_log (tenant_id, created_at DESC, id DESC);

-- Mailboxes with something to do, by which the cron finds one whose alarm the platform has lost. A mailbox enters
-- itself before its first send commits and leaves after a day without work, so a busy one does not write here per send.
CREATE TABLE mailbox_work (
  identity_id TEXT PRIMARY KEY,
  since INTEGER NOT NULL,
  poked_at INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX mailbox_work_poked ON mailbox_work (poked_at);

-- Keys that sign thread tokens, download links and list cursors, sealed with the master key. One per purpose is in use.
CREATE TABLE signing_keys (
  purpose TEXT NOT NULL CHECK (purpose IN ('thread', 'link', 'cursor')),
  kid TEXT NOT NULL CHECK (length(kid) = 1),
  ciphertext TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  verify_until INTEGER,
  PRIMARY KEY (purpose, kid)
) WITHOUT ROWID;
CREATE UNIQUE INDEX signing_keys_active ON signing_keys (purpose) WHERE verify_until IS NULL;
