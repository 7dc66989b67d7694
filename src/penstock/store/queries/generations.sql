-- Generations and their attempts. A worker leases a generation to run it; each of its writes names the lease's token.

-- part: attempt_columns
-- What AttemptRow has.
    attempts.id, attempts.request_id, attempts.org_id, attempts.round, attempts.part, attempts.candidate,
    attempts.count, attempts.provider, attempts.upstream_model, attempts.state, attempts.upstream_id, attempts.ref,
    attempts.failure_kind, attempts.failure_message, attempts.http_status, attempts.cost, attempts.check_at_ms,
    attempts.checks, attempts.created_at_ms, attempts.updated_at_ms, attempts.account_id

-- part: generation_columns
-- What GenerationRow has.
    generations.id, generations.org_id, generations.task, generations.status, generations.model,
    generations.request, generations.plan, generations.result, generations.hold, generations.created_at_ms,
    generations.deadline_ms, generations.completed_at_ms, generations.expires_at_ms, generations.retention_seconds,
    generations.webhook_url, generations.idempotency_key, generations.body_digest, generations.error_code,
    generations.error_message, generations.progress, generations.cancel_requested, generations.lease_token,
    generations.lease_until_ms, generations.crashes, generations.payload_expires_at_ms, generations.trace_context

-- part: generation_prompt
-- The text of a stored request, as long as it is stored.
-- [sqlite]
    COALESCE(json_extract(CAST(generations.request AS TEXT), '$.values.prompt'),
        json_extract(CAST(generations.request AS TEXT), '$.values.input'))
