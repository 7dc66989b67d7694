-- When the session of an operator ends unless it is used.

ALTER TABLE sessions ADD COLUMN idle_until_ms BIGINT;  -- null: not used as an operator's yet
