-- The audit log. There is no statement that changes or deletes an event.

-- name: lock_audit_head
-- The id and the hash of the last event, locked until the end of the transaction.
INSERT INTO audit_heads (id, last_id, hash) VALUES (:id, :first_id, :first_hash)
ON CONFLICT (id) DO UPDATE SET hash = audit_heads.hash
RETURNING last_id, hash;

-- name: set_audit_head
-- Note which event is the last one now.
UPDATE audit_heads SET last_id = :last_id, hash = :hash WHERE id = :id;

-- name: get_audit_head
-- The id and the hash of the last event.
SELECT last_id, hash FROM audit_heads WHERE id = :id;

-- name: add_audit_event
-- Add an event at the end of the chain.
INSERT INTO audit_events (id, org_id, at_ms, actor, action, target, body, previous, hash)
VALUES (:id, :org_id, :at_ms, :actor, :action, :target, :body, :previous, :hash);

-- name: get_audit_event
-- One event; of any organization for the operator.
SELECT id, body, previous, hash FROM audit_events WHERE id = :id AND (:org_id = 'operator' OR org_id = :org_id);

-- name: list_{older|newer}_audit_events
-- A page {downwards|upwards} from an id; of all organizations for the operator. Null filters do not filter.
SELECT id, body, previous, hash FROM audit_events
WHERE id > :low AND id < :high AND (:org_id = 'operator' OR org_id = :org_id)
    AND (CAST(:actor AS TEXT) IS NULL OR actor = :actor) AND (CAST(:action AS TEXT) IS NULL OR action = :action)
    AND (CAST(:target AS TEXT) IS NULL OR target = :target)
    AND (CAST(:created_after AS BIGINT) IS NULL OR at_ms >= :created_after)
    AND (CAST(:created_before AS BIGINT) IS NULL OR at_ms <= :created_before)
ORDER BY id {DESC|ASC} LIMIT :limit;

-- name: list_chained_events
-- Events after an id with everything that the chain vouches for, oldest first.
SELECT id, org_id, at_ms, actor, action, target, body, previous, hash FROM audit_events
WHERE id > :low ORDER BY id LIMIT :limit;
