-- Accounts at vendors: further credentials beside those of the environment.

CREATE TABLE accounts (
    id            {id} PRIMARY KEY,
    provider      TEXT NOT NULL,
    name          TEXT NOT NULL,
    secret        {blob},            -- the credential, encrypted; null once the account is deleted
    fingerprint   {blob} UNIQUE,     -- of the credential, so that no two accounts share one
    last_four     TEXT NOT NULL,
    status        TEXT NOT NULL CHECK (status IN ('on', 'off', 'draining', 'deleted')),
    weight        BIGINT NOT NULL,
    priority      BIGINT NOT NULL,
    models        TEXT,              -- that it serves, as a JSON list; null: all of its provider
    version       BIGINT NOT NULL,   -- grows with each change of the credential
    created_at_ms BIGINT NOT NULL
);

ALTER TABLE attempts ADD COLUMN account_id {id};  -- null: the credential of the environment
CREATE INDEX attempts_by_account ON attempts (account_id, state) WHERE account_id IS NOT NULL;

-- Two accounts of a vendor may have jobs with one id. The new index is there before the old one goes.
CREATE UNIQUE INDEX attempts_by_account_and_upstream_id
    ON attempts (provider, COALESCE(account_id, ''), upstream_id) WHERE upstream_id IS NOT NULL;
DROP INDEX attempts_by_upstream_id;
CREATE INDEX attempts_of_upstream_id ON attempts (provider, upstream_id) WHERE upstream_id IS NOT NULL;
