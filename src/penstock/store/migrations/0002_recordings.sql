-- Recordings: what a call asked for, what came back and how long it took, to be served again for nothing.

CREATE TABLE recordings (
    id            {id} PRIMARY KEY,
    org_id        {id} NOT NULL REFERENCES orgs (id),
    request_id    {id},                -- the request it was made from; null when imported
    kind          TEXT NOT NULL CHECK (kind IN ('image', 'edit', 'video')),
    task          TEXT NOT NULL,
    model         TEXT NOT NULL,
    standard      {blob} NOT NULL,     -- digest of the canonical parameters
    strict        {blob} NOT NULL,     -- digest of the body as it was sent
    request       {blob} NOT NULL,     -- parameters by name, as JSON
    result        {blob} NOT NULL,     -- what was settled, as JSON
    duration_ms   BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL
);
CREATE INDEX recordings_by_standard ON recordings (org_id, kind, standard, id);
CREATE INDEX recordings_by_strict ON recordings (org_id, kind, strict, id);
CREATE INDEX recordings_by_org ON recordings (org_id, id);
CREATE INDEX recordings_by_request ON recordings (request_id) WHERE request_id IS NOT NULL;

CREATE TABLE recording_files (
    recording_id  {id} NOT NULL REFERENCES recordings (id),
    position      BIGINT NOT NULL,
    media_id      {id} NOT NULL,
    content_type  TEXT NOT NULL,
    size_bytes    BIGINT NOT NULL,
    sha256        {blob} NOT NULL,
    PRIMARY KEY (recording_id, position)
);

-- Who is making a recording right now, so that calls alike wait for it and do not make it again.
CREATE TABLE recording_claims (
    org_id     {id} NOT NULL,
    kind       TEXT NOT NULL,
    digest     {blob} NOT NULL,
    request_id {id} NOT NULL,
    PRIMARY KEY (org_id, kind, digest)
);
