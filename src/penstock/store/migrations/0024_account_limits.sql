-- Limits of accounts at vendors, what each process has learned of them, and what was spent by account.

ALTER TABLE accounts ADD COLUMN concurrent BIGINT;           -- calls and jobs at a time; null: no limit
ALTER TABLE accounts ADD COLUMN requests_per_minute BIGINT;  -- null: no limit
ALTER TABLE accounts ADD COLUMN nanos_per_month BIGINT;      -- null: no limit
ALTER TABLE accounts ADD COLUMN failed_status BIGINT;        -- HTTP status with which the vendor refused the account
ALTER TABLE accounts ADD COLUMN failed_at_ms BIGINT;

ALTER TABLE requests ADD COLUMN account_id {id};  -- that was last asked; null: the credential of the environment

-- What the ended requests of a month (UTC) cost that an account has served.
CREATE TABLE account_spend (
    month      TEXT NOT NULL,  -- such as 2026-11
    account_id {id} NOT NULL,
    spent      BIGINT NOT NULL,
    PRIMARY KEY (month, account_id)
) {without_rowid};

-- How each process uses the accounts, written every few seconds where several share the store.
CREATE TABLE account_use (
    account_id {id} NOT NULL,
    process_id {id} NOT NULL,
    at_ms      BIGINT NOT NULL,
    use        TEXT NOT NULL,  -- calls that are open, calls of the last minute, what was learned, as JSON
    PRIMARY KEY (account_id, process_id)
) {without_rowid};
CREATE INDEX account_use_by_time ON account_use (at_ms);
