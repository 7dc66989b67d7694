-- What belongs to the requests of a page: attempts, outputs, messages, deliveries and the names of keys.
--
-- With the plus sign SQLite does not look the organization up in an index, which would read all of its rows.

-- name: list_attempts_of_requests [sqlite]
-- The attempts of generations, in the order in which candidates are tried.
SELECT id, request_id, round, count, provider, upstream_model, state, upstream_id, failure_kind, failure_message,
    http_status, created_at_ms, updated_at_ms
FROM attempts WHERE request_id IN (SELECT value FROM json_each(:ids)) AND org_id = :org_id
ORDER BY request_id, round, candidate, part;

-- name: list_attempts_of_requests [postgres]
-- The attempts of generations, in the order in which candidates are tried.
SELECT id, request_id, round, count, provider, upstream_model, state, upstream_id, failure_kind, failure_message,
    http_status, created_at_ms, updated_at_ms
FROM attempts WHERE request_id IN (SELECT json_array_elements_text(CAST(:ids AS json))) AND org_id = :org_id
ORDER BY request_id, round, candidate, part;

-- name: list_failed_chat_attempts [sqlite]
-- The failed attempts of chat calls, which are part of the request's row.
SELECT id, attempts FROM requests
WHERE id IN (SELECT value FROM json_each(:ids)) AND org_id = :org_id AND attempts IS NOT NULL;

-- name: list_failed_chat_attempts [postgres]
-- The failed attempts of chat calls, which are part of the request's row.
SELECT id, attempts FROM requests
WHERE id IN (SELECT json_array_elements_text(CAST(:ids AS json))) AND org_id = :org_id AND attempts IS NOT NULL;

-- name: list_outputs_of_requests [sqlite]
-- The outputs of requests that have not expired, in order.
SELECT id, request_id, content_type, size_bytes, width, height, revised_prompt, delivered, expires_at_ms,
    (SELECT credentials FROM seals WHERE seals.request_id = media.request_id AND seals.media_id = media.id
    ORDER BY created_at_ms DESC LIMIT 1) AS credentials
FROM media INDEXED BY media_by_request
WHERE request_id IN (SELECT value FROM json_each(:ids)) AND org_id = :org_id AND role = 'output' AND expires_at_ms > :now_ms
ORDER BY request_id, position;

-- name: list_outputs_of_requests [postgres]
-- The outputs of requests that have not expired, in order.
SELECT id, request_id, content_type, size_bytes, width, height, revised_prompt, delivered, expires_at_ms,
    (SELECT credentials FROM seals WHERE seals.request_id = media.request_id AND seals.media_id = media.id
    ORDER BY created_at_ms DESC LIMIT 1) AS credentials FROM media
WHERE request_id IN (SELECT json_array_elements_text(CAST(:ids AS json))) AND org_id = :org_id AND role = 'output' AND expires_at_ms > :now_ms
ORDER BY request_id, position;

-- name: list_credential_statuses [sqlite]
-- What became of the Content Credentials of the outputs of requests.
SELECT request_id, status FROM seals INDEXED BY seals_by_request
WHERE request_id IN (SELECT value FROM json_each(:ids)) AND org_id = :org_id AND status IS NOT NULL;

-- name: list_credential_statuses [postgres]
-- What became of the Content Credentials of the outputs of requests.
SELECT request_id, status FROM seals
WHERE request_id IN (SELECT json_array_elements_text(CAST(:ids AS json))) AND org_id = :org_id AND status IS NOT NULL;

-- name: list_messages_of_requests [sqlite]
-- The webhook messages of requests.
SELECT id, org_id, request_id, event, url, state, deliveries, last_result, next_at_ms, created_at_ms, ended_at_ms
FROM messages WHERE request_id IN (SELECT value FROM json_each(:ids)) AND +org_id = :org_id;

-- name: list_messages_of_requests [postgres]
-- The webhook messages of requests.
SELECT id, org_id, request_id, event, url, state, deliveries, last_result, next_at_ms, created_at_ms, ended_at_ms
FROM messages WHERE request_id IN (SELECT json_array_elements_text(CAST(:ids AS json))) AND org_id = :org_id;

