-- Batches and their rows. A row is changed only while it is pending, so what has ended is counted once.

-- part: batch_columns
-- What BatchRecord has.
    batches.id, batches.org_id, batches.key_id, batches.status, batches.reason, batches.name, batches.max_cost,
    batches.concurrency, batches.webhook_url, batches.created_at_ms, batches.ended_at_ms, batches.rows_total,
    batches.rows_completed, batches.rows_failed, batches.rows_skipped, batches.estimate, batches.cost,
    batches.upload_id, batches.endpoint, batches.metadata, batches.vendor_batch

-- name: add_batch
-- Add a batch whose rows are still being checked.
INSERT INTO batches (id, org_id, key_id, status, name, max_cost, concurrency, webhook_url, created_at_ms,
    upload_id, endpoint, metadata, vendor_batch, lease_owner, lease_until_ms)
VALUES (:id, :org_id, :key_id, 'validating', :name, :max_cost, :concurrency, :webhook_url, :created_at_ms,
    :upload_id, :endpoint, :metadata, :vendor_batch, :lease_owner, :lease_until_ms);

-- name: add_batch_row
-- Add a row of a batch that is being checked.
INSERT INTO batch_rows (batch_id, number, custom_id, endpoint, body, hold)
VALUES (:batch_id, :number, :custom_id, :endpoint, :body, :hold);

-- name: accept_batch
-- End the check of a batch: from now on it runs, or waits to be started.
UPDATE batches SET status = :status, reason = :reason, rows_total = :rows_total, rows_skipped = :rows_skipped,
    estimate = :estimate, lease_owner = NULL, lease_until_ms = 0
WHERE id = :id AND status = 'validating';

-- name: get_batch
-- One batch of an organization.
SELECT {batch_columns} FROM batches WHERE id = :id AND org_id = :org_id;

-- name: list_{older|newer}_batches
-- A page {downwards|upwards} from an id, without those that are still being checked.
SELECT {batch_columns} FROM batches
WHERE batches.org_id = :org_id AND batches.id > :low AND batches.id < :high AND batches.status <> 'validating'
ORDER BY batches.id {DESC|ASC} LIMIT :limit;

-- name: pause_batch
-- Stop beginning rows of a batch, for a reason.
UPDATE batches SET status = 'paused', reason = :reason WHERE id = :id AND org_id = :org_id AND status = 'in_progress';

-- name: resume_batch
-- Begin rows of a paused batch again, perhaps with another budget or concurrency.
UPDATE batches SET status = 'in_progress', reason = NULL, max_cost = :max_cost, concurrency = :concurrency
WHERE id = :id AND org_id = :org_id AND status = 'paused';

-- name: cancel_batch
-- Begin no more rows of a batch; it is cancelled when those that run have ended.
UPDATE batches SET status = 'cancelling', reason = NULL
WHERE id = :id AND org_id = :org_id AND status IN ('in_progress', 'paused');

-- name: list_free_batches
-- Batches that nobody runs; those that are paused only while providers have rows of theirs.
SELECT id, org_id, status FROM batches
WHERE status IN ('validating', 'in_progress', 'cancelling') AND lease_until_ms < :now_ms
UNION
SELECT id, org_id, status FROM batches
WHERE id IN (SELECT batch_id FROM vendor_batches WHERE ended_at_ms IS NULL)
    AND status = 'paused' AND lease_until_ms < :now_ms
ORDER BY id LIMIT :limit;

-- name: claim_batch
-- Take or renew the lease of a batch that nobody else runs.
UPDATE batches SET lease_owner = :owner, lease_until_ms = :until_ms
WHERE id = :id AND (lease_until_ms < :now_ms OR lease_owner = :owner)
    AND (status IN ('validating', 'in_progress', 'cancelling') OR (status = 'paused'
        AND EXISTS (SELECT 1 FROM vendor_batches v WHERE v.batch_id = batches.id AND v.ended_at_ms IS NULL)));

-- name: release_batch
-- Give the lease of a batch back.
UPDATE batches SET lease_owner = NULL, lease_until_ms = 0 WHERE id = :id AND lease_owner = :owner;

-- name: release_batches
-- End all leases of batches: the processes that had them are gone.
UPDATE batches SET lease_owner = NULL, lease_until_ms = 0 WHERE lease_until_ms > 0;

-- name: list_pending_batch_rows
-- The next rows of a batch that have not ended, nor gone to a provider with a batch.
SELECT number, custom_id, endpoint, body, hold FROM batch_rows
WHERE batch_id = :batch_id AND number > :after AND status = 'pending' AND vendor_batch_id IS NULL
ORDER BY number LIMIT :limit;

-- name: list_batch_rows
-- The next rows of a batch, for its results.
SELECT number, custom_id, endpoint, status, request_id, cost, error_code, error_message FROM batch_rows
WHERE batch_id = :batch_id AND number > :after ORDER BY number LIMIT :limit;

-- name: end_batch_row
-- Store how a row ended, if nobody has done so yet. Its body is not needed any more.
UPDATE batch_rows SET status = :status, request_id = :request_id, cost = :cost, error_code = :error_code,
    error_message = :error_message, body = NULL
WHERE batch_id = :batch_id AND number = :number AND status = 'pending';

-- name: count_batch_row
-- Add a row that has ended to the sums of its batch.
UPDATE batches SET rows_completed = rows_completed + :completed, rows_failed = rows_failed + :failed,
    cost = cost + :cost
WHERE id = :id;

-- name: end_batch
-- End a batch of which no row runs any more: it is completed, or cancelled if that was asked for.
UPDATE batches SET status = CASE WHEN status = 'cancelling' THEN 'cancelled' ELSE 'completed' END,
    ended_at_ms = :ended_at_ms, lease_owner = NULL, lease_until_ms = 0
WHERE id = :id AND lease_owner = :owner AND status = :status;

-- name: erase_batch_bodies
-- Remove the bodies of rows that will not run.
UPDATE batch_rows SET body = NULL
WHERE batch_id = :batch_id AND number > :after AND number <= :until AND body IS NOT NULL;

-- name: delete_batch_rows
-- Remove rows of a batch that was refused, or has been kept for long enough.
DELETE FROM batch_rows WHERE batch_id = :batch_id AND number > :after AND number <= :until;

-- name: delete_refused_batch
-- Remove a batch that was refused, after its rows.
DELETE FROM batches WHERE id = :id AND status = 'validating';

-- name: list_old_batches
-- Batches that ended before a time.
SELECT id FROM batches WHERE ended_at_ms < :before_ms ORDER BY id LIMIT :limit;

-- name: delete_old_batch
-- Remove a batch that has ended, after its rows.
DELETE FROM batches WHERE id = :id AND ended_at_ms IS NOT NULL;
