-- Images and videos on their way. Whoever drives one holds its lease; every write of a driver names the lease's token.

-- name: add_generation
-- Promise a generation; a key that was used before makes this insert nothing.
INSERT INTO generations (id, org_id, task, status, model, request, plan, hold, created_at_ms, deadline_ms,
    retention_seconds, webhook_url, idempotency_key, body_digest, lease_token, lease_until_ms)
VALUES (:id, :org_id, :task, 'queued', :model, :request, :plan, :hold, :created_at_ms, :deadline_ms,
    :retention_seconds, :webhook_url, :idempotency_key, :body_digest, :lease_token, :lease_until_ms);

-- name: get_generation
-- One generation of an organization.
SELECT * FROM generations WHERE id = :id AND org_id = :org_id;

-- name: get_generation_status
-- Where a generation stands, for who would drive it; a lease that was not given back is a driver lost.
SELECT status, crashes + CASE WHEN lease_until_ms > 0 THEN 1 ELSE 0 END AS crashes FROM generations WHERE id = :id;

-- name: get_generation_by_key
-- The generation that first used an idempotency key.
SELECT * FROM generations WHERE org_id = :org_id AND idempotency_key = :idempotency_key;

-- name: list_{older|newer}_generations
-- A page of videos {downwards|upwards} from an id.
SELECT * FROM generations WHERE org_id = :org_id AND task = 'video' AND id > :low AND id < :high
ORDER BY id {DESC|ASC} LIMIT :limit;

-- name: list_free_generations
-- Unfinished generations that nobody drives, from an id on; a lease that was not given back is a driver lost.
SELECT id, crashes + CASE WHEN lease_until_ms > 0 THEN 1 ELSE 0 END AS crashes FROM generations
WHERE status IN ('queued', 'in_progress') AND lease_until_ms < :now_ms AND id > :after ORDER BY id LIMIT :limit;

-- name: claim_generations [sqlite]
-- Take unfinished generations that nobody drives; the new token shuts out whoever drove one before, and a lease that was
-- not given back counts as a crash.
UPDATE generations SET lease_token = lease_token + 1, lease_until_ms = :until_ms,
    crashes = crashes + CASE WHEN lease_until_ms > 0 THEN 1 ELSE 0 END
WHERE id IN (SELECT value FROM json_each(:ids)) AND status IN ('queued', 'in_progress') AND lease_until_ms < :now_ms
RETURNING id, lease_token, crashes;

-- name: claim_generations [postgres]
-- Take unfinished generations that nobody drives; the new token shuts out whoever drove one before, and a lease that was
-- not given back counts as a crash. In the order of their ids, so that two who claim do not wait for each other in turn.
WITH free AS MATERIALIZED (
    SELECT id FROM generations
    WHERE id IN (SELECT json_array_elements_text(CAST(:ids AS json)))
        AND status IN ('queued', 'in_progress') AND lease_until_ms < :now_ms
    ORDER BY id FOR UPDATE
)
UPDATE generations SET lease_token = lease_token + 1, lease_until_ms = :until_ms,
    crashes = crashes + CASE WHEN lease_until_ms > 0 THEN 1 ELSE 0 END
FROM free WHERE generations.id = free.id
RETURNING generations.id, lease_token, crashes;

-- name: renew_leases [sqlite]
-- Still at it; those whose lease was taken over, or that have ended, are missing from the answer.
UPDATE generations SET lease_until_ms = :until_ms FROM json_each(:leases) AS one
WHERE generations.id = one.value ->> 0 AND generations.lease_token = one.value ->> 1
    AND generations.status IN ('queued', 'in_progress')
RETURNING generations.id;

-- name: renew_leases [postgres]
-- Still at it; those whose lease was taken over, or that have ended, are missing from the answer.
UPDATE generations SET lease_until_ms = :until_ms FROM json_array_elements(CAST(:leases AS json)) AS one
WHERE generations.id = one ->> 0 AND generations.lease_token = CAST(one ->> 1 AS BIGINT)
    AND generations.status IN ('queued', 'in_progress')
RETURNING generations.id;

-- name: list_fenced [sqlite]
-- Of these leases, those that somebody else has taken over.
SELECT generations.id FROM json_each(:leases) AS one
JOIN generations ON generations.id = one.value ->> 0 WHERE generations.lease_token <> one.value ->> 1;

