-- Names that organizations give to models.

-- name: get_model_aliases
-- The names that an organization gives to models.
SELECT model_aliases FROM orgs WHERE id = :org_id;

-- name: lock_model_aliases
-- The same, locked until the end of the transaction.
SELECT model_aliases FROM orgs WHERE id = :org_id FOR NO KEY UPDATE;

-- name: set_model_aliases
-- Change the names that an organization gives to models.
UPDATE orgs SET model_aliases = :model_aliases WHERE id = :org_id;
