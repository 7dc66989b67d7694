-- Jobs that a provider was still working on when their generation failed.

-- name: schedule_checks
-- Schedule the first check of an ended generation's jobs whose outcome is not known.
UPDATE attempts SET check_at_ms = :at_ms WHERE id IN (
    SELECT id FROM attempts
    WHERE request_id = :request_id AND org_id = :org_id AND state IN ('submitted', 'unknown') AND ref IS NOT NULL
    ORDER BY id FOR NO KEY UPDATE
);

-- name: claim_due_checks
-- Take the attempts whose check is due, and schedule their next check after four times the last pause. After :checks_max
-- checks there is no further one.
UPDATE attempts SET checks = checks + 1, check_at_ms = CASE
    WHEN checks + 1 >= :checks_max THEN NULL
    ELSE :now_ms + :pause_ms * (CAST(1 AS BIGINT) << CAST(2 * (checks + 1) AS INTEGER)) END
WHERE check_at_ms <= :now_ms
    AND id IN (
        SELECT id FROM attempts WHERE check_at_ms <= :now_ms
        ORDER BY check_at_ms LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED
    )
RETURNING {attempt_columns};

-- name: settle_checked_attempt
-- Record how a job ended. Changes nothing the second time.
UPDATE attempts SET state = :state, cost = :cost, check_at_ms = NULL, updated_at_ms = :at_ms
WHERE id = :id AND state IN ('submitted', 'unknown');

-- name: forget_purged_job
-- Remove the reference of a job that is not checked any more, if its request was purged.
UPDATE attempts SET ref = NULL
WHERE id = :id AND check_at_ms IS NULL
    AND EXISTS (SELECT 1 FROM generations g WHERE g.id = attempts.request_id AND g.request IS NULL);

-- name: check_attempt_now
-- Check now, because the provider reported that the job has ended; also when no further check was scheduled.
UPDATE attempts SET check_at_ms = :now_ms
WHERE id = :id AND state IN ('submitted', 'unknown') AND ref IS NOT NULL
    AND EXISTS (SELECT 1 FROM generations g WHERE g.id = attempts.request_id AND g.status IN ('completed', 'failed'));

-- name: keep_late_job
-- Store the job of an attempt whose generation another process took over before the job's id was known here.
UPDATE attempts SET upstream_id = :upstream_id, ref = :ref
WHERE id = :id AND state IN ('intent', 'unknown') AND ref IS NULL;

-- name: count_orphans
-- Number and cost of attempts that providers completed, or may have completed, and for which no caller was charged. Those
-- whose loss a drill simulated were never sent.
SELECT COUNT(*) AS count, COALESCE(SUM(a.cost), 0) AS cost
FROM attempts a JOIN generations g ON g.id = a.request_id JOIN requests r ON r.id = a.request_id
WHERE g.status IN ('completed', 'failed') AND (
    (a.state = 'unknown' AND NOT (COALESCE(r.drill, '') LIKE '%lost-after-submit%' AND a.ref IS NULL
        AND COALESCE(a.failure_message, '') LIKE '%simulated%'))
    OR (a.state = 'completed' AND g.status = 'failed' AND r.cost = 0)
    OR EXISTS (SELECT 1 FROM transfers t WHERE t.ref = a.id AND t.step = 'loss')
);
