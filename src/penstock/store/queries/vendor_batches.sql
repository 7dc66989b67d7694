-- Batches at providers, and the rows that went with them.

-- name: add_vendor_batch
-- Add a batch that is about to be sent to a provider.
INSERT INTO vendor_batches (id, batch_id, org_id, provider, model, upstream_model, account_id, fee_percent, held,
    rows_total, created_at_ms)
VALUES (:id, :batch_id, :org_id, :provider, :model, :upstream_model, :account_id, :fee_percent, :held,
    :rows_total, :created_at_ms);

-- name: hold_batch_row
-- Let a row that has not begun go with a batch at a provider.
UPDATE batch_rows SET vendor_batch_id = :vendor_batch_id, request_id = :request_id
WHERE batch_id = :batch_id AND number = :number AND status = 'pending' AND vendor_batch_id IS NULL;

-- name: free_batch_row
-- Let a row that went with a batch at a provider, and whose request was given up, begin anew.
UPDATE batch_rows SET vendor_batch_id = NULL, request_id = NULL
WHERE batch_id = :batch_id AND number = :number AND status = 'pending';

-- name: list_open_vendor_batches
-- What a batch has at providers.
SELECT id, batch_id, org_id, provider, model, upstream_model, account_id, fee_percent, held, rows_total, created_at_ms,
    file_id, upstream_id
FROM vendor_batches WHERE batch_id = :batch_id AND ended_at_ms IS NULL ORDER BY id;

-- name: get_vendor_batch
-- One batch at a provider, unless it has ended.
SELECT id, batch_id, org_id, provider, model, upstream_model, account_id, fee_percent, held, rows_total, created_at_ms,
    file_id, upstream_id
FROM vendor_batches WHERE id = :id AND ended_at_ms IS NULL;

-- name: list_vendor_rows
-- The rows that went with a batch at a provider and have not ended.
SELECT number, custom_id, endpoint, body, hold, request_id FROM batch_rows
WHERE vendor_batch_id = :id AND status = 'pending' ORDER BY number;

-- name: set_vendor_file
-- Note the file of a batch, before the provider is asked to begin it.
UPDATE vendor_batches SET file_id = :file_id WHERE id = :id;

-- name: set_vendor_id
-- Note the id that the provider has given a batch.
UPDATE vendor_batches SET upstream_id = :upstream_id WHERE id = :id;

-- name: end_vendor_batch
-- Note that all rows of a batch at a provider have ended.
UPDATE vendor_batches SET ended_at_ms = :ended_at_ms WHERE id = :id AND ended_at_ms IS NULL;

-- name: delete_vendor_batches
-- Remove what a batch had at providers.
DELETE FROM vendor_batches WHERE batch_id = :batch_id AND ended_at_ms IS NOT NULL;
