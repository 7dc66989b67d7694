-- Files of OpenAI's kind, which batches are made of, and what its batches say of themselves.

CREATE TABLE uploads (
    id            {id} PRIMARY KEY,
    org_id        {id} NOT NULL REFERENCES orgs (id),
    filename      TEXT NOT NULL,
    purpose       TEXT NOT NULL,
    size_bytes    BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL
);
CREATE INDEX uploads_by_org ON uploads (org_id, id);
CREATE INDEX uploads_by_expiry ON uploads (expires_at_ms);

CREATE TABLE upload_pieces (
    upload_id {id} NOT NULL,
    number    BIGINT NOT NULL,
    data      {blob} NOT NULL,
    PRIMARY KEY (upload_id, number)
);

ALTER TABLE batches ADD COLUMN upload_id {id};  -- the file that it was made of; null: it came with the call
ALTER TABLE batches ADD COLUMN endpoint TEXT;   -- of rows that name none
ALTER TABLE batches ADD COLUMN metadata TEXT;   -- the caller's pairs, as JSON
