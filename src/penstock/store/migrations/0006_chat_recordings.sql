-- Recordings of chats, and the digest by which the match `exact` finds a recording; older ones have none.

-- [postgres]
ALTER TABLE recordings ADD COLUMN exact {blob};
ALTER TABLE recordings DROP CONSTRAINT recordings_kind_check;
ALTER TABLE recordings ADD CONSTRAINT recordings_kind_check
    CHECK (kind IN ('image', 'edit', 'video', 'chat', 'response')) NOT VALID;
-- [sqlite]
-- SQLite changes a constraint by a copy of the table.
CREATE TABLE recordings_new (
    id            {id} PRIMARY KEY,
    org_id        {id} NOT NULL REFERENCES orgs (id),
    request_id    {id},
    imported_id   {id},
    import_digest {blob},
    kind          TEXT NOT NULL CHECK (kind IN ('image', 'edit', 'video', 'chat', 'response')),
    task          TEXT NOT NULL,
    model         TEXT NOT NULL,
    standard      {blob} NOT NULL,
    strict        {blob} NOT NULL,
    request       {blob} NOT NULL,
    result        {blob} NOT NULL,
    duration_ms   BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    exact         {blob}
);
INSERT INTO recordings_new (id, org_id, request_id, imported_id, import_digest, kind, task, model, standard, strict,
    request, result, duration_ms, created_at_ms)
SELECT id, org_id, request_id, imported_id, import_digest, kind, task, model, standard, strict, request, result,
    duration_ms, created_at_ms FROM recordings;
DROP TABLE recordings;
ALTER TABLE recordings_new RENAME TO recordings;
CREATE INDEX recordings_by_standard ON recordings (org_id, kind, standard, id);
CREATE INDEX recordings_by_strict ON recordings (org_id, kind, strict, id);
CREATE INDEX recordings_by_org ON recordings (org_id, id);
CREATE INDEX recordings_by_request ON recordings (request_id) WHERE request_id IS NOT NULL;
CREATE INDEX recordings_by_imported_id ON recordings (org_id, imported_id) WHERE imported_id IS NOT NULL;
CREATE UNIQUE INDEX recordings_by_import_digest ON recordings (org_id, import_digest)
    WHERE import_digest IS NOT NULL;
-- [both]
CREATE INDEX recordings_by_exact ON recordings (org_id, kind, exact, id) WHERE exact IS NOT NULL;
