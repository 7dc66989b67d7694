-- The queue of a cluster: Procrastinate's tables, in the database and the transactions of what it is for. The name of a
-- generation locks its place, so that none waits in the queue twice.

-- name: defer_generation [postgres only]
-- Let any worker drive a generation; part of the transaction that promises it.
SELECT cardinality(procrastinate_defer_jobs_v1(ARRAY[CAST(ROW(
    'generations', 'drive', 0, NULL, :id, jsonb_build_object('request_id', CAST(:id AS TEXT)), NULL
) AS procrastinate_job_to_defer_v1)])) AS deferred;

-- name: list_dropped_generations [postgres only]
-- Unfinished generations that nobody drives and nobody waits to drive.
SELECT g.id, g.lease_token FROM generations g
WHERE g.status IN ('queued', 'in_progress') AND g.lease_until_ms < :now_ms
    AND NOT EXISTS (SELECT 1 FROM procrastinate_jobs j WHERE j.queueing_lock = g.id AND j.status = 'todo')
ORDER BY g.id LIMIT :limit;

-- name: tell_drivers [postgres only]
-- Wake whoever drives a generation, in whichever process, once this transaction is committed.
SELECT pg_notify('penstock_nudges', :id) IS NULL AS told;
