-- Requests of speech: they have a kind of their own.

-- [postgres]
ALTER TABLE requests DROP CONSTRAINT requests_kind_check;
ALTER TABLE requests ADD CONSTRAINT requests_kind_check
    CHECK (kind IN ('image', 'edit', 'upscale', 'video', 'chat', 'speech', 'sound', 'transcription')) NOT VALID;
-- [sqlite]
-- A constraint only widens, so no row has to be written again: SQLite's documentation allows this way for that.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
SET sql = replace(
    sql,
    '''upscale'', ''video'', ''chat'')',
    '''upscale'', ''video'', ''chat'', ''speech'', ''sound'', ''transcription'')'
)
WHERE type = 'table' AND name = 'requests';
PRAGMA writable_schema = RESET;
-- [both]
