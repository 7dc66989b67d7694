-- Idempotency keys of calls that are not generations: those of chats, for as long as their setting says.

CREATE TABLE idempotency_keys (
    org_id        {id} NOT NULL REFERENCES orgs (id),
    key_digest    {blob} NOT NULL,   -- of the operation and the key: the text of a key is not stored
    request_id    {id} NOT NULL,     -- of the call that has the key; its record says what became of it
    body_digest   {blob} NOT NULL,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    PRIMARY KEY (org_id, key_digest)
) {without_rowid};

CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at_ms);
