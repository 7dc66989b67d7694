-- API keys: found by digest, listed by ranges of ids.

-- part: caller_columns
-- What a call needs of its key, how its organization is billed, and which labels have budgets.
    keys.id AS key_id, keys.org_id, CASE WHEN keys.kind IS NULL THEN keys.user_id END AS owner_id, keys.scopes, keys.requests_per_minute, keys.concurrent_requests, keys.nanos_per_day,
    keys.nanos_per_month, keys.models, keys.replay_mode, keys.image_response_format, keys.expires_at_ms, keys.labels,
    orgs.billing, orgs.nanos_per_month AS org_nanos_per_month, orgs.declared_labels, orgs.provenance, orgs.model_aliases,
-- [sqlite]
    (SELECT json_group_array(json_array(budgets.name, budgets.value))
-- [postgres]
    (SELECT CAST(json_agg(json_build_array(budgets.name, budgets.value)) AS TEXT)
-- [both]
        FROM (SELECT name, value FROM label_budgets WHERE label_budgets.org_id = keys.org_id LIMIT 201) AS budgets
    ) AS label_budgets

-- part: key_columns
-- What is shown of a key, and whose it is.
    keys.id, keys.name, keys.last_four, keys.status, keys.created_at_ms, keys.revoked_at_ms, keys.scopes,
    keys.requests_per_minute, keys.concurrent_requests, keys.nanos_per_day, keys.nanos_per_month, keys.models,
    keys.replay_mode, keys.image_response_format, keys.expires_at_ms, keys.labels, keys.user_id,
    COALESCE(users.name, users.email) AS owner_name

-- name: get_caller
-- The active key with this digest, unless its person is deactivated.
SELECT {caller_columns}
FROM keys JOIN orgs ON orgs.id = keys.org_id LEFT JOIN users ON users.id = keys.user_id
WHERE keys.digest = :digest AND keys.status = 'active' AND (keys.user_id IS NULL OR users.status = 'active');

-- name: get_caller_of_key
-- The active key with this id, unless its person is deactivated.
SELECT {caller_columns}
FROM keys JOIN orgs ON orgs.id = keys.org_id LEFT JOIN users ON users.id = keys.user_id
WHERE keys.id = :id AND keys.status = 'active' AND (keys.user_id IS NULL OR users.status = 'active');

-- name: add_key
-- Add a key. Only its digest and its last four characters are stored.
INSERT INTO keys (id, org_id, name, last_four, digest, scopes, status, requests_per_minute, concurrent_requests, nanos_per_day,
    nanos_per_month, models, replay_mode, image_response_format, expires_at_ms, labels, created_at_ms, user_id)
VALUES (:id, :org_id, :name, :last_four, :digest, :scopes, 'active', :requests_per_minute, :concurrent_requests, :nanos_per_day,
    :nanos_per_month, :models, :replay_mode, :image_response_format, :expires_at_ms, :labels,
    :created_at_ms, :user_id);

-- name: set_key
-- Change the name and the limits of a key. A revoked key stays as it is.
UPDATE keys SET name = :name, requests_per_minute = :requests_per_minute, concurrent_requests = :concurrent_requests,
    nanos_per_day = :nanos_per_day, nanos_per_month = :nanos_per_month, models = :models, replay_mode = :replay_mode,
    image_response_format = :image_response_format,
    expires_at_ms = :expires_at_ms, labels = :labels
WHERE id = :id AND org_id = :org_id AND status = 'active';

-- name: revoke_key
-- Revoke a key. A revoked key stays as it is.
UPDATE keys SET status = 'revoked', revoked_at_ms = :at_ms
WHERE id = :id AND org_id = :org_id AND status = 'active';

-- name: get_key
-- One key of an organization.
SELECT {key_columns}
FROM keys LEFT JOIN users ON users.id = keys.user_id
WHERE keys.id = :id AND keys.org_id = :org_id;

-- name: get_key_org
-- The organization of a key, for operators.
SELECT org_id FROM keys WHERE id = :id;

-- name: list_{older|newer}_keys
-- A page {downwards|upwards} from an id, without those of sessions.
SELECT {key_columns}
FROM keys LEFT JOIN users ON users.id = keys.user_id
WHERE keys.org_id = :org_id AND keys.id > :low AND keys.id < :high AND keys.kind IS NULL
    AND (CAST(:status AS TEXT) IS NULL OR keys.status = :status)
ORDER BY keys.id {DESC|ASC} LIMIT :limit;

-- name: list_own_keys
-- The active keys of a person in an organization, newest first.
SELECT {key_columns}
FROM keys INDEXED BY keys_by_user LEFT JOIN users ON users.id = keys.user_id
WHERE keys.user_id = :user_id AND keys.org_id = :org_id AND keys.kind IS NULL AND keys.status = 'active'
ORDER BY keys.id DESC LIMIT :limit;

-- name: count_own_keys
-- How many keys of a person work in an organization.
SELECT COUNT(*) AS count FROM keys
WHERE user_id = :user_id AND org_id = :org_id AND kind IS NULL AND status = 'active'
    AND (expires_at_ms IS NULL OR expires_at_ms > :now_ms);

-- name: get_own_key_limits
-- What limits the keys that people make in an organization.
SELECT own_key_limits FROM orgs WHERE id = :id;

-- name: set_own_key_limits
-- Limit the keys that people make in an organization.
UPDATE orgs SET own_key_limits = :limits WHERE id = :id;

-- name: lock_key
-- Lock a key until the end of the transaction, so that its limits are checked one call at a time.
SELECT id FROM keys WHERE id = :id FOR NO KEY UPDATE;

-- name: sum_usage_of_keys [sqlite]
-- The newest request of each key, and what the key spent since two slots.
SELECT k.value AS id,
    (SELECT MAX((SELECT MAX(r.id) FROM requests AS r INDEXED BY requests_by_key_and_status
            WHERE r.org_id = :org_id AND r.key_id = k.value AND r.status = s.value))
        FROM json_each('["completed", "pending", "processing", "upstream_failure", "rejected", "cancelled"]') AS s
    ) AS last_id,
    (SELECT COALESCE(SUM(cost), 0) FROM usage_slots
        WHERE org_id = :org_id AND key_id = k.value AND status = '' AND slot >= :day) AS today,
    (SELECT COALESCE(SUM(cost), 0) FROM usage_slots
        WHERE org_id = :org_id AND key_id = k.value AND status = '' AND slot >= :month) AS this_month
FROM json_each(:ids) AS k;

-- name: sum_usage_of_keys [postgres]
-- The newest request of each key, and what the key spent since two slots.
SELECT k.id,
    (SELECT MAX(last.id) FROM (
        VALUES ('completed'), ('pending'), ('processing'), ('upstream_failure'), ('rejected'), ('cancelled')
    ) AS s (status) CROSS JOIN LATERAL (
        SELECT MAX(r.id) AS id FROM requests AS r
        WHERE r.org_id = :org_id AND r.key_id = k.id AND r.status = s.status
    ) AS last) AS last_id,
    (SELECT COALESCE(SUM(cost), 0) FROM usage_slots
        WHERE org_id = :org_id AND key_id = k.id AND status = '' AND slot >= :day) AS today,
    (SELECT COALESCE(SUM(cost), 0) FROM usage_slots
        WHERE org_id = :org_id AND key_id = k.id AND status = '' AND slot >= :month) AS this_month
FROM json_array_elements_text(CAST(:ids AS json)) AS k (id);
