-- How images are returned to callers of a key who do not say.

ALTER TABLE keys ADD COLUMN image_response_format TEXT;  -- null: as the settings say
