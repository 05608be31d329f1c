CREATE TABLE webhook_endpoints (
  id TEXT PRIMARY KEY,
  tenant_id TEXT REFERENCES tenants(id),
  url TEXT NOT NULL,
  description TEXT,
  event_types_json TEXT NOT NULL,
  identity_ids_json TEXT,
  enabled INTEGER NOT NULL DEFAULT 1,
  disabled_reason TEXT CHECK (disabled_reason IN ('manual', 'failing', 'url_changed')),
  secret_enc TEXT NOT NULL,
  prev_secret_enc TEXT,
  prev_secret_expires_at INTEGER,
  consecutive_failures INTEGER NOT NULL DEFAULT 0,
  first_failure_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX webhook_endpoints_tenant ON webhook_endpoints (tenant_id, enabled);

-- What was tried, and how it went.
CREATE TABLE webhook_deliveries (
  id TEXT PRIMARY KEY,
  endpoint_id TEXT NOT NULL REFERENCES webhook_endpoints(id) ON DELETE CASCADE,
  tenant_id TEXT,
  event_id TEXT NOT NULL,
  event_type TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('succeeded', 'failed', 'dead')),
  http_status INTEGER,
  error TEXT,
  duration_ms INTEGER,
  next_attempt_at INTEGER,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX webhook_deliveries_attempt ON webhook_deliveries (endpoint_id, event_id, attempt);
CREATE INDEX webhook_deliveries_recent ON webhook_deliveries (endpoint_id, created_at DESC, id DESC);
CREATE INDEX webhook_deliveries_age ON webhook_deliveries (created_at);

-- What is still to be delivered, so that no queue has to be trusted with it. `step` is the place in the schedule, which
-- begins anew with a replay; `attempt` counts on. While `taken_until` lies ahead, an attempt is under way.
CREATE TABLE webhook_work (
  endpoint_id TEXT NOT NULL REFERENCES webhook_endpoints(id) ON DELETE CASCADE,
  event_id TEXT NOT NULL,
  event_type TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  step INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  taken_until INTEGER,
  PRIMARY KEY (endpoint_id, event_id)
) WITHOUT ROWID;
CREATE INDEX webhook_work_due ON webhook_work (due_at);

CREATE INDEX event_index_waiting ON event_index (occurred_at) WHERE fanned_out_at IS NULL;
