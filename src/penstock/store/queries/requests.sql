-- Request records: opened with the hold, closed with the settlement, listed by ranges of ids.

-- name: add_request
-- Open a record, or write one that was born rejected.
INSERT INTO requests (id, org_id, key_id, created_at_ms, model, modality, endpoint, status, hold, cost, duration_ms,
    error_code, error_message, session_id, trace_id, end_user, request_bytes, response_bytes)
VALUES (:id, :org_id, :key_id, :created_at_ms, :model, :modality, :endpoint, :status, :hold, :cost, :duration_ms,
    :error_code, :error_message, :session_id, :trace_id, :end_user, :request_bytes, :response_bytes);

-- name: add_ended_request
-- Write a record whose story is over; a second time changes nothing.
INSERT INTO requests (id, org_id, key_id, created_at_ms, model, modality, endpoint, status, hold, cost, duration_ms,
    error_code, error_message, session_id, trace_id, end_user, request_bytes, response_bytes)
VALUES (:id, :org_id, :key_id, :created_at_ms, :model, :modality, :endpoint, :status, :hold, :cost, :duration_ms,
    :error_code, :error_message, :session_id, :trace_id, :end_user, :request_bytes, :response_bytes)
ON CONFLICT (org_id, id) DO NOTHING;

-- name: start_request
-- Sent to a provider.
UPDATE requests SET status = 'processing' WHERE id = :id AND org_id = :org_id AND status = 'pending';

-- name: close_request
-- End a record once; a second end changes nothing.
UPDATE requests SET status = :status, cost = :cost, duration_ms = :duration_ms, error_code = :error_code,
    error_message = :error_message, response_bytes = :response_bytes
WHERE id = :id AND org_id = :org_id AND status IN ('pending', 'processing')
RETURNING key_id, created_at_ms, hold;

-- name: set_response_bytes
-- Size of the answer, known only after it was written.
UPDATE requests SET response_bytes = :response_bytes WHERE id = :id AND org_id = :org_id;

-- name: get_request
-- One record of an organization.
SELECT * FROM requests WHERE id = :id AND org_id = :org_id;

-- name: count_usages
-- Add ended requests to a slot.
INSERT INTO usage_slots (org_id, key_id, status, slot, count, cost)
VALUES (:org_id, :key_id, :status, :slot, :count, :cost)
ON CONFLICT (org_id, key_id, status, slot)
DO UPDATE SET count = usage_slots.count + excluded.count, cost = usage_slots.cost + excluded.cost;

-- name: sum_key_since
-- What a key spent in slots since one.
SELECT COALESCE(SUM(cost), 0) AS cost FROM usage_slots
WHERE org_id = :org_id AND key_id = :key_id AND status = '' AND slot >= :first;

-- name: sum_requests
-- Requests by key and status: the ended ones of whole slots from their counts, those under way and those of the edges
-- from their rows; in one statement, so that none ends between two looks.
SELECT CAST(:key_id AS TEXT) AS key_id, CAST(:status AS TEXT) AS status,
    COALESCE(SUM(count), 0) AS count, COALESCE(SUM(cost), 0) AS cost
FROM usage_slots
WHERE org_id = :org_id AND key_id = :key_id AND status = :status AND slot >= :first AND slot < :end
UNION ALL
SELECT key_id, status, COUNT(*) AS count, 0 AS cost FROM requests INDEXED BY requests_by_status
WHERE org_id = :org_id AND status IN ('pending', 'processing') AND id > :left AND id < :right GROUP BY key_id, status
UNION ALL
SELECT key_id, status, COUNT(*) AS count, SUM(cost) AS cost FROM requests
WHERE org_id = :org_id AND id > :low AND id < :left GROUP BY key_id, status
UNION ALL
SELECT key_id, status, COUNT(*) AS count, SUM(cost) AS cost FROM requests
WHERE org_id = :org_id AND id > :right AND id < :high GROUP BY key_id, status;

-- name: sum_range
-- Requests between two ids, by key and status, where no whole slot lies between.
SELECT key_id, status, COUNT(*) AS count, SUM(cost) AS cost FROM requests
WHERE org_id = :org_id AND id > :low AND id < :high GROUP BY key_id, status;

