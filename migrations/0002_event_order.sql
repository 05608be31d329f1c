-- The last event of a mailbox tells whether its storage was put back to an earlier time.
CREATE INDEX event_index_owner ON event_index (owner_id, sequence);
