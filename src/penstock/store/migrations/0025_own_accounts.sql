-- Accounts that organizations bring, and the answers to administrative calls with idempotency keys.

ALTER TABLE accounts ADD COLUMN org_id {id};                -- whose it is; null: the operator's, for all organizations
ALTER TABLE accounts ADD COLUMN fee_percent BIGINT;         -- of the list price; null: as the settings say
ALTER TABLE accounts ADD COLUMN fallback_to_shared BIGINT;  -- 1: where it cannot serve a call, the operator's may

ALTER TABLE requests ADD COLUMN vendor_cost BIGINT;         -- at the list price, where the organization's account served

ALTER TABLE idempotency_keys ADD COLUMN target TEXT;        -- of an administrative call: what it made or changed
ALTER TABLE idempotency_keys ADD COLUMN response TEXT;      -- and its response without secrets, as JSON
