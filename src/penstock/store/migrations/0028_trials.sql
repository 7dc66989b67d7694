-- Trials: prompts times models, run as a batch and compared blind; votes on pairs of their outputs.

CREATE TABLE trials (
    id                 {id} PRIMARY KEY,
    org_id             {id} NOT NULL REFERENCES orgs (id),
    key_id             {id} NOT NULL,    -- that made it
    batch_id           {id} NOT NULL,    -- row (p - 1) * models + m + 1 is prompt p with model m
    name               TEXT,
    kind               TEXT NOT NULL CHECK (kind IN ('image', 'video', 'chat')),
    models             TEXT NOT NULL,    -- as a JSON list, in the order of their places
    prompts            BIGINT NOT NULL,  -- how many
    created_at_ms      BIGINT NOT NULL,
    link_digest        {blob},           -- of the text in the link by which people vote; null: there is none
    link_expires_at_ms BIGINT,
    shows_prompts      BIGINT NOT NULL DEFAULT 1,
    verdict            TEXT              -- as JSON; null: none yet
);
CREATE INDEX trials_by_org ON trials (org_id, id);
CREATE INDEX trials_by_batch ON trials (batch_id);
CREATE UNIQUE INDEX trials_by_link ON trials (link_digest) WHERE link_digest IS NOT NULL;

CREATE TABLE trial_votes (
    trial_id      {id} NOT NULL REFERENCES trials (id),
    voter         {blob} NOT NULL,     -- the digest of what a browser keeps to be known by
    prompt        BIGINT NOT NULL,
    first         BIGINT NOT NULL,     -- places of two models, the lower one first
    second        BIGINT NOT NULL,
    choice        TEXT NOT NULL CHECK (choice IN ('first', 'second', 'tie', 'both_bad')),
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (trial_id, voter, prompt, first, second)
) {without_rowid};
