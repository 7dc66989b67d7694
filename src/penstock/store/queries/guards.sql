-- What guards said of calls, summed up by UTC day.

-- name: add_guard_verdicts
-- Add verdicts of a guard about calls of an organization to those of a day.
INSERT INTO guard_verdicts (day, org_id, guard, verdict, number) VALUES (:day, :org_id, :guard, :verdict, :number)
ON CONFLICT (day, org_id, guard, verdict) DO UPDATE SET number = guard_verdicts.number + excluded.number;

-- name: sum_guard_verdicts
-- How often each guard gave each verdict since a day: about calls of an organization, or with `*` of all.
SELECT guard, verdict, SUM(number) AS number FROM guard_verdicts
WHERE day >= :since AND (:org_id = '*' OR org_id = :org_id) GROUP BY guard, verdict;

-- name: delete_old_guard_verdicts
-- Delete the sums of days before this one.
DELETE FROM guard_verdicts WHERE (day, org_id, guard, verdict) IN (
    SELECT v.day, v.org_id, v.guard, v.verdict FROM guard_verdicts AS v WHERE v.day < :before
    ORDER BY v.day, v.org_id, v.guard, v.verdict FOR UPDATE
);
