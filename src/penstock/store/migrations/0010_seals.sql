-- The files that were delivered, by their digest and by their Content Credentials: kept after the files have expired, so
-- that the request of a file can be found years later. A purge removes them.
CREATE TABLE seals (
    org_id        {id} NOT NULL,
    sha256        {blob} NOT NULL,
    media_id      {id} NOT NULL,
    request_id    {id} NOT NULL,
    manifest      TEXT,           -- the name of the newest manifest in the file
    credentials   TEXT NOT NULL,  -- as JSON
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (org_id, sha256, media_id),
    FOREIGN KEY (org_id, request_id) REFERENCES requests (org_id, id)
) {without_rowid};
CREATE INDEX seals_by_request ON seals (request_id);
CREATE INDEX seals_by_manifest ON seals (org_id, manifest) WHERE manifest IS NOT NULL;