-- SQLite keeps no statistics here and would read the table in its own order; INDEXED BY tells it which index holds the
-- answer. Postgres is not told: the words are left out there.

-- name: list_{older|newer}_requests
-- A page {downwards|upwards} from an id.
SELECT * FROM requests WHERE org_id = :org_id AND id > :low AND id < :high
ORDER BY id {DESC|ASC} LIMIT :limit;

-- name: list_{older|newer}_requests_of_status
-- A page {downwards|upwards} among requests of one status.
SELECT * FROM requests INDEXED BY requests_by_status
WHERE org_id = :org_id AND status = :status AND id > :low AND id < :high
ORDER BY id {DESC|ASC} LIMIT :limit;

-- name: list_{older|newer}_requests_of_key_and_status
-- A page {downwards|upwards} among one key's requests of one status.
SELECT * FROM requests INDEXED BY requests_by_key_and_status
WHERE org_id = :org_id AND key_id = :key_id AND status = :status AND id > :low AND id < :high
ORDER BY id {DESC|ASC} LIMIT :limit;

-- name: list_{older|newer}_requests_of_key [sqlite]
-- A page {downwards|upwards} among one key's requests. SQLite merges ranges that are in order, and reads no further in
-- each than it must; out of one range of all statuses it would sort everything that the key ever asked for.
WITH of_key AS NOT MATERIALIZED (
    SELECT * FROM requests INDEXED BY requests_by_key_and_status
    WHERE org_id = :org_id AND key_id = :key_id AND id > :low AND id < :high
)
SELECT * FROM of_key WHERE status = 'completed'
UNION ALL SELECT * FROM of_key WHERE status = 'pending'
UNION ALL SELECT * FROM of_key WHERE status = 'processing'
UNION ALL SELECT * FROM of_key WHERE status = 'upstream_failure'
UNION ALL SELECT * FROM of_key WHERE status = 'rejected'
UNION ALL SELECT * FROM of_key WHERE status = 'cancelled'
ORDER BY id {DESC|ASC} LIMIT :limit;

-- name: list_{older|newer}_requests_of_key [postgres]
-- The same out of a page of each status, as Postgres would rather sort than merge.
SELECT of_key.* FROM (
    VALUES ('completed'), ('pending'), ('processing'), ('upstream_failure'), ('rejected'), ('cancelled')
) AS every (status) CROSS JOIN LATERAL (
    SELECT * FROM requests
    WHERE org_id = :org_id AND key_id = :key_id AND status = every.status AND id > :low AND id < :high
    ORDER BY id {DESC|ASC} LIMIT :limit
) AS of_key ORDER BY id {DESC|ASC} LIMIT :limit;

-- name: count_open_of_key
-- How many requests of a key are under way.
SELECT COUNT(*) AS count FROM requests INDEXED BY requests_by_key_and_status
WHERE org_id = :org_id AND key_id = :key_id AND status IN ('pending', 'processing');

-- name: sum_holds_of_key
-- What a key's open requests may still cost.
SELECT COALESCE(SUM(hold), 0) AS cost FROM requests INDEXED BY requests_by_key_and_status
WHERE org_id = :org_id AND key_id = :key_id AND status IN ('pending', 'processing');

-- name: count_recent_of_key
-- How many requests of a key were accepted since an id. Who is refused and keeps asking gets in again.
SELECT COUNT(*) AS count FROM requests INDEXED BY requests_by_key_and_status
WHERE org_id = :org_id AND key_id = :key_id AND id > :low
    AND status IN ('completed', 'pending', 'processing', 'upstream_failure', 'cancelled');

-- name: mark_purged
-- Remember that a request's payloads are gone.
UPDATE requests SET purged_at_ms = :at_ms, error_message = NULL
WHERE id = :id AND org_id = :org_id AND purged_at_ms IS NULL;

-- name: list_abandoned_requests
-- Open records without a generation, left by a process that died while it answered.
SELECT id, org_id, hold FROM requests
WHERE org_id = :org_id AND status IN ('pending', 'processing') AND id < :high
    AND id NOT IN (SELECT id FROM generations)
ORDER BY id LIMIT :limit;
