-- name: get_live_model
-- What a provider's catalogue last said about a model.
SELECT description, asked_at_ms FROM live_models WHERE provider = :provider AND upstream = :upstream;

-- name: set_live_model
-- Store what a provider's catalogue says about a model.
INSERT INTO live_models (provider, upstream, description, asked_at_ms, asked_by)
VALUES (:provider, :upstream, :description, :at_ms, :org_id)
ON CONFLICT (provider, upstream) DO UPDATE
SET description = excluded.description, asked_at_ms = excluded.asked_at_ms, asked_by = excluded.asked_by;

-- name: delete_oldest_live_models
-- Keep only so many models. The organization that asked about the most loses those that it asked about first.
DELETE FROM live_models WHERE (provider, upstream) IN (
    SELECT provider, upstream FROM live_models
    WHERE asked_by = (SELECT asked_by FROM live_models GROUP BY asked_by ORDER BY count(*) DESC, asked_by LIMIT 1)
    ORDER BY asked_at_ms
    LIMIT (SELECT CASE WHEN count(*) > :kept THEN count(*) - :kept ELSE 0 END FROM live_models)
);
