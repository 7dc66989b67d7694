-- Buckets of organizations, into which copies of their outputs go.

CREATE TABLE destinations (
    id            {id} PRIMARY KEY,
    org_id        {id} NOT NULL,
    name          TEXT NOT NULL,
    url           TEXT NOT NULL,     -- s3://bucket/folder
    region        TEXT NOT NULL,
    endpoint      TEXT NOT NULL,     -- empty: AWS
    path          TEXT NOT NULL,     -- template of the path of each file
    secret        {blob} NOT NULL,   -- the keys, encrypted
    last_four     TEXT NOT NULL,     -- of the access key's id
    is_default    BIGINT NOT NULL,   -- 1: for calls that name none
    is_required   BIGINT NOT NULL,   -- 1: an output that cannot be copied is not delivered at all
    version       BIGINT NOT NULL,   -- grows with each change of the keys
    created_at_ms BIGINT NOT NULL,
    failure       TEXT,              -- why the last file could not be copied; null: it could, or none was
    failed_at_ms  BIGINT
);
CREATE INDEX destinations_by_org ON destinations (org_id, id);
