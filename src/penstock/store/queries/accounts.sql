-- Accounts at vendors. Every change also sets the fact by which other processes notice it.

-- name: add_account
-- Add an account. The unique fingerprint refuses a credential that another account has.
INSERT INTO accounts (id, provider, name, secret, fingerprint, last_four, status, weight, priority, models, version,
    created_at_ms)
VALUES (:id, :provider, :name, :secret, :fingerprint, :last_four, 'on', :weight, :priority, :models, 1, :created_at_ms)
ON CONFLICT (fingerprint) DO NOTHING;

-- name: list_accounts
-- All accounts that are not deleted.
SELECT id, provider, name, secret, last_four, status, weight, priority, models, version, created_at_ms
FROM accounts WHERE status <> 'deleted' ORDER BY provider, id;

-- name: get_account_by_fingerprint
-- The account with a credential.
SELECT id FROM accounts WHERE fingerprint = :fingerprint;

-- name: lock_account
-- Lock an account until the end of the transaction.
SELECT id, provider, name, status, weight, priority, models FROM accounts
WHERE id = :id AND status <> 'deleted' FOR NO KEY UPDATE;

-- name: set_account
-- Change an account, but not its credential.
UPDATE accounts SET name = :name, status = :status, weight = :weight, priority = :priority, models = :models WHERE id = :id;

-- name: rotate_account
-- Replace the credential of an account.
UPDATE accounts SET secret = :secret, fingerprint = :fingerprint, last_four = :last_four, version = version + 1
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
