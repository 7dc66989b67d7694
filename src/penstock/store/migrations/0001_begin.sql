-- The first schema: who calls, what they asked for, what it cost, what was made, who is told.
-- Times are milliseconds since 1970 (UTC), money is nano-dollars, JSON is text. Every table of a tenant carries org_id.

CREATE TABLE orgs (
    id            {id} PRIMARY KEY,
    name          TEXT NOT NULL,
    billing       TEXT NOT NULL CHECK (billing IN ('prepaid', 'postpaid')),
    -- Balances are sums of `transfers`, kept here so that one conditional UPDATE can refuse an overdraft.
    available     BIGINT NOT NULL DEFAULT 0,
    held          BIGINT NOT NULL DEFAULT 0 CHECK (held >= 0),
    secret        {blob},  -- webhook signing secret, encrypted; null until first needed
    old_secret    {blob},  -- the one before a rotation, still signing until old_secret_until_ms
    old_secret_until_ms BIGINT,
    created_at_ms BIGINT NOT NULL,
    CHECK (billing = 'postpaid' OR available >= 0)
);

CREATE TABLE keys (
    id              {id} PRIMARY KEY,
    org_id          {id} NOT NULL REFERENCES orgs (id),
    name            TEXT,
    last_four       TEXT NOT NULL,
    digest          {blob} NOT NULL UNIQUE,
    scopes          TEXT NOT NULL DEFAULT '',
    status          TEXT NOT NULL CHECK (status IN ('active', 'revoked')),
    calls_a_minute  BIGINT,
    calls_at_once   BIGINT,
    nanos_a_day     BIGINT,
    replay_mode     TEXT,
    created_at_ms   BIGINT NOT NULL,
    revoked_at_ms   BIGINT
);
CREATE INDEX keys_by_org ON keys (org_id, id);

-- One row per accepted or rejected call; what GET /v1/requests shows.
CREATE TABLE requests (
    org_id         {id} NOT NULL REFERENCES orgs (id),
    id             {id} NOT NULL,
    key_id         {id} NOT NULL,
    created_at_ms  BIGINT NOT NULL,
    model          TEXT,
    modality       TEXT,
    endpoint       TEXT NOT NULL,
    status         TEXT NOT NULL
        CHECK (status IN ('completed', 'pending', 'processing', 'upstream_failure', 'rejected', 'cancelled')),
    hold           BIGINT NOT NULL DEFAULT 0,
    cost           BIGINT NOT NULL DEFAULT 0,
    duration_ms    BIGINT,
    error_code     TEXT,
    error_message  TEXT,
    session_id     TEXT,
    trace_id       TEXT,
    end_user       TEXT,
    request_bytes  BIGINT,
    response_bytes BIGINT,
    purged_at_ms   BIGINT,
    PRIMARY KEY (org_id, id)
) {without_rowid};
-- Ids sort by time, so the key and these two serve every filter, in both directions, as ranges. Each further index would
-- be paid for by every call, so that one key's requests of any status are read as one range for each status.
CREATE INDEX requests_by_status ON requests (org_id, status, id);
CREATE INDEX requests_by_key_and_status ON requests (org_id, key_id, status, id);

-- Ended requests counted in slots of ten minutes, so that a summary reads hundreds of rows and not millions. Each is
-- counted four times: for its key and status, for the key, for the status, and for all; what is left open is ''.
CREATE TABLE usage_slots (
    org_id {id} NOT NULL,
    key_id {id} NOT NULL,
    status TEXT NOT NULL,
    slot   BIGINT NOT NULL,
    count  BIGINT NOT NULL,
    cost   BIGINT NOT NULL,
    PRIMARY KEY (org_id, key_id, status, slot)
) {without_rowid};

-- Double entry: each row moves an amount from one account to another and is never changed. A reference has at most one
-- hold and at most one end, which posts it or voids it: the primary key says so.
CREATE TABLE transfers (
    ref           {id} NOT NULL,             -- the request, or the credit, that money moved for
    step          TEXT NOT NULL CHECK (step IN ('credit', 'hold', 'end', 'loss')),
    kind          TEXT NOT NULL CHECK (kind IN ('credit', 'hold', 'post', 'void', 'loss')),
    org_id        {id} NOT NULL REFERENCES orgs (id),
    source        TEXT NOT NULL,
    target        TEXT NOT NULL,
    amount        BIGINT NOT NULL CHECK (amount >= 0),
    returned      BIGINT NOT NULL DEFAULT 0 CHECK (returned >= 0),  -- the unused part of a hold, back to available
    created_at_ms BIGINT NOT NULL,
    note          TEXT,
    PRIMARY KEY (ref, step)
) {without_rowid};

