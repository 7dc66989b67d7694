-- Batches at providers: chats of a batch of ours that were sent together, at a lower price.

CREATE TABLE vendor_batches (
    id             {id} PRIMARY KEY,   -- also the id of a lease in `processes`, which keeps the holds of its rows
    batch_id       {id} NOT NULL,
    org_id         {id} NOT NULL,
    provider       TEXT NOT NULL,
    model          TEXT NOT NULL,      -- public id
    upstream_model TEXT NOT NULL,
    account_id     {id},
    fee_percent    BIGINT,
    held           BIGINT NOT NULL,    -- for all of its rows
    rows_total     BIGINT NOT NULL,
    created_at_ms  BIGINT NOT NULL,
    file_id        TEXT,               -- at the provider; from then on the batch may exist there
    upstream_id    TEXT,               -- at the provider
    ended_at_ms    BIGINT
);
CREATE INDEX vendor_batches_of_batch ON vendor_batches (batch_id);
CREATE INDEX vendor_batches_open ON vendor_batches (batch_id) WHERE ended_at_ms IS NULL;

ALTER TABLE batches ADD COLUMN vendor_batch TEXT;          -- `auto` or `only`; null: rows are made alone
ALTER TABLE batch_rows ADD COLUMN vendor_batch_id {id};    -- with which the row was sent
CREATE INDEX batch_rows_of_vendor ON batch_rows (vendor_batch_id) WHERE vendor_batch_id IS NOT NULL;
