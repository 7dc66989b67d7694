-- Batches: many calls that are checked and priced together, run one after the other, and paid once each.

CREATE TABLE batches (
    id             {id} PRIMARY KEY,
    org_id         {id} NOT NULL REFERENCES orgs (id),
    key_id         {id} NOT NULL,      -- with whose rights the rows run
    status         TEXT NOT NULL
        CHECK (status IN ('validating', 'in_progress', 'paused', 'cancelling', 'completed', 'cancelled')),
    reason         TEXT,               -- why it is paused
    name           TEXT,
    max_cost       BIGINT,             -- null: no budget
    concurrency    BIGINT NOT NULL,
    webhook_url    TEXT,
    created_at_ms  BIGINT NOT NULL,
    ended_at_ms    BIGINT,
    rows_total     BIGINT NOT NULL DEFAULT 0,
    rows_completed BIGINT NOT NULL DEFAULT 0,
    rows_failed    BIGINT NOT NULL DEFAULT 0,
    rows_skipped   BIGINT NOT NULL DEFAULT 0,  -- that were left out because something was wrong with them
    estimate       BIGINT NOT NULL DEFAULT 0,  -- what the rows were expected to cost together
    cost           BIGINT NOT NULL DEFAULT 0,  -- what those that have ended did cost
    lease_owner    {id},
    lease_until_ms BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX batches_by_org ON batches (org_id, id);
CREATE INDEX batches_open ON batches (id) WHERE status IN ('validating', 'in_progress', 'cancelling');

CREATE TABLE batch_rows (
    batch_id      {id} NOT NULL REFERENCES batches (id),
    number        BIGINT NOT NULL,     -- its place in the file, from 1
    custom_id     TEXT NOT NULL,       -- the caller's name for it
    endpoint      TEXT NOT NULL,
    body          {blob},              -- as JSON; null once the row has ended
    hold          BIGINT NOT NULL,     -- the most that it may cost
    status        TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'completed', 'failed')),
    request_id    {id},                -- the request that the row became; null if it was refused
    cost          BIGINT NOT NULL DEFAULT 0,
    error_code    TEXT,
    error_message TEXT,
    PRIMARY KEY (batch_id, number)
) {without_rowid};
