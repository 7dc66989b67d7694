-- What was made and is being copied into a bucket, and where the copies of outputs are.

ALTER TABLE generations ADD COLUMN made {blob};  -- outputs, attempts and cost, as JSON, until the generation ends
ALTER TABLE media ADD COLUMN delivered TEXT;     -- where the copy is, as JSON; null: none was asked for
