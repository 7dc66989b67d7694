-- The schema. Times are milliseconds since 1970 (UTC), money is in nano-dollars, JSON is stored as text.
-- Every table with data of an organization has a column org_id.

CREATE TABLE orgs (
    id                  {id} PRIMARY KEY,
    name                TEXT NOT NULL,
    billing             TEXT NOT NULL CHECK (billing IN ('prepaid', 'postpaid')),
    -- Sums over `transfers`, stored here so that one conditional UPDATE can refuse an overdraft.
    available           BIGINT NOT NULL DEFAULT 0,
    held                BIGINT NOT NULL DEFAULT 0 CHECK (held >= 0),
    secret              {blob},  -- signs webhooks, encrypted; null until the first webhook needs it
    old_secret          {blob},  -- the secret before the last rotation; signs too until old_secret_until_ms
    old_secret_until_ms BIGINT,
    nanos_per_month     BIGINT,  -- most that all keys together may spend in a month (UTC); null: no limit
    storage_bytes       BIGINT,  -- most bytes of stored files; 0: no limit; null: as the settings say
    created_at_ms       BIGINT NOT NULL,
    CHECK (billing = 'postpaid' OR available >= 0)
);

CREATE TABLE keys (
    id                  {id} PRIMARY KEY,
    org_id              {id} NOT NULL REFERENCES orgs (id),
    name                TEXT,
    last_four           TEXT NOT NULL,
    digest              {blob} NOT NULL UNIQUE,
    scopes              TEXT NOT NULL DEFAULT '',
    status              TEXT NOT NULL CHECK (status IN ('active', 'revoked')),
    requests_per_minute BIGINT,
    concurrent_requests BIGINT,
    nanos_per_day       BIGINT,
    nanos_per_month     BIGINT,
    models              TEXT,   -- that the key may use, as a JSON list; null: all
    replay_mode         TEXT,
    expires_at_ms       BIGINT,
    created_at_ms       BIGINT NOT NULL,
    revoked_at_ms       BIGINT
);
CREATE INDEX keys_by_org ON keys (org_id, id);

-- One row per accepted or rejected call, as listed by GET /v1/requests.
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
    process_id     {id},  -- chat calls with a hold: the process that handles the call
    kind           TEXT CHECK (kind IN ('image', 'edit', 'upscale', 'video', 'chat')),
    provider       TEXT,    -- that served the request, or was last asked
    upstream_model TEXT,    -- that provider's own name of the model
    input_tokens   BIGINT,  -- with the cached ones
    cached_tokens  BIGINT,
    output_tokens  BIGINT,
    cost_lines     TEXT,    -- what was priced, as JSON; before the cost was limited to the hold
    attempts       TEXT,    -- the failed attempts of a chat call, as JSON; those of generations are rows
    PRIMARY KEY (org_id, id)
) {without_rowid};
-- Ids sort by time, so the primary key and these indexes serve every filter in both directions as ranges of ids; of
-- several filters the most selective one chooses the index. There is no index by key alone, because every call would pay
-- for it: a key's requests of all statuses are read as one range per status.
CREATE INDEX requests_by_status ON requests (org_id, status, id);
CREATE INDEX requests_by_key_and_status ON requests (org_id, key_id, status, id);
CREATE INDEX requests_by_model ON requests (org_id, model, id) WHERE model IS NOT NULL;
CREATE INDEX requests_by_provider ON requests (org_id, provider, id) WHERE provider IS NOT NULL;
CREATE INDEX requests_by_kind ON requests (org_id, kind, id) WHERE kind <> 'chat';
CREATE INDEX requests_by_user ON requests (org_id, end_user, id) WHERE end_user IS NOT NULL;

-- Processes that handle chat calls. Each renews its lease; the open chat calls of one whose lease has expired are ended.
CREATE TABLE processes (
    id             {id} PRIMARY KEY,
    lease_until_ms BIGINT NOT NULL
);

