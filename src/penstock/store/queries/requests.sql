-- Requests: added with the hold, closed with its capture or release, listed by ranges of ids.

-- part: request_columns
-- What RequestRow has.
    requests.org_id, requests.id, requests.key_id, requests.created_at_ms, requests.model, requests.modality,
    requests.endpoint, requests.status, requests.hold, requests.cost, requests.duration_ms, requests.error_code,
    requests.error_message, requests.session_id, requests.trace_id, requests.end_user, requests.request_bytes,
    requests.response_bytes, requests.purged_at_ms, requests.process_id, requests.kind, requests.provider,
    requests.upstream_model, requests.input_tokens, requests.cached_tokens, requests.output_tokens,
    requests.cost_lines, requests.attempts, requests.labels, requests.account_id, requests.vendor_cost, requests.drill

-- name: add_request
-- Add a request, accepted or rejected.
INSERT INTO requests (id, org_id, key_id, created_at_ms, model, modality, endpoint, status, hold, cost, duration_ms,
    error_code, error_message, session_id, trace_id, end_user, request_bytes, response_bytes, process_id, kind,
    provider, upstream_model, account_id, labels, drill)
VALUES (:id, :org_id, :key_id, :created_at_ms, :model, :modality, :endpoint, :status, :hold, :cost, :duration_ms,
    :error_code, :error_message, :session_id, :trace_id, :end_user, :request_bytes, :response_bytes, :process_id, :kind,
    :provider, :upstream_model, :account_id, :labels, :drill);

-- name: add_ended_request
-- Add a request that has ended already. Changes nothing the second time.
INSERT INTO requests (id, org_id, key_id, created_at_ms, model, modality, endpoint, status, hold, cost, duration_ms,
    error_code, error_message, session_id, trace_id, end_user, request_bytes, response_bytes, kind, provider,
    upstream_model, account_id, vendor_cost, input_tokens, cached_tokens, output_tokens, cost_lines, attempts, labels, drill)
VALUES (:id, :org_id, :key_id, :created_at_ms, :model, :modality, :endpoint, :status, :hold, :cost, :duration_ms,
    :error_code, :error_message, :session_id, :trace_id, :end_user, :request_bytes, :response_bytes, :kind, :provider,
    :upstream_model, :account_id, :vendor_cost, :input_tokens, :cached_tokens, :output_tokens, :cost_lines, :attempts, :labels, :drill)
ON CONFLICT (org_id, id) DO NOTHING;

-- name: list_stored_requests [sqlite]
-- Which of these ids have a request.
SELECT id FROM requests WHERE org_id = :org_id AND id IN (SELECT value FROM json_each(:ids));

-- name: list_stored_requests [postgres]
-- Which of these ids have a request.
SELECT id FROM requests
WHERE org_id = :org_id AND id IN (SELECT json_array_elements_text(CAST(:ids AS json)));

-- name: list_ended_chats
-- How the newest chat calls of an organization since an id ended, but not those that asked for faults.
SELECT provider, upstream_model, status, output_tokens, attempts, created_at_ms, duration_ms FROM requests
WHERE org_id = :org_id AND id >= :low AND kind = 'chat' AND status IN ('completed', 'upstream_failure')
    AND drill IS NULL
ORDER BY id DESC LIMIT :limit;

-- name: list_completed_with_plans
-- A page of the requests of an organization that providers completed, upwards from an id, with the plans of generations;
-- but not those that asked for faults.
SELECT requests.id, requests.kind, requests.model, requests.provider, requests.upstream_model, requests.cost,
    requests.duration_ms, requests.created_at_ms, requests.input_tokens, requests.cached_tokens, requests.output_tokens,
    generations.plan
FROM requests LEFT JOIN generations ON generations.id = requests.id
WHERE requests.org_id = :org_id AND requests.id > :low AND requests.id < :high AND requests.status = 'completed'
    AND requests.drill IS NULL AND requests.provider IS NOT NULL AND requests.model IS NOT NULL
    AND requests.kind IS NOT NULL AND requests.duration_ms IS NOT NULL
ORDER BY requests.id LIMIT :limit;

-- name: start_request
-- Mark a request as sent to a provider: to its first one, or after a failure to the next.
UPDATE requests SET status = 'processing', provider = :provider, upstream_model = :upstream_model,
    account_id = :account_id
WHERE id = :id AND org_id = :org_id AND status IN ('pending', 'processing');

