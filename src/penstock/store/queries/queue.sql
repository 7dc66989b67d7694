-- The queue of a cluster. It uses Procrastinate's tables in the same database, so that a job is queued in the
-- transaction that accepts its generation. The generation's id is the queueing lock: it waits in the queue once at
-- most. The priority is a number for the organization, by which workers let organizations take turns; so jobs of one
-- organization are next to each other in Procrastinate's index of queued jobs. Organizations with the same number, which
-- are rare, take turns as one.

-- name: defer_generation [postgres only]
-- Queue a generation for any worker.
SELECT cardinality(procrastinate_defer_jobs_v1(ARRAY[CAST(ROW(
    'generations', 'run', hashtext(CAST(:org_id AS TEXT)), NULL, :id, jsonb_build_object('request_id', CAST(:id AS TEXT)), NULL
) AS procrastinate_job_to_defer_v1)])) AS deferred;

-- name: remove_job [postgres only]
-- Remove a job that has ended from the queue.
DELETE FROM procrastinate_jobs WHERE id = :id;

-- name: list_dropped_generations [postgres only]
-- Unfinished generations that have no valid lease and are not in the queue.
SELECT g.id, g.org_id, g.lease_token FROM generations g
WHERE g.status IN ('queued', 'in_progress') AND g.lease_until_ms < :now_ms
    AND NOT EXISTS (SELECT 1 FROM procrastinate_jobs j WHERE j.queueing_lock = g.id AND j.status = 'todo')
ORDER BY g.id LIMIT :limit;

-- name: notify_workers [postgres only]
-- Notify the worker that runs a generation, in any process, when this transaction commits.
SELECT pg_notify('penstock_wakeups', :id) IS NULL AS notified;
