-- The organization that asked about a model last, so that none can push out the models that others use.

ALTER TABLE live_models ADD COLUMN asked_by {id} NOT NULL DEFAULT '';
