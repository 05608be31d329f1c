-- Pages of suppressions and of list entries, newest first.
CREATE INDEX suppressions_recent ON suppressions (tenant_id, created_at DESC, address_hash DESC);
CREATE INDEX sender_lists_recent ON sender_lists (tenant_id, direction, kind, created_at DESC, entry DESC);