-- What a request and its answer said, kept apart so that a purge removes them and nothing else.
CREATE TABLE payloads (
    org_id     {id} NOT NULL,
    request_id {id} NOT NULL,
    request    {blob},
    response   {blob},
    PRIMARY KEY (org_id, request_id),
    FOREIGN KEY (org_id, request_id) REFERENCES requests (org_id, id)
);

-- Images and videos on their way; the row is the job.
CREATE TABLE generations (
    id              {id} PRIMARY KEY,
    org_id          {id} NOT NULL,
    task            TEXT NOT NULL,
    status          TEXT NOT NULL CHECK (status IN ('queued', 'in_progress', 'completed', 'failed')),
    model           TEXT NOT NULL,
    request         {blob},            -- canonical, as JSON; null once purged
    plan            {blob} NOT NULL,   -- options in order, with the prices of the moment of acceptance
    settled         {blob},            -- what was made, by whom and for how much; null until completed
    hold            BIGINT NOT NULL,
    created_at_ms   BIGINT NOT NULL,
    deadline_ms     BIGINT NOT NULL,
    completed_at_ms BIGINT,
    expires_at_ms   BIGINT,
    retention_seconds BIGINT NOT NULL,
    webhook_url     TEXT,
    idempotency_key TEXT,
    body_digest     {blob},
    error_code      TEXT,
    error_message   TEXT,
    progress        BIGINT NOT NULL DEFAULT 0,
    cancel_asked    BIGINT NOT NULL DEFAULT 0,
    lease_token     BIGINT NOT NULL DEFAULT 0,
    lease_until_ms  BIGINT NOT NULL DEFAULT 0,
    starts          BIGINT NOT NULL DEFAULT 0,
    FOREIGN KEY (org_id, id) REFERENCES requests (org_id, id)
);
CREATE UNIQUE INDEX generations_by_idempotency_key ON generations (org_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX generations_open ON generations (id) WHERE status IN ('queued', 'in_progress');
CREATE INDEX generations_by_org ON generations (org_id, task, id);

-- Each call to a provider on behalf of a generation: intent first, what became of it after.
CREATE TABLE attempts (
    id            {id} PRIMARY KEY,
    request_id    {id} NOT NULL REFERENCES generations (id),
    org_id        {id} NOT NULL,
    part          BIGINT NOT NULL,     -- which share of the n outputs this attempt is for
    choice        BIGINT NOT NULL,     -- index into the plan
    count         BIGINT NOT NULL,     -- outputs asked for
    provider      TEXT NOT NULL,
    state         TEXT NOT NULL
        CHECK (state IN ('intent', 'submitted', 'made', 'failed', 'unknown', 'cancelled')),
    upstream_id   TEXT,
    ref           {blob},
    kind          TEXT,
    message       TEXT,
    cost          BIGINT,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL
);
CREATE INDEX attempts_by_request ON attempts (request_id, id);
CREATE UNIQUE INDEX attempts_by_upstream_id ON attempts (provider, upstream_id) WHERE upstream_id IS NOT NULL;

CREATE TABLE media (
    id            {id} PRIMARY KEY,
    org_id        {id} NOT NULL,
    request_id    {id} NOT NULL,
    role          TEXT NOT NULL CHECK (role IN ('output', 'image', 'mask', 'reference')),
    position      BIGINT NOT NULL,
    content_type  TEXT NOT NULL,
    size_bytes    BIGINT NOT NULL,
    sha256        {blob} NOT NULL,
    width         BIGINT,
    height        BIGINT,
    revised_prompt TEXT,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    FOREIGN KEY (org_id, request_id) REFERENCES requests (org_id, id)
);
CREATE INDEX media_by_request ON media (request_id, role, position);
CREATE INDEX media_by_expiry ON media (expires_at_ms);

-- Webhook messages: written in the transaction that settles, delivered afterwards.
CREATE TABLE messages (
    id            {id} PRIMARY KEY,
    org_id        {id} NOT NULL,
    request_id    {id} NOT NULL UNIQUE,
    event         TEXT NOT NULL,
    url           TEXT NOT NULL,
    body          {blob} NOT NULL,
    state         TEXT NOT NULL CHECK (state IN ('waiting', 'delivered', 'exhausted')),
    tries         BIGINT NOT NULL DEFAULT 0,
    next_at_ms    BIGINT NOT NULL,
    lease_token   BIGINT NOT NULL DEFAULT 0,
    last_result   TEXT,
    created_at_ms BIGINT NOT NULL,
    ended_at_ms   BIGINT,
    FOREIGN KEY (org_id, request_id) REFERENCES requests (org_id, id)
);
CREATE INDEX messages_waiting ON messages (next_at_ms) WHERE state = 'waiting';
CREATE INDEX messages_by_org ON messages (org_id, id);
CREATE INDEX messages_by_state ON messages (state);  -- to count them

-- Small facts about this installation, such as the id of its first organization.
CREATE TABLE facts (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
