-- Recordings of transcripts.

-- [postgres]
ALTER TABLE recordings DROP CONSTRAINT recordings_kind_check;
ALTER TABLE recordings ADD CONSTRAINT recordings_kind_check
    CHECK (kind IN ('image', 'edit', 'video', 'chat', 'response', 'speech', 'sound', 'transcription')) NOT VALID;
-- [sqlite]
-- A constraint only widens, so no row has to be written again: SQLite's documentation allows this way for that.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
SET sql = replace(sql, '''speech'', ''sound'')', '''speech'', ''sound'', ''transcription'')')
WHERE type = 'table' AND name = 'recordings';
PRAGMA writable_schema = RESET;
-- [both]