-- name: list_fenced [postgres]
-- Of these leases, those that somebody else has taken over.
SELECT generations.id FROM json_array_elements(CAST(:leases AS json)) AS one
JOIN generations ON generations.id = one ->> 0 WHERE generations.lease_token <> CAST(one ->> 1 AS BIGINT);

-- name: release_lease
-- Stopped in good order: whoever comes next need not wait, and sees that it was no crash.
UPDATE generations SET lease_until_ms = 0
WHERE id = :id AND lease_token = :lease_token AND status IN ('queued', 'in_progress');

-- name: hold_lease
-- Whether a driver still drives, checked inside its transaction; what moves it on counts past crashes as survived.
UPDATE generations SET crashes = CASE WHEN :moves = 1 THEN 0 ELSE crashes END
WHERE id = :id AND lease_token = :lease_token AND status IN ('queued', 'in_progress');

-- name: show_progress
-- A provider works on it.
UPDATE generations SET status = 'in_progress', progress = :progress
WHERE id = :id AND lease_token = :lease_token AND status IN ('queued', 'in_progress');

-- name: complete_generation
-- The one good end.
UPDATE generations SET status = 'completed', result = :result, completed_at_ms = :at_ms,
    expires_at_ms = :expires_at_ms, progress = 100, lease_until_ms = 0
WHERE id = :id AND lease_token = :lease_token AND status IN ('queued', 'in_progress');

-- name: fail_generation
-- The one bad end.
UPDATE generations SET status = 'failed', error_code = :error_code, error_message = :error_message,
    completed_at_ms = NULL, lease_until_ms = 0
WHERE id = :id AND lease_token = :lease_token AND status IN ('queued', 'in_progress');

-- name: request_cancel
-- Leave word for the driver; returns the generation while it is unfinished.
UPDATE generations SET cancel_requested = 1
WHERE id = :id AND org_id = :org_id AND status IN ('queued', 'in_progress')
RETURNING *;

-- name: take_for_cancel
-- Shut the driver out of something that was not sent anywhere yet.
UPDATE generations SET lease_token = lease_token + 1, lease_until_ms = 0
WHERE id = :id AND status IN ('queued', 'in_progress')
RETURNING lease_token;

-- name: is_cancel_requested
-- Whether somebody left word.
SELECT cancel_requested FROM generations WHERE id = :id;

-- name: add_attempt
-- Intent, before anything is sent.
INSERT INTO attempts (id, request_id, org_id, part, candidate, count, provider, state, created_at_ms, updated_at_ms)
VALUES (:id, :request_id, :org_id, :part, :candidate, :count, :provider, 'intent', :at_ms, :at_ms);

-- name: set_attempt
-- What became of an attempt; an ended one stays as it is.
UPDATE attempts SET state = :state, upstream_id = COALESCE(:upstream_id, upstream_id), ref = COALESCE(:ref, ref),
    failure_kind = :failure_kind, failure_message = :failure_message, cost = :cost, updated_at_ms = :at_ms
WHERE id = :id AND state IN ('intent', 'submitted');

-- name: list_attempts
-- Everything that was tried for a generation, in order.
SELECT * FROM attempts WHERE request_id = :request_id ORDER BY id;

-- name: get_attempt
-- One attempt, for whoever proved to know of it.
SELECT id, request_id FROM attempts WHERE id = :id;

-- name: get_attempt_by_upstream_id
-- The attempt that a provider knows under this name.
SELECT id, request_id FROM attempts WHERE provider = :provider AND upstream_id = :upstream_id;

-- name: count_sent_attempts
-- How many attempts may be known to a provider.
SELECT COUNT(*) AS count FROM attempts WHERE request_id = :request_id AND state IN ('intent', 'submitted', 'completed');

-- name: purge_generation
-- Forget what was asked and what was said; keep when, how long and how much.
UPDATE generations SET request = NULL, result = :result, error_message = NULL WHERE id = :id AND org_id = :org_id;

-- name: purge_attempts
-- Providers' words may quote the request.
UPDATE attempts SET failure_message = NULL, ref = NULL, check_at_ms = NULL
WHERE request_id = :request_id AND org_id = :org_id;

-- name: get_driven_generation
-- The generation of a driver that still holds its lease.
SELECT * FROM generations
WHERE id = :id AND lease_token = :lease_token AND status IN ('queued', 'in_progress');