-- Counts and costs of ended requests per ten minutes, so that a summary reads hundreds of rows instead of millions. A
-- request is counted four times: by key and status, by key, by status, and in total. '' stands for any key or status.
CREATE TABLE usage_slots (
    org_id {id} NOT NULL,
    key_id {id} NOT NULL,
    status TEXT NOT NULL,
    slot   BIGINT NOT NULL,
    count  BIGINT NOT NULL,
    cost   BIGINT NOT NULL,
    PRIMARY KEY (org_id, key_id, status, slot)
) {without_rowid};

-- Double entry: each row moves an amount from one account to another. Rows are never changed. The primary key allows
-- one hold and one end (capture or release) per reference.
CREATE TABLE transfers (
    ref           {id} NOT NULL,             -- id of the request, attempt or credit
    step          TEXT NOT NULL CHECK (step IN ('credit', 'hold', 'end', 'loss')),
    kind          TEXT NOT NULL CHECK (kind IN ('credit', 'hold', 'capture', 'release', 'loss')),
    org_id        {id} NOT NULL REFERENCES orgs (id),
    source        TEXT NOT NULL,
    target        TEXT NOT NULL,
    amount        BIGINT NOT NULL CHECK (amount >= 0),
    returned      BIGINT NOT NULL DEFAULT 0 CHECK (returned >= 0),  -- the unused part of a hold, available again
    created_at_ms BIGINT NOT NULL,
    note          TEXT,
    PRIMARY KEY (ref, step)
) {without_rowid};