-- name: list_deliveries_of_messages [sqlite]
-- The tries to deliver messages, oldest first.
SELECT message_id, number, started_at_ms, ended_at_ms, http_status, result FROM deliveries
WHERE message_id IN (SELECT value FROM json_each(:ids)) ORDER BY message_id, number;

-- name: list_deliveries_of_messages [postgres]
-- The tries to deliver messages, oldest first.
SELECT message_id, number, started_at_ms, ended_at_ms, http_status, result FROM deliveries
WHERE message_id IN (SELECT json_array_elements_text(CAST(:ids AS json))) ORDER BY message_id, number;

-- name: list_progress_of_requests [sqlite]
-- How far unfinished generations are, in percent.
SELECT id, status, progress FROM generations WHERE id IN (SELECT value FROM json_each(:ids)) AND +org_id = :org_id;

-- name: list_progress_of_requests [postgres]
-- How far unfinished generations are, in percent.
SELECT id, status, progress FROM generations WHERE id IN (SELECT json_array_elements_text(CAST(:ids AS json))) AND org_id = :org_id;

-- name: list_prompts_of_requests
-- The beginnings of the prompts of requests that are stored.
SELECT told.id, substr(told.prompt, 1, 300) AS prompt FROM (
    SELECT generations.id,
        {generation_prompt}
        AS prompt
-- [sqlite]
    FROM generations WHERE generations.id IN (SELECT value FROM json_each(:ids)) AND +generations.org_id = :org_id
    UNION ALL
    SELECT payloads.request_id, payloads.prompt FROM payloads
    WHERE payloads.org_id = :org_id AND payloads.request_id IN (SELECT value FROM json_each(:ids))
-- [postgres]
    FROM generations WHERE generations.id IN (SELECT json_array_elements_text(CAST(:ids AS json)))
        AND generations.org_id = :org_id
    UNION ALL
    SELECT payloads.request_id, payloads.prompt FROM payloads
    WHERE payloads.org_id = :org_id AND payloads.request_id IN (SELECT json_array_elements_text(CAST(:ids AS json)))
-- [both]
) AS told WHERE told.prompt IS NOT NULL;

-- name: list_names_of_keys [sqlite]
-- The names of keys, and of the people who made them.
SELECT keys.id, keys.name, CASE WHEN keys.kind IS NULL THEN COALESCE(users.name, users.email) END AS owner_name
FROM keys LEFT JOIN users ON users.id = keys.user_id
WHERE keys.id IN (SELECT value FROM json_each(:ids)) AND keys.org_id = :org_id;

-- name: list_names_of_keys [postgres]
-- The names of keys, and of the people who made them.
SELECT keys.id, keys.name, CASE WHEN keys.kind IS NULL THEN COALESCE(users.name, users.email) END AS owner_name
FROM keys LEFT JOIN users ON users.id = keys.user_id
WHERE keys.id IN (SELECT json_array_elements_text(CAST(:ids AS json))) AND keys.org_id = :org_id;

-- name: list_examples_of_models [sqlite]
-- The first output of the newest request of each model that still has one.
SELECT m.value AS model, f.id, f.request_id, f.content_type, f.width, f.height, f.expires_at_ms
FROM json_each(:ids) AS m JOIN media AS f ON f.id = (
    SELECT f.id FROM requests AS r INDEXED BY requests_by_model JOIN media AS f ON f.request_id = r.id AND f.role = 'output'
    WHERE r.org_id = :org_id AND r.model = m.value AND r.status = 'completed' AND f.expires_at_ms > :now_ms
    ORDER BY r.id DESC, f.position LIMIT 1
)
WHERE +f.org_id = :org_id;

-- name: list_examples_of_models [postgres]
-- The first output of the newest request of each model that still has one.
SELECT m.value AS model, f.id, f.request_id, f.content_type, f.width, f.height, f.expires_at_ms
FROM json_array_elements_text(CAST(:ids AS json)) AS m (value) JOIN media AS f ON f.id = (
    SELECT f.id FROM requests AS r JOIN media AS f ON f.request_id = r.id AND f.role = 'output'
    WHERE r.org_id = :org_id AND r.model = m.value AND r.status = 'completed' AND f.expires_at_ms > :now_ms
    ORDER BY r.id DESC, f.position LIMIT 1
)
WHERE f.org_id = :org_id;
