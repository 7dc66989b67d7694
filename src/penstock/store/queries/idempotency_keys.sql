-- name: claim_idempotency_key
-- Give a key to a call, unless another call has it and it has not expired.
INSERT INTO idempotency_keys (org_id, key_digest, request_id, body_digest, created_at_ms, expires_at_ms)
VALUES (:org_id, :key_digest, :request_id, :body_digest, :created_at_ms, :expires_at_ms)
ON CONFLICT (org_id, key_digest) DO UPDATE
SET request_id = excluded.request_id, body_digest = excluded.body_digest, created_at_ms = excluded.created_at_ms,
    expires_at_ms = excluded.expires_at_ms, target = NULL, response = NULL
WHERE idempotency_keys.expires_at_ms <= excluded.created_at_ms;

-- name: get_idempotency_key
-- The call that has a key.
SELECT request_id, body_digest, created_at_ms FROM idempotency_keys
WHERE org_id = :org_id AND key_digest = :key_digest;

-- name: release_idempotency_claim
-- Take a key from a call that did nothing, so that the next one may have it.
DELETE FROM idempotency_keys WHERE org_id = :org_id AND key_digest = :key_digest AND request_id = :request_id;

-- name: delete_expired_idempotency_keys
-- Remove the keys that have expired.
DELETE FROM idempotency_keys WHERE (org_id, key_digest) IN (
    SELECT org_id, key_digest FROM idempotency_keys WHERE expires_at_ms <= :now_ms
    ORDER BY org_id, key_digest FOR UPDATE SKIP LOCKED
);

-- name: note_idempotency_target
-- Note what an administrative call has made or changed.
UPDATE idempotency_keys SET target = :target
WHERE org_id = :org_id AND key_digest = :key_digest AND request_id = :request_id;

-- name: set_idempotency_response
-- Store the response of an administrative call, without secrets.
UPDATE idempotency_keys SET response = :response
WHERE org_id = :org_id AND key_digest = :key_digest AND request_id = :request_id;

-- name: get_idempotency_response
-- The administrative call that has a key, and its response.
SELECT request_id, body_digest, created_at_ms, target, response FROM idempotency_keys
WHERE org_id = :org_id AND key_digest = :key_digest AND expires_at_ms > :now_ms;
