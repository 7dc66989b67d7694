-- API keys: found by digest, listed by ranges of ids.

-- name: get_caller
-- The active key with this digest, and how its organization is billed.
SELECT keys.id AS key_id, keys.org_id, keys.scopes, keys.requests_per_minute, keys.concurrent_requests, keys.nanos_per_day,
    keys.replay_mode, orgs.billing
FROM keys JOIN orgs ON orgs.id = keys.org_id
WHERE keys.digest = :digest AND keys.status = 'active';

-- name: add_key
-- Add a key. Only its digest and its last four characters are stored.
INSERT INTO keys (id, org_id, name, last_four, digest, scopes, status, requests_per_minute, concurrent_requests, nanos_per_day,
    replay_mode, created_at_ms)
VALUES (:id, :org_id, :name, :last_four, :digest, :scopes, 'active', :requests_per_minute, :concurrent_requests, :nanos_per_day,
    :replay_mode, :created_at_ms);

-- name: revoke_key
-- Revoke a key. A revoked key stays as it is.
UPDATE keys SET status = 'revoked', revoked_at_ms = :at_ms
WHERE id = :id AND org_id = :org_id AND status = 'active';

-- name: get_key
-- One key of an organization.
SELECT id, name, last_four, status, created_at_ms, revoked_at_ms FROM keys WHERE id = :id AND org_id = :org_id;

-- name: get_key_org
-- The organization of a key, for operators.
SELECT org_id FROM keys WHERE id = :id;

-- name: list_{older|newer}_keys
-- A page {downwards|upwards} from an id.
SELECT id, name, last_four, status, created_at_ms, revoked_at_ms FROM keys
WHERE org_id = :org_id AND id > :low AND id < :high AND (CAST(:status AS TEXT) IS NULL OR status = :status)
ORDER BY id {DESC|ASC} LIMIT :limit;

-- name: lock_key
-- Lock a key until the end of the transaction, so that its limits are checked one call at a time.
SELECT id FROM keys WHERE id = :id FOR NO KEY UPDATE;
