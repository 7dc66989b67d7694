-- Buckets of organizations. Every change also sets the fact by which processes notice it.

-- name: add_destination
-- Add a destination.
INSERT INTO destinations (id, org_id, name, url, region, endpoint, path, secret, last_four, is_default, is_required,
    version, created_at_ms)
VALUES (:id, :org_id, :name, :url, :region, :endpoint, :path, :secret, :last_four, :is_default, :is_required, 1,
    :created_at_ms);

-- name: list_destinations
-- The destinations of all organizations.
SELECT id, org_id, name, url, region, endpoint, path, secret, last_four, is_default, is_required, version,
    created_at_ms, failure, failed_at_ms
FROM destinations ORDER BY org_id, id;

-- name: lock_destinations
-- Lock the destinations of an organization until the end of the transaction.
SELECT id, org_id, name, url, path, is_default, is_required FROM destinations
WHERE org_id = :org_id ORDER BY id FOR NO KEY UPDATE;

-- name: set_destination
-- Change what may be changed of a destination, but not its keys.
UPDATE destinations SET name = :name, path = :path, is_default = :is_default, is_required = :is_required
WHERE id = :id;

-- name: rotate_destination
-- Replace the keys of a destination.
UPDATE destinations SET secret = :secret, last_four = :last_four, version = version + 1, failure = NULL,
    failed_at_ms = NULL
WHERE id = :id AND org_id = :org_id;

-- name: set_destination_failure
-- Note why a file could not be copied, and since when, or that one could, unless the keys were replaced meanwhile.
UPDATE destinations SET failure = :failure,
    failed_at_ms = CASE WHEN CAST(:failed_at_ms AS BIGINT) IS NULL THEN NULL ELSE COALESCE(failed_at_ms, :failed_at_ms) END
WHERE id = :id AND version = :version;

-- name: delete_destination
-- Delete a destination with its keys. Files that were copied stay where they are.
DELETE FROM destinations WHERE id = :id AND org_id = :org_id;

-- name: reseal_destination
-- Store the same keys encrypted with a newer master key, unless they were replaced meanwhile.
UPDATE destinations SET secret = :secret WHERE id = :id AND secret = :seen;

-- name: list_failed_destinations
-- Destinations into which the last file could not be copied, for alerts.
SELECT id, org_id, name, url, version, failure, failed_at_ms FROM destinations
WHERE failed_at_ms IS NOT NULL ORDER BY id;
