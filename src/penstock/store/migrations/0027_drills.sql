-- Calls that ask for faults.

ALTER TABLE requests ADD COLUMN drill TEXT;   -- the header by which the call asked for them; null: an ordinary call
ALTER TABLE messages ADD COLUMN drops BIGINT;  -- how many deliveries are not made; null: none
