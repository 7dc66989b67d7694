-- name: get_live_model
-- What a provider's catalogue last said about a model.
SELECT description, asked_at_ms FROM live_models WHERE provider = :provider AND upstream = :upstream;

-- name: set_live_model
-- Store what a provider's catalogue says about a model.
INSERT INTO live_models (provider, upstream, description, asked_at_ms)
VALUES (:provider, :upstream, :description, :at_ms)
ON CONFLICT (provider, upstream) DO UPDATE SET description = excluded.description, asked_at_ms = excluded.asked_at_ms;

-- name: delete_oldest_live_models
-- Keep only so many models: those that were asked about last, which are those that are used.
DELETE FROM live_models WHERE (provider, upstream) IN (
    SELECT provider, upstream FROM live_models ORDER BY asked_at_ms DESC LIMIT 1000 OFFSET :kept
);