-- name: end_request
-- End a request. Changes nothing the second time. A video has the size of its response already.
UPDATE requests SET status = :status, cost = :cost, duration_ms = :duration_ms, error_code = :error_code,
    error_message = :error_message, response_bytes = COALESCE(:response_bytes, response_bytes),
    provider = COALESCE(:provider, provider), upstream_model = COALESCE(:upstream_model, upstream_model),
    account_id = CASE WHEN CAST(:provider AS TEXT) IS NULL THEN account_id ELSE :account_id END,
    vendor_cost = :vendor_cost, input_tokens = :input_tokens, cached_tokens = :cached_tokens, output_tokens = :output_tokens,
    cost_lines = :cost_lines, attempts = :attempts
WHERE id = :id AND org_id = :org_id AND status IN ('pending', 'processing')
RETURNING key_id, created_at_ms, hold, labels, account_id;

-- name: end_generation_request
-- End the request of a generation; like `end_request`, but together with those of others.
UPDATE requests SET status = :status, cost = :cost, duration_ms = :duration_ms, error_code = :error_code,
    error_message = :error_message, response_bytes = COALESCE(:response_bytes, response_bytes),
    provider = COALESCE(:provider, provider), upstream_model = COALESCE(:upstream_model, upstream_model),
    account_id = CASE WHEN CAST(:provider AS TEXT) IS NULL THEN account_id ELSE :account_id END,
    vendor_cost = :vendor_cost, input_tokens = :input_tokens, cached_tokens = :cached_tokens, output_tokens = :output_tokens,
    cost_lines = :cost_lines, attempts = :attempts
WHERE id = :id AND org_id = :org_id AND status IN ('pending', 'processing');

-- name: set_response_bytes
-- Set the size of the response, which is known only after it was sent.
UPDATE requests SET response_bytes = :response_bytes WHERE id = :id AND org_id = :org_id;

-- name: get_request
-- One request of an organization.
SELECT {request_columns} FROM requests WHERE id = :id AND org_id = :org_id;

-- name: add_usage
-- Add ended requests to a usage slot.
INSERT INTO usage_slots (org_id, key_id, status, slot, count, cost)
VALUES (:org_id, :key_id, :status, :slot, :count, :cost)
ON CONFLICT (org_id, key_id, status, slot)
DO UPDATE SET count = usage_slots.count + excluded.count, cost = usage_slots.cost + excluded.cost;

-- name: sum_requests
-- Number and cost of requests by key and status. Ended requests of whole slots are read from the slots; unfinished
-- requests, and those before the first and after the last whole slot, from their rows. One statement, so that no
-- request is counted twice or missed when it ends meanwhile.
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
-- Number and cost of requests between two ids by key and status, for ranges without a whole slot.
SELECT key_id, status, COUNT(*) AS count, SUM(cost) AS cost FROM requests
WHERE org_id = :org_id AND id > :low AND id < :high GROUP BY key_id, status;

-- SQLite has no statistics here and would choose the wrong index, so INDEXED BY names the right one. The words are
-- removed for Postgres.

-- name: list_{older|newer}_requests
-- A page {downwards|upwards} from an id.
SELECT {request_columns} FROM requests WHERE org_id = :org_id AND id > :low AND id < :high
ORDER BY id {DESC|ASC} LIMIT :limit;

-- name: list_{older|newer}_requests_of_status
-- A page {downwards|upwards} from an id, of one status.
SELECT {request_columns} FROM requests INDEXED BY requests_by_status
WHERE org_id = :org_id AND status = :status AND id > :low AND id < :high
ORDER BY id {DESC|ASC} LIMIT :limit;

-- name: list_{older|newer}_requests_of_key_and_status
-- A page {downwards|upwards} from an id, of one key and status.
SELECT {request_columns} FROM requests INDEXED BY requests_by_key_and_status
WHERE org_id = :org_id AND key_id = :key_id AND status = :status AND id > :low AND id < :high
ORDER BY id {DESC|ASC} LIMIT :limit;