-- Images and videos. The row is also the job: a worker leases it and runs it.
CREATE TABLE generations (
    id                {id} PRIMARY KEY,  -- the id of its request
    org_id            {id} NOT NULL,
    task              TEXT NOT NULL,
    status            TEXT NOT NULL CHECK (status IN ('queued', 'in_progress', 'completed', 'failed')),
    model             TEXT NOT NULL,
    request           {blob},            -- the canonical request as JSON; null after a purge
    plan              {blob} NOT NULL,   -- the candidates in order, with their prices at acceptance, as JSON
    result            {blob},            -- outputs, provider and cost as JSON; null until completed
    hold              BIGINT NOT NULL,
    created_at_ms     BIGINT NOT NULL,
    deadline_ms       BIGINT NOT NULL,
    completed_at_ms   BIGINT,
    expires_at_ms     BIGINT,
    retention_seconds BIGINT NOT NULL,
    webhook_url       TEXT,
    idempotency_key   TEXT,
    body_digest       {blob},
    error_code        TEXT,
    error_message     TEXT,
    progress          BIGINT NOT NULL DEFAULT 0,
    cancel_requested  BIGINT NOT NULL DEFAULT 0,
    lease_token       BIGINT NOT NULL DEFAULT 0,
    lease_until_ms    BIGINT NOT NULL DEFAULT 0,  -- 0: not leased, or the lease was given back
    crashes           BIGINT NOT NULL DEFAULT 0,  -- workers lost in a row without progress between them
    payload_expires_at_ms BIGINT,                 -- when the texts of an ended generation are removed; null afterwards
    trace_context     TEXT,                       -- the call's place in a trace, as JSON; null without tracing
    FOREIGN KEY (org_id, id) REFERENCES requests (org_id, id)
);
CREATE UNIQUE INDEX generations_by_idempotency_key ON generations (org_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX generations_open ON generations (id) WHERE status IN ('queued', 'in_progress');
CREATE INDEX generations_by_org ON generations (org_id, task, id);
CREATE INDEX generations_by_payload_expiry ON generations (payload_expires_at_ms)
    WHERE payload_expires_at_ms IS NOT NULL;

-- The bodies of chat calls and their responses, stored only where the setting `payloads` is `all`.
CREATE TABLE payloads (
    org_id        {id} NOT NULL,
    request_id    {id} NOT NULL,
    request       {blob} NOT NULL,
    response      {blob} NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    PRIMARY KEY (org_id, request_id),
    FOREIGN KEY (org_id, request_id) REFERENCES requests (org_id, id)
);
CREATE INDEX payloads_by_expiry ON payloads (expires_at_ms);

-- Calls to a provider for part of a generation. The row is inserted before the call is sent and updated afterwards.
CREATE TABLE attempts (
    id              {id} PRIMARY KEY,
    request_id      {id} NOT NULL REFERENCES generations (id),
    org_id          {id} NOT NULL,
    round           BIGINT NOT NULL,  -- counts how often all candidates were tried, from 1
    part            BIGINT NOT NULL,  -- which part of the n outputs this attempt is for
    candidate       BIGINT NOT NULL,  -- index into the plan's candidates
    count           BIGINT NOT NULL,  -- number of outputs requested
    provider        TEXT NOT NULL,
    upstream_model  TEXT NOT NULL,    -- the provider's own name of the model
    state           TEXT NOT NULL
        CHECK (state IN ('intent', 'submitted', 'completed', 'failed', 'unknown', 'cancelled')),
    upstream_id     TEXT,             -- the provider's id for the job
    ref             {blob},           -- what the provider needs to find the job again, as JSON
    failure_kind    TEXT,
    failure_message TEXT,
    http_status     BIGINT,           -- of the response that was the failure
    cost            BIGINT,
    check_at_ms     BIGINT,           -- when to ask about a job that was given up; null: there is nothing to ask
    checks          BIGINT NOT NULL DEFAULT 0,  -- how often it was asked about since then
    created_at_ms   BIGINT NOT NULL,
    updated_at_ms   BIGINT NOT NULL
);
CREATE UNIQUE INDEX attempts_by_request ON attempts (request_id, candidate, part, round);
CREATE UNIQUE INDEX attempts_by_upstream_id ON attempts (provider, upstream_id) WHERE upstream_id IS NOT NULL;
CREATE INDEX attempts_to_check ON attempts (check_at_ms) WHERE check_at_ms IS NOT NULL;

-- Stored files: outputs of a generation and inputs of a request.
CREATE TABLE media (
    id             {id} PRIMARY KEY,
    org_id         {id} NOT NULL,
    request_id     {id} NOT NULL,
    role           TEXT NOT NULL CHECK (role IN ('output', 'image', 'mask', 'reference')),
    position       BIGINT NOT NULL,
    content_type   TEXT NOT NULL,
    size_bytes     BIGINT NOT NULL,
    sha256         {blob} NOT NULL,
    width          BIGINT,
    height         BIGINT,
    revised_prompt TEXT,
    created_at_ms  BIGINT NOT NULL,
    expires_at_ms  BIGINT NOT NULL,
    FOREIGN KEY (org_id, request_id) REFERENCES requests (org_id, id)
);
CREATE INDEX media_by_request ON media (request_id, role, position);
CREATE INDEX media_by_expiry ON media (expires_at_ms);
CREATE INDEX media_by_org ON media (org_id, size_bytes);  -- for adding them up

-- Webhook messages. A message is inserted in the transaction that ends its generation, and delivered afterwards.
CREATE TABLE messages (
    id            {id} PRIMARY KEY,
    org_id        {id} NOT NULL,  -- 'operator' for an alert
    request_id    {id} UNIQUE,  -- null: an alert to the operator
    event         TEXT NOT NULL,
    url           TEXT NOT NULL,
    body          {blob} NOT NULL,
    state         TEXT NOT NULL CHECK (state IN ('waiting', 'delivered', 'exhausted')),
    deliveries    BIGINT NOT NULL DEFAULT 0,  -- deliveries whose result was recorded
    unrecorded    BIGINT NOT NULL DEFAULT 0,  -- deliveries started since the last recorded result
    next_at_ms    BIGINT NOT NULL,            -- when the next delivery is due; during one: when its lease ends
    lease_token   BIGINT NOT NULL DEFAULT 0,
    last_result   TEXT,
    created_at_ms BIGINT NOT NULL,
    ended_at_ms   BIGINT,
    trace_context TEXT,                       -- as in generations
    FOREIGN KEY (org_id, request_id) REFERENCES requests (org_id, id)
);
CREATE INDEX messages_waiting ON messages (next_at_ms) WHERE state = 'waiting';
CREATE INDEX messages_by_org ON messages (org_id, id);
CREATE INDEX messages_by_state ON messages (state);  -- for counting them

-- Tries to deliver a message, with the receiver's response. Its body is not stored.
CREATE TABLE deliveries (
    message_id    {id} NOT NULL REFERENCES messages (id),
    number        BIGINT NOT NULL,  -- the message's lease_token; grows, with gaps
    started_at_ms BIGINT NOT NULL,
    ended_at_ms   BIGINT NOT NULL,
    http_status   BIGINT,           -- null when no response came
    result        TEXT NOT NULL,
    PRIMARY KEY (message_id, number)
) {without_rowid};

-- Recorded calls: the request, its result and its duration.
CREATE TABLE recordings (
    id            {id} PRIMARY KEY,
    org_id        {id} NOT NULL REFERENCES orgs (id),
    request_id    {id},                -- the request that was recorded; null when imported
    imported_id   {id},                -- the id in the file that it was imported from
    import_digest {blob},              -- digest of the contents of that file, so that it is imported once
    kind          TEXT NOT NULL CHECK (kind IN ('image', 'edit', 'video')),
    task          TEXT NOT NULL,
    model         TEXT NOT NULL,
    standard      {blob} NOT NULL,     -- digest of the canonical parameters, for the match `standard`
    strict        {blob} NOT NULL,     -- digest of the body's bytes, for the match `strict`
    request       {blob} NOT NULL,     -- parameters by name, as JSON
    result        {blob} NOT NULL,     -- as in generations, as JSON
    duration_ms   BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL
);
CREATE INDEX recordings_by_standard ON recordings (org_id, kind, standard, id);
CREATE INDEX recordings_by_strict ON recordings (org_id, kind, strict, id);
CREATE INDEX recordings_by_org ON recordings (org_id, id);
CREATE INDEX recordings_by_request ON recordings (request_id) WHERE request_id IS NOT NULL;
CREATE INDEX recordings_by_imported_id ON recordings (org_id, imported_id) WHERE imported_id IS NOT NULL;
CREATE UNIQUE INDEX recordings_by_import_digest ON recordings (org_id, import_digest)
    WHERE import_digest IS NOT NULL;

CREATE TABLE recording_files (
    recording_id  {id} NOT NULL REFERENCES recordings (id),
    position      BIGINT NOT NULL,
    media_id      {id} NOT NULL,
    content_type  TEXT NOT NULL,
    size_bytes    BIGINT NOT NULL,
    sha256        {blob} NOT NULL,
    PRIMARY KEY (recording_id, position)
);

-- Recordings that are being made: which request makes it. Equal calls wait for it instead of making it again.
CREATE TABLE recording_claims (
    org_id     {id} NOT NULL,
    kind       TEXT NOT NULL,
    digest     {blob} NOT NULL,
    request_id {id} NOT NULL,
    PRIMARY KEY (org_id, kind, digest)
);

-- Models without a table in the source, as their providers' own catalogues described them. The last good copy stays.
CREATE TABLE live_models (
    provider    TEXT NOT NULL,
    upstream    TEXT NOT NULL,      -- the provider's name for the model
    description {blob} NOT NULL,    -- as JSON
    asked_at_ms BIGINT NOT NULL,    -- when the catalogue said so
    PRIMARY KEY (provider, upstream)
);
CREATE INDEX live_models_by_age ON live_models (asked_at_ms);

-- Facts about this installation by name, such as the id of its first organization.
CREATE TABLE facts (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
