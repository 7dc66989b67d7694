-- Jobs that were given up while a provider worked on them: when to ask once more what became of each.

ALTER TABLE attempts ADD COLUMN ask_at_ms BIGINT;  -- null: there is nothing to ask
ALTER TABLE attempts ADD COLUMN asks BIGINT NOT NULL DEFAULT 0;
CREATE INDEX attempts_to_ask_about ON attempts (ask_at_ms) WHERE ask_at_ms IS NOT NULL;
