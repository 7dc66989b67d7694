-- What keys that people make for themselves may do.

ALTER TABLE orgs ADD COLUMN own_key_limits TEXT;  -- as a JSON object; null: the defaults
