-- The library: favorites, shared URLs that can be revoked, and which outputs were inputs of later requests.

ALTER TABLE media ADD COLUMN favorite_at_ms BIGINT;                -- since when an output is a favorite; null: it is none
ALTER TABLE media ADD COLUMN share_version BIGINT NOT NULL DEFAULT 0;  -- grows with each revocation: older URLs are refused

CREATE INDEX media_outputs ON media (org_id, id) WHERE role = 'output';
CREATE INDEX media_by_digest ON media (org_id, sha256) WHERE role = 'output';

-- Outputs that were sent again as inputs: an image that was edited, or that a video begins with.
CREATE TABLE reused_outputs (
    org_id         {id} NOT NULL,
    request_id     {id} NOT NULL,  -- that took the output as an input
    media_id       {id} NOT NULL,
    made_by        {id} NOT NULL,  -- the request that made the output
    PRIMARY KEY (org_id, request_id, media_id),
    FOREIGN KEY (org_id, request_id) REFERENCES requests (org_id, id)
) {without_rowid};
CREATE INDEX reused_outputs_by_maker ON reused_outputs (org_id, made_by, media_id);
