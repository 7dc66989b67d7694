-- name: add_response_item
-- Keep an item of a response. A provider may use an id again; then the newest item has it.
INSERT INTO response_items (org_id, id, request_id, data, expires_at_ms)
VALUES (:org_id, :id, :request_id, :data, :expires_at_ms)
ON CONFLICT (org_id, id) DO UPDATE
SET request_id = excluded.request_id, data = excluded.data, expires_at_ms = excluded.expires_at_ms;

-- name: list_response_items [sqlite]
-- The items with these ids that have not expired.
SELECT id, data FROM response_items
WHERE org_id = :org_id AND id IN (SELECT value FROM json_each(:ids)) AND expires_at_ms > :now_ms;

-- name: list_response_items [postgres]
-- The items with these ids that have not expired.
SELECT id, data FROM response_items
WHERE org_id = :org_id AND id IN (SELECT json_array_elements_text(CAST(:ids AS json))) AND expires_at_ms > :now_ms;

-- name: delete_response_items
-- Remove the items of one request.
DELETE FROM response_items WHERE (org_id, id) IN (
    SELECT org_id, id FROM response_items WHERE request_id = :request_id AND org_id = :org_id ORDER BY id FOR UPDATE
);

-- name: delete_expired_response_items
-- Remove the items that have expired.
DELETE FROM response_items WHERE (org_id, id) IN (
    SELECT org_id, id FROM response_items WHERE expires_at_ms <= :now_ms
    ORDER BY org_id, id FOR UPDATE SKIP LOCKED
);

-- name: list_orgs_with_many_items
-- The organizations with more than so many items.
SELECT org_id FROM response_items GROUP BY org_id HAVING COUNT(*) > :most ORDER BY org_id;

-- name: delete_oldest_response_items
-- Remove all items of an organization but the newest ones, of which there are so many or, of equal age, a few less.
DELETE FROM response_items WHERE (org_id, id) IN (
    SELECT org_id, id FROM response_items WHERE org_id = :org_id AND expires_at_ms <= (
        SELECT expires_at_ms FROM response_items WHERE org_id = :org_id ORDER BY expires_at_ms DESC LIMIT 1 OFFSET :most
    )
    ORDER BY id FOR UPDATE SKIP LOCKED
);
