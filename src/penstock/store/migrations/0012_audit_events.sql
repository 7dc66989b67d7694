-- The audit log: administrative acts in a chain of hashes. Rows are added, and never changed or deleted.

CREATE TABLE audit_events (
    id       {id} PRIMARY KEY,  -- its number in the chain, from 1
    org_id   {id},              -- null: of the whole installation
    at_ms    BIGINT NOT NULL,
    actor    TEXT NOT NULL,
    action   TEXT NOT NULL,
    target   TEXT NOT NULL,
    body     TEXT NOT NULL,     -- the event as JSON, whose bytes are hashed; the columns before repeat parts of it
    previous TEXT NOT NULL,     -- hash of the event before
    hash     TEXT NOT NULL      -- SHA-256 of `previous` and `body`, in hexadecimal
);
CREATE INDEX audit_events_by_org ON audit_events (org_id, id);

-- The last event: one row, locked by each transaction that adds one.
CREATE TABLE audit_heads (
    id      TEXT PRIMARY KEY CHECK (id = 'head'),
    last_id {id} NOT NULL,
    hash    TEXT NOT NULL
);

-- [sqlite]
CREATE TRIGGER audit_events_stay BEFORE UPDATE ON audit_events
    BEGIN SELECT RAISE(ABORT, 'events of the audit log are not changed'); END;
CREATE TRIGGER audit_events_remain BEFORE DELETE ON audit_events
    BEGIN SELECT RAISE(ABORT, 'events of the audit log are not deleted'); END;
-- [postgres]
CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'events of the audit log are neither changed nor deleted'; END $$;
CREATE TRIGGER audit_events_stay BEFORE UPDATE OR DELETE ON audit_events
    FOR EACH ROW EXECUTE FUNCTION refuse_audit_change();
-- [both]
