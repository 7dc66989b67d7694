-- Labels of requests, what was spent for each of their values, and budgets of values.

ALTER TABLE requests ADD COLUMN labels TEXT;  -- names and values as a JSON object; null without labels
ALTER TABLE keys ADD COLUMN labels TEXT;      -- fixed for all calls of the key, as a JSON object
ALTER TABLE orgs ADD COLUMN declared_labels TEXT;  -- as a JSON list; null: none

CREATE INDEX requests_by_session ON requests (org_id, session_id, id) WHERE session_id IS NOT NULL;

-- The same labels once more, one by one, to find the requests of a value.
CREATE TABLE request_labels (
    org_id     {id} NOT NULL,
    name       {id} NOT NULL,
    value      {id} NOT NULL,
    request_id {id} NOT NULL,
    PRIMARY KEY (org_id, name, value, request_id)
) {without_rowid};

-- What the ended requests of a month (UTC) with a value cost.
CREATE TABLE label_spend (
    month  TEXT NOT NULL,  -- such as 2026-11
    org_id {id} NOT NULL,
    name   {id} NOT NULL,
    value  {id} NOT NULL,
    spent  BIGINT NOT NULL,
    PRIMARY KEY (month, org_id, name, value)
) {without_rowid};

CREATE TABLE label_budgets (
    org_id          {id} NOT NULL,
    name            {id} NOT NULL,
    value           {id} NOT NULL,    -- * for each value without a budget of its own
    nanos_per_month BIGINT NOT NULL,
    alert_percents  TEXT NOT NULL,    -- as a JSON list
    PRIMARY KEY (org_id, name, value)
) {without_rowid};
