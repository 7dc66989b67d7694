-- Count crashes instead of starts: what a process that stops in good order does is no part of it.

ALTER TABLE generations RENAME COLUMN starts TO crashes;  -- drivers lost in a row, without a step forward between them
UPDATE generations SET crashes = 0;

-- Attempts begun since the last one whose outcome was written down; `tries` are those whose outcome was.
ALTER TABLE messages ADD COLUMN begun BIGINT NOT NULL DEFAULT 0;
