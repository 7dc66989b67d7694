-- Jobs that a provider was still working on when their generation was given up.

-- name: expect_late
-- Ask about them later; they were named to us, so that can be done.
UPDATE attempts SET check_at_ms = :at_ms
WHERE request_id = :request_id AND org_id = :org_id AND state = 'submitted' AND ref IS NOT NULL;

-- name: claim_late_attempts
-- Take those that are due; the pause to the next question is four times the one before, and after some there is none.
UPDATE attempts SET checks = checks + 1, check_at_ms = CASE
    WHEN checks + 1 >= :most THEN NULL
    ELSE :now_ms + :pause_ms * (CAST(1 AS BIGINT) << CAST(2 * (checks + 1) AS INTEGER)) END
WHERE check_at_ms <= :now_ms
    AND id IN (SELECT id FROM attempts WHERE check_at_ms <= :now_ms ORDER BY check_at_ms LIMIT :limit)
RETURNING id, request_id, org_id, candidate, count, ref;

-- name: settle_late_attempt
-- What became of it in the end, once.
UPDATE attempts SET state = :state, cost = :cost, check_at_ms = NULL, updated_at_ms = :at_ms
WHERE id = :id AND state = 'submitted';

-- name: hasten_late_attempt
-- Its provider says that there is news; also when nobody meant to ask again.
UPDATE attempts SET check_at_ms = :now_ms
WHERE id = :id AND state = 'submitted' AND ref IS NOT NULL
    AND EXISTS (SELECT 1 FROM generations g WHERE g.id = attempts.request_id AND g.status = 'failed');

-- name: count_orphans
-- What providers made, or may have made, for generations that failed: nobody was charged for it.
SELECT COUNT(*) AS count, COALESCE(SUM(a.cost), 0) AS cost
FROM attempts a JOIN generations g ON g.id = a.request_id
WHERE g.status = 'failed' AND a.state IN ('completed', 'unknown');
