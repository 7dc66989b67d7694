-- Accounts at vendors. Every change also sets the fact by which other processes notice it.

-- name: add_account
-- Add an account. The unique fingerprint refuses a credential that another account has.
INSERT INTO accounts (id, provider, name, secret, fingerprint, last_four, status, weight, priority, models, concurrent,
    requests_per_minute, nanos_per_month, org_id, fee_percent, fallback_to_shared, version, created_at_ms)
VALUES (:id, :provider, :name, :secret, :fingerprint, :last_four, 'on', :weight, :priority, :models, :concurrent,
    :requests_per_minute, :nanos_per_month, :org_id, :fee_percent, :fallback_to_shared, 1, :created_at_ms)
ON CONFLICT (fingerprint) DO NOTHING;

-- name: list_accounts
-- All accounts that are not deleted.
SELECT id, provider, name, secret, last_four, status, weight, priority, models, concurrent, requests_per_minute,
    nanos_per_month, org_id, fee_percent, fallback_to_shared, failed_status, failed_at_ms, version, created_at_ms
FROM accounts WHERE status <> 'deleted' ORDER BY provider, id;

-- name: get_account_by_fingerprint
-- The account with a credential.
SELECT id FROM accounts WHERE fingerprint = :fingerprint;

-- name: lock_account
-- Lock an account until the end of the transaction.
SELECT id, provider, name, status, weight, priority, models, concurrent, requests_per_minute, nanos_per_month, org_id,
    fee_percent, fallback_to_shared
FROM accounts
WHERE id = :id AND status <> 'deleted' FOR NO KEY UPDATE;

-- name: set_account
-- Change an account, but not its credential. It is trusted again.
UPDATE accounts SET name = :name, status = :status, weight = :weight, priority = :priority, models = :models,
    concurrent = :concurrent, requests_per_minute = :requests_per_minute, nanos_per_month = :nanos_per_month,
    fee_percent = :fee_percent, fallback_to_shared = :fallback_to_shared,
    failed_status = NULL, failed_at_ms = NULL
WHERE id = :id;

-- name: rotate_account
-- Replace the credential of an account.
UPDATE accounts SET secret = :secret, fingerprint = :fingerprint, last_four = :last_four, version = version + 1,
    failed_status = NULL, failed_at_ms = NULL
WHERE id = :id AND status <> 'deleted';

-- name: count_open_attempts_of_account
-- Attempts of an account that run, or whose jobs may still be asked about.
SELECT COUNT(*) AS count FROM attempts
WHERE account_id = :id AND (state IN ('intent', 'submitted') OR check_at_ms IS NOT NULL);

-- name: erase_account
-- Erase the credential of an account that is not needed any more.
UPDATE accounts SET secret = NULL, fingerprint = NULL, status = 'deleted' WHERE id = :id AND status = 'draining';

-- name: reseal_account
-- Store the same credential encrypted with a newer master key, unless it was replaced meanwhile.
UPDATE accounts SET secret = :secret WHERE id = :id AND secret = :seen;

-- name: set_account_failure
-- Note with which status the vendor refused an account, or that it serves calls again, unless its credential was replaced
-- meanwhile.
UPDATE accounts SET failed_status = :failed_status, failed_at_ms = :failed_at_ms
WHERE id = :id AND version = :version AND status <> 'deleted';

-- name: add_account_spend
-- Add what ended requests cost to the month of an account.
INSERT INTO account_spend (month, account_id, spent) VALUES (:month, :account_id, :spent)
ON CONFLICT (month, account_id) DO UPDATE SET spent = account_spend.spent + excluded.spent;

-- name: list_account_spend
-- What each account has spent in a month.
SELECT account_id, spent FROM account_spend WHERE month = :month;

-- name: set_account_use
-- Note how a process uses an account.
INSERT INTO account_use (account_id, process_id, at_ms, use) VALUES (:account_id, :process_id, :at_ms, :use)
ON CONFLICT (account_id, process_id) DO UPDATE SET at_ms = excluded.at_ms, use = excluded.use;

-- name: list_account_use
-- How the other processes used the accounts since a moment.
SELECT account_id, use FROM account_use WHERE process_id <> :process_id AND at_ms > :since_ms;

-- name: remove_account_use
-- Remove what processes wrote before a moment.
DELETE FROM account_use WHERE (account_id, process_id) IN (
    SELECT account_id, process_id FROM account_use WHERE at_ms <= :since_ms
    ORDER BY account_id, process_id FOR UPDATE SKIP LOCKED
);

-- name: list_failed_accounts
-- Accounts that their vendors have refused, for alerts.
SELECT id, provider, name, version, failed_status, failed_at_ms FROM accounts
WHERE failed_status IS NOT NULL AND status = 'on' ORDER BY id;