-- name: list_{older|newer}_requests_of_key [sqlite]
-- A page {downwards|upwards} from an id, of one key. SQLite merges the sorted ranges and stops after the page; from one
-- range over all statuses it would sort all requests of the key.
WITH of_key AS NOT MATERIALIZED (
    SELECT {request_columns} FROM requests INDEXED BY requests_by_key_and_status
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
-- The same from a page per status, because Postgres sorts where SQLite merges.
SELECT of_key.* FROM (
    VALUES ('completed'), ('pending'), ('processing'), ('upstream_failure'), ('rejected'), ('cancelled')
) AS every (status) CROSS JOIN LATERAL (
    SELECT {request_columns} FROM requests
    WHERE org_id = :org_id AND key_id = :key_id AND status = every.status AND id > :low AND id < :high
    ORDER BY id {DESC|ASC} LIMIT :limit
) AS of_key ORDER BY id {DESC|ASC} LIMIT :limit;

-- part: filters
-- What callers may filter by; a null parameter does not filter. A condition that a query has anyway does no harm.
AND (CAST(:key_id AS TEXT) IS NULL OR requests.key_id = :key_id)
AND (CAST(:status AS TEXT) IS NULL OR requests.status = :status)
AND (CAST(:model AS TEXT) IS NULL OR requests.model = :model)
AND (CAST(:provider AS TEXT) IS NULL OR requests.provider = :provider)
AND (CAST(:kind AS TEXT) IS NULL OR requests.kind = :kind)
AND (CAST(:end_user AS TEXT) IS NULL OR requests.end_user = :end_user)
AND (CAST(:session_id AS TEXT) IS NULL OR requests.session_id = :session_id)
AND (CAST(:has_label AS TEXT) IS NULL OR replace(requests.labels, :has_label, '') <> requests.labels)
AND (CAST(:has_second AS TEXT) IS NULL OR replace(requests.labels, :has_second, '') <> requests.labels)
AND (CAST(:content_credentials AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM seals
    WHERE seals.request_id = requests.id AND seals.org_id = :org_id AND seals.status = :content_credentials))
AND (CAST(:search AS TEXT) IS NULL OR replace(requests.id, :search, '') <> requests.id
    OR replace(requests.end_user, :search, '') <> requests.end_user OR replace(requests.session_id, :search, '') <> requests.session_id
    OR CAST(:words AS TEXT) IS NOT NULL AND EXISTS (SELECT 1 FROM (
        SELECT
            {generation_prompt}
            AS prompt
        FROM generations WHERE generations.id = requests.id AND generations.org_id = :org_id
        UNION ALL
        SELECT payloads.prompt FROM payloads
        WHERE payloads.org_id = :org_id AND payloads.request_id = requests.id
    ) AS told WHERE NOT EXISTS (
        {missing_word}
    )))

-- name: list_{older|newer}_requests_of_user
-- A page {downwards|upwards} from an id, of one end user; other filters may be added.
SELECT {request_columns} FROM requests INDEXED BY requests_by_user
WHERE org_id = :org_id AND end_user = :end_user AND id > :low AND id < :high
    {filters}
ORDER BY id {DESC|ASC} LIMIT :limit;

-- name: list_{older|newer}_requests_of_session
-- A page {downwards|upwards} from an id, of one session; other filters may be added.
SELECT {request_columns} FROM requests INDEXED BY requests_by_session
WHERE org_id = :org_id AND session_id = :session_id AND id > :low AND id < :high
    {filters}
ORDER BY id {DESC|ASC} LIMIT :limit;

-- name: list_{older|newer}_requests_of_label
-- A page {downwards|upwards} from an id, of one value of a label; other filters, also by labels, may be added.
SELECT {request_columns} FROM request_labels AS l
CROSS JOIN requests
WHERE l.org_id = :org_id AND l.name = :label_name AND l.value = :label_value
    AND l.request_id > :low AND l.request_id < :high
    AND requests.org_id = :org_id AND requests.id = l.request_id
    {filters}
ORDER BY l.request_id {DESC|ASC} LIMIT :limit;

-- name: list_{older|newer}_requests_of_credentials
-- A page {downwards|upwards} from an id, of requests with an output whose Content Credentials have a status; other
-- filters may be added.
SELECT
    {request_columns}
FROM (
    SELECT s.request_id FROM seals AS s
    WHERE s.org_id = :org_id AND s.status = :content_credentials AND s.request_id > :low AND s.request_id < :high
        AND NOT EXISTS (SELECT 1 FROM seals AS other
            WHERE other.org_id = :org_id AND other.status = :content_credentials AND other.request_id = s.request_id
            AND (other.media_id, other.sha256) < (s.media_id, s.sha256))
) AS found
CROSS JOIN requests
WHERE requests.org_id = :org_id AND requests.id = found.request_id
    {filters}
ORDER BY found.request_id {DESC|ASC} LIMIT :limit;

-- name: list_{older|newer}_requests_of_model
-- A page {downwards|upwards} from an id, of one model; other filters may be added.
SELECT {request_columns} FROM requests INDEXED BY requests_by_model
WHERE org_id = :org_id AND model = :model AND id > :low AND id < :high
    {filters}
ORDER BY id {DESC|ASC} LIMIT :limit;

-- name: list_{older|newer}_requests_of_provider
-- A page {downwards|upwards} from an id, of one provider; other filters may be added.
SELECT {request_columns} FROM requests INDEXED BY requests_by_provider
WHERE org_id = :org_id AND provider = :provider AND id > :low AND id < :high
    {filters}
ORDER BY id {DESC|ASC} LIMIT :limit;

-- name: list_{older|newer}_requests_of_kind
-- A page {downwards|upwards} from an id, of one kind other than chat, which has no index; other filters may be added.
SELECT {request_columns} FROM requests INDEXED BY requests_by_kind
WHERE org_id = :org_id AND kind = :kind AND kind <> 'chat' AND id > :low AND id < :high
    {filters}
ORDER BY id {DESC|ASC} LIMIT :limit;

-- name: list_{older|newer}_requests_matching
-- A page {downwards|upwards} from an id, with any filters.
SELECT {request_columns} FROM requests
WHERE org_id = :org_id AND id > :low AND id < :high
    {filters}
ORDER BY id {DESC|ASC} LIMIT :limit;

-- name: sum_matching_requests
-- Number and cost of the requests between two ids that match the filters.
SELECT COUNT(*) AS count, COALESCE(SUM(cost), 0) AS cost FROM requests
WHERE org_id = :org_id AND id > :low AND id < :high
    {filters};

-- name: count_open_of_key
-- Number of a key's unfinished requests.
SELECT COUNT(*) AS count FROM requests INDEXED BY requests_by_key_and_status
WHERE org_id = :org_id AND key_id = :key_id AND status IN ('pending', 'processing');

-- name: sum_spend_of_key
-- What a key spent since two slots, those included, and what is held for its unfinished requests. One statement: a
-- request that ends between two would be in neither sum.
SELECT
    (SELECT COALESCE(SUM(cost), 0) FROM usage_slots
        WHERE org_id = :org_id AND key_id = :key_id AND status = '' AND slot >= :day) AS today,
    (SELECT COALESCE(SUM(cost), 0) FROM usage_slots
        WHERE org_id = :org_id AND key_id = :key_id AND status = '' AND slot >= :month) AS this_month,
    (SELECT COALESCE(SUM(hold), 0) FROM requests INDEXED BY requests_by_key_and_status
        WHERE org_id = :org_id AND key_id = :key_id AND status IN ('pending', 'processing')) AS held;

-- name: count_recent_of_key
-- Number of a key's accepted requests since an id. Rejected calls do not count against the limit.
SELECT COUNT(*) AS count FROM requests INDEXED BY requests_by_key_and_status
WHERE org_id = :org_id AND key_id = :key_id AND id > :low
    AND status IN ('completed', 'pending', 'processing', 'upstream_failure', 'cancelled');

-- name: mark_purged
-- Mark a request as purged, and remove its error message and those of its attempts.
UPDATE requests SET purged_at_ms = :at_ms, error_message = NULL, attempts = :attempts
WHERE id = :id AND org_id = :org_id AND purged_at_ms IS NULL;

-- name: list_requests_of_process
-- Unfinished requests that a process handles.
SELECT id, org_id, hold FROM requests INDEXED BY requests_by_status
WHERE org_id = :org_id AND status IN ('pending', 'processing') AND process_id = :process_id
ORDER BY id LIMIT :limit;

-- name: find_request_elsewhere
-- An unfinished request that another process handles.
SELECT id FROM requests INDEXED BY requests_by_status
WHERE org_id = :org_id AND status IN ('pending', 'processing') AND process_id <> :process_id
LIMIT 1;

-- name: get_time [postgres only]
-- The time of the database.
SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS now_ms;

-- name: renew_process
-- Renew the lease of a process, or add the process.
INSERT INTO processes (id, lease_until_ms) VALUES (:id, :until_ms)
ON CONFLICT (id) DO UPDATE SET lease_until_ms = excluded.lease_until_ms;

-- name: list_dead_processes
-- Processes whose lease has expired.
SELECT id FROM processes WHERE lease_until_ms < :now_ms ORDER BY id;

-- name: remove_process
-- Remove a process whose lease has expired.
DELETE FROM processes WHERE id = :id AND lease_until_ms < :now_ms;

-- name: list_abandoned_requests
-- Unfinished requests without a generation, from a process that is gone. A living one may have another clock, and so ids
-- of another time.
SELECT id, org_id, hold FROM requests INDEXED BY requests_by_status
WHERE org_id = :org_id AND status IN ('pending', 'processing') AND id < :high
    AND id NOT IN (SELECT id FROM generations)
    AND (process_id IS NULL OR process_id NOT IN (SELECT id FROM processes))
ORDER BY id LIMIT :limit;