-- [postgres]
    COALESCE(CAST(convert_from(generations.request, 'UTF8') AS json) #>> '{values,prompt}',
        CAST(convert_from(generations.request, 'UTF8') AS json) #>> '{values,input}')
-- [both]

-- part: missing_word
-- A word of a search that is in none of its forms in a prompt.
-- [sqlite]
    SELECT 1 FROM json_each(:words) AS word WHERE NOT EXISTS (
        SELECT 1 FROM json_each(word.value) AS form WHERE instr(lower(told.prompt), form.value) > 0
-- [postgres]
    SELECT 1 FROM json_array_elements(CAST(:words AS json)) AS word (forms) WHERE NOT EXISTS (
        SELECT 1 FROM json_array_elements_text(word.forms) AS form (text) WHERE strpos(lower(told.prompt), form.text) > 0
-- [both]
    )

-- name: add_generation
-- Add an accepted generation. Fails with a unique violation when the idempotency key was used before.
INSERT INTO generations (id, org_id, task, status, model, request, plan, hold, created_at_ms, deadline_ms,
    retention_seconds, webhook_url, idempotency_key, body_digest, lease_token, lease_until_ms, trace_context)
VALUES (:id, :org_id, :task, 'queued', :model, :request, :plan, :hold, :created_at_ms, :deadline_ms,
    :retention_seconds, :webhook_url, :idempotency_key, :body_digest, :lease_token, :lease_until_ms,
    :trace_context);

-- name: get_generation
-- One generation of an organization.
SELECT {generation_columns} FROM generations WHERE id = :id AND org_id = :org_id;

-- name: get_generation_status
-- Status, end of the lease and crashes of a generation. A lease that was not given back counts as one more crash.
SELECT status, lease_until_ms, crashes + CASE WHEN lease_until_ms > 0 THEN 1 ELSE 0 END AS crashes FROM generations WHERE id = :id;

-- name: get_generation_by_key
-- The generation that first used an idempotency key; a purge leaves another text in its place.
SELECT {generation_columns} FROM generations
WHERE org_id = :org_id AND idempotency_key IN (:idempotency_key, :purged_key);

-- name: list_{older|newer}_generations
-- A page of videos {downwards|upwards} from an id, with the columns that a list shows. The plan is shown until there is
-- a result.
SELECT id, status, model, request, CASE WHEN result IS NULL THEN plan END AS plan, result, created_at_ms,
    completed_at_ms, expires_at_ms, error_code, error_message, progress
FROM generations WHERE org_id = :org_id AND task = 'video' AND id > :low AND id < :high
ORDER BY id {DESC|ASC} LIMIT :limit;

-- name: list_{older|newer}_sounds
-- A page of sounds {downwards|upwards} from an id, with the columns that a list shows. The plan is shown until there is
-- a result.
SELECT id, status, model, request, CASE WHEN result IS NULL THEN plan END AS plan, result, created_at_ms,
    completed_at_ms, expires_at_ms, error_code, error_message, progress
FROM generations WHERE org_id = :org_id AND task IN ('speech', 'sound') AND id > :low AND id < :high
ORDER BY id {DESC|ASC} LIMIT :limit;

-- name: list_{older|newer}_transcripts
-- A page of transcripts {downwards|upwards} from an id, with the columns that a list shows. The plan is shown until there is
-- a result.
SELECT id, status, model, request, CASE WHEN result IS NULL THEN plan END AS plan, result, created_at_ms,
    completed_at_ms, expires_at_ms, error_code, error_message, progress
FROM generations WHERE org_id = :org_id AND task IN ('transcription', 'translation') AND id > :low AND id < :high
ORDER BY id {DESC|ASC} LIMIT :limit;

-- name: count_open_generations
-- Number of unfinished generations in each status, and when the oldest was accepted.
SELECT status, COUNT(*) AS count, MIN(created_at_ms) AS oldest_at_ms FROM generations
WHERE status IN ('queued', 'in_progress') GROUP BY status;

-- part: by_org
    SELECT id, lease_until_ms, crashes + CASE WHEN lease_until_ms > 0 THEN 1 ELSE 0 END AS crashes,
        ROW_NUMBER() OVER (PARTITION BY org_id ORDER BY lease_until_ms < :now_ms, crashes, id) AS place
    FROM generations INDEXED BY generations_open WHERE status IN ('queued', 'in_progress')

-- name: list_free_generations
-- Unfinished generations without a valid lease: those of organizations with the fewest leases first, and those with at
-- least so many crashes last. A lease that was not given back counts as one more crash.
SELECT id, crashes FROM (
{by_org}
) AS unfinished
WHERE lease_until_ms < :now_ms ORDER BY crashes >= :crashes, place, id LIMIT :limit;

-- name: list_suspects
-- Unfinished generations without a valid lease and with at least so many crashes: those with the fewest first, and of
-- these, those of organizations with the fewest leases.
SELECT id FROM (
{by_org}
) AS unfinished
WHERE lease_until_ms < :now_ms AND crashes >= :crashes ORDER BY crashes, place, id LIMIT :limit;

-- name: claim_generations [sqlite]
-- Lease unfinished generations that have no valid lease and few enough crashes. The new token invalidates the former
-- worker's writes. A lease that was not given back counts as a crash.
UPDATE generations SET lease_token = lease_token + 1, lease_until_ms = :until_ms,
    crashes = crashes + CASE WHEN lease_until_ms > 0 THEN 1 ELSE 0 END
WHERE id IN (SELECT value FROM json_each(:ids)) AND status IN ('queued', 'in_progress') AND lease_until_ms < :now_ms
    AND crashes + CASE WHEN lease_until_ms > 0 THEN 1 ELSE 0 END <= :crashes_max
RETURNING id, lease_token, crashes;

-- name: claim_generations [postgres]
-- Lease unfinished generations that have no valid lease and few enough crashes. The new token invalidates the former
-- worker's writes. A lease that was not given back counts as a crash. Rows are locked in the order of their ids, so that
-- two claims cannot deadlock.
WITH free AS MATERIALIZED (
    SELECT id FROM generations
    WHERE id IN (SELECT json_array_elements_text(CAST(:ids AS json)))
        AND status IN ('queued', 'in_progress') AND lease_until_ms < :now_ms
        AND crashes + CASE WHEN lease_until_ms > 0 THEN 1 ELSE 0 END <= :crashes_max
    ORDER BY id FOR NO KEY UPDATE
)
UPDATE generations SET lease_token = lease_token + 1, lease_until_ms = :until_ms,
    crashes = crashes + CASE WHEN lease_until_ms > 0 THEN 1 ELSE 0 END
FROM free WHERE generations.id = free.id
RETURNING generations.id, lease_token, crashes;

-- name: renew_leases [sqlite]
-- Extend leases, but not those that were taken over or whose generation has ended. Returns the extended ones, and whether
-- their generations are to be cancelled.
UPDATE generations SET lease_until_ms = :until_ms FROM json_each(:leases) AS one
WHERE generations.id = one.value ->> 0 AND generations.lease_token = one.value ->> 1
    AND generations.status IN ('queued', 'in_progress')
RETURNING generations.id, generations.cancel_requested;

-- name: renew_leases [postgres]
-- Extend leases, but not those that were taken over or whose generation has ended. Returns the extended ones, and whether
-- their generations are to be cancelled.
WITH held AS MATERIALIZED (
    SELECT id FROM generations JOIN json_array_elements(CAST(:leases AS json)) AS one
        ON generations.id = one ->> 0 AND generations.lease_token = CAST(one ->> 1 AS BIGINT)
    WHERE generations.status IN ('queued', 'in_progress')
    ORDER BY id FOR NO KEY UPDATE OF generations
)
UPDATE generations SET lease_until_ms = :until_ms FROM held WHERE generations.id = held.id
RETURNING generations.id, generations.cancel_requested;

-- name: list_lost_leases [sqlite]
-- Of these leases, those that another worker has taken over.
SELECT generations.id FROM json_each(:leases) AS one
JOIN generations ON generations.id = one.value ->> 0 WHERE generations.lease_token <> one.value ->> 1;

-- name: list_lost_leases [postgres]
-- Of these leases, those that another worker has taken over.
SELECT generations.id FROM json_array_elements(CAST(:leases AS json)) AS one
JOIN generations ON generations.id = one ->> 0 WHERE generations.lease_token <> CAST(one ->> 1 AS BIGINT);

-- name: take_off_crashes [sqlite]
-- Of these leases, take off the crash that another worker counted when it took one over.
UPDATE generations SET crashes = crashes - 1 FROM json_each(:leases) AS one
WHERE generations.id = one.value ->> 0 AND generations.lease_token = (one.value ->> 1) + 1
    AND generations.crashes > 0 AND generations.status IN ('queued', 'in_progress')
RETURNING generations.id;

-- name: take_off_crashes [postgres]
-- Of these leases, take off the crash that another worker counted when it took one over.
WITH lost AS MATERIALIZED (
    SELECT id FROM generations JOIN json_array_elements(CAST(:leases AS json)) AS one
        ON generations.id = one ->> 0 AND generations.lease_token = CAST(one ->> 1 AS BIGINT) + 1
    WHERE generations.crashes > 0 AND generations.status IN ('queued', 'in_progress')
    ORDER BY id FOR NO KEY UPDATE OF generations
)
UPDATE generations SET crashes = crashes - 1 FROM lost WHERE generations.id = lost.id
RETURNING generations.id;

-- name: release_lease
-- Give a lease back, so that the next worker need not wait and does not count a crash.
UPDATE generations SET lease_until_ms = 0
WHERE id = :id AND lease_token = :lease_token AND status IN ('queued', 'in_progress');

-- name: check_lease
-- Check inside a transaction that the worker still holds the lease: no row means that it does not, or has given it back.
-- With :is_progress = 1 the crashes are reset to 0. With :percent the status is set to `in_progress`, and the progress to
-- that. The row says whether a cancel was requested.
UPDATE generations SET crashes = CASE WHEN :is_progress = 1 THEN 0 ELSE crashes END,
    status = CASE WHEN CAST(:percent AS INTEGER) IS NULL THEN status ELSE 'in_progress' END,
    progress = COALESCE(CAST(:percent AS INTEGER), progress)
WHERE id = :id AND lease_token = :lease_token AND lease_until_ms > 0 AND status IN ('queued', 'in_progress')
RETURNING cancel_requested;

-- name: set_made
-- Keep what was made while it is copied into a bucket.
UPDATE generations SET made = :made WHERE id = :id AND status IN ('queued', 'in_progress');

-- name: get_made
-- What was made for an unfinished generation and is being copied into a bucket.
SELECT made FROM generations WHERE id = :id;

-- name: complete_generation
-- Complete a generation. Changes nothing when it has ended or the lease was lost.
UPDATE generations SET status = 'completed', result = :result, completed_at_ms = :at_ms,
    expires_at_ms = :expires_at_ms, payload_expires_at_ms = :payload_expires_at_ms, progress = 100, lease_until_ms = 0,
    made = NULL
WHERE id = :id AND lease_token = :lease_token AND status IN ('queued', 'in_progress');

-- name: fail_generation
-- Fail a generation. Changes nothing when it has ended or the lease was lost.
UPDATE generations SET status = 'failed', error_code = :error_code, error_message = :error_message,
    completed_at_ms = NULL, payload_expires_at_ms = :payload_expires_at_ms, lease_until_ms = 0, made = NULL
WHERE id = :id AND lease_token = :lease_token AND status IN ('queued', 'in_progress');

-- name: keep_generation
-- Keep the outputs of a completed generation longer.
UPDATE generations SET expires_at_ms = :until_ms
WHERE id = :id AND org_id = :org_id AND status = 'completed' AND expires_at_ms < :until_ms;

-- name: request_cancel
-- Mark an unfinished generation as to be cancelled by its worker, and return it.
UPDATE generations SET cancel_requested = 1
WHERE id = :id AND org_id = :org_id AND status IN ('queued', 'in_progress')
RETURNING {generation_columns};

-- name: take_lease
-- Take the lease from the worker of a generation that was not sent to a provider yet.
UPDATE generations SET lease_token = lease_token + 1, lease_until_ms = 0
WHERE id = :id AND status IN ('queued', 'in_progress')
RETURNING lease_token;

-- name: is_cancel_requested
-- Whether a generation is to be cancelled.
SELECT cancel_requested FROM generations WHERE id = :id;

-- name: add_attempt
-- Add an attempt before its call is sent.
INSERT INTO attempts (id, request_id, org_id, round, part, candidate, count, provider, upstream_model, account_id, state,
    created_at_ms, updated_at_ms)
VALUES (:id, :request_id, :org_id, :round, :part, :candidate, :count, :provider, :upstream_model, :account_id, 'intent',
    :created_at_ms, :created_at_ms);

-- name: set_attempt
-- Update an attempt after its call. An ended attempt stays as it is.
UPDATE attempts SET state = :state, upstream_id = COALESCE(:upstream_id, upstream_id), ref = COALESCE(:ref, ref),
    failure_kind = :failure_kind, failure_message = :failure_message, http_status = :http_status, cost = :cost,
    updated_at_ms = :at_ms
WHERE id = :id AND state IN ('intent', 'submitted');

-- name: delete_unsent_attempt
-- Remove an attempt of which its process knows that it was not sent.
DELETE FROM attempts WHERE id = :id AND state = 'intent';

-- name: list_ended_attempts
-- How the newest attempts since an id ended, of all organizations, but not of calls that asked for faults.
SELECT provider, upstream_model, state, failure_kind, count, created_at_ms, updated_at_ms FROM attempts
WHERE id >= :low AND state IN ('completed', 'failed') AND NOT EXISTS (
    SELECT 1 FROM requests AS r
    WHERE r.org_id = attempts.org_id AND r.id = attempts.request_id AND r.drill IS NOT NULL
) ORDER BY id DESC LIMIT :limit;

-- name: list_attempts
-- All attempts of a generation, oldest first.
SELECT {attempt_columns} FROM attempts WHERE request_id = :request_id ORDER BY id;

-- name: list_last_attempts
-- The last attempt of a generation for each candidate and part, oldest first.
SELECT {attempt_columns} FROM attempts WHERE request_id = :request_id AND round = (
    SELECT MAX(b.round) FROM attempts b
    WHERE b.request_id = attempts.request_id AND b.candidate = attempts.candidate AND b.part = attempts.part
) ORDER BY id;

-- name: list_charged_failures
-- Failed and cancelled attempts of a generation whose cost its caller pays: it is not recorded as a loss.
SELECT id FROM attempts WHERE request_id = :request_id AND state IN ('failed', 'cancelled') AND cost > 0
    AND NOT EXISTS (SELECT 1 FROM transfers t WHERE t.ref = attempts.id AND t.step = 'loss');

-- name: get_attempt
-- One attempt, by the id in a callback URL whose signature was checked.
SELECT id, request_id FROM attempts WHERE id = :id;

-- name: get_attempt_by_upstream_id
-- The attempt with a provider's id for its job.
SELECT id, request_id FROM attempts WHERE provider = :provider AND upstream_id = :upstream_id ORDER BY id DESC LIMIT 1;

-- name: count_sent_attempts
-- How many attempts of a generation a provider may know about.
SELECT COUNT(*) AS count FROM attempts WHERE request_id = :request_id AND state IN ('intent', 'submitted', 'completed');

-- name: release_idempotency_key
-- Let another call use the key of a failed generation, of which nothing was made or charged, and nothing may still come.
UPDATE generations SET idempotency_key = NULL
WHERE id = :id AND org_id = :org_id AND status = 'failed' AND idempotency_key IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.request_id = generations.id
        AND a.state NOT IN ('failed', 'cancelled'))
    AND NOT EXISTS (SELECT 1 FROM transfers t WHERE t.ref = generations.id AND t.kind = 'capture' AND t.amount > 0);

-- name: purge_generation
-- Remove the request, the texts and the webhook URL of a generation, and the text of its idempotency key. Times and cost
-- stay.
UPDATE generations SET request = NULL, plan = :plan, result = :result, error_message = NULL,
    payload_expires_at_ms = NULL, webhook_url = NULL,
    idempotency_key = :purged_key
WHERE id = :id AND org_id = :org_id;

-- name: purge_attempts
-- Remove providers' messages and job references, which may quote the request. The reference of a job that is still to be
-- checked stays until its last check.
UPDATE attempts SET failure_message = NULL, ref = CASE WHEN check_at_ms IS NULL THEN NULL ELSE ref END WHERE id IN (
    SELECT id FROM attempts WHERE request_id = :request_id AND org_id = :org_id ORDER BY id FOR NO KEY UPDATE
);

-- name: get_leased_generation
-- A generation, the key of its request and the number of its attempts, if the worker still holds its lease.
SELECT {generation_columns}, requests.key_id,
    (SELECT COUNT(*) FROM attempts WHERE request_id = generations.id) AS attempt_count
FROM generations
JOIN requests ON requests.org_id = generations.org_id AND requests.id = generations.id
WHERE generations.id = :id AND generations.lease_token = :lease_token AND generations.status IN ('queued', 'in_progress');
