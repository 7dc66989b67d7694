-- The last thing that a stored chat said to the model, so that it is listed and found. It goes with its row.

ALTER TABLE payloads ADD COLUMN prompt TEXT;  -- its beginning; null: none, or stored before there was this column
