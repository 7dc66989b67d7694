-- People: who may sign in, what they may do in which organization, and their sessions.

CREATE TABLE users (
    id             {id} PRIMARY KEY,
    issuer         TEXT NOT NULL,
    subject        TEXT NOT NULL,     -- the issuer's own id of the person
    email          TEXT,              -- in lower case
    email_verified BIGINT NOT NULL,
    name           TEXT,
    status         TEXT NOT NULL CHECK (status IN ('active', 'deactivated')),
    created_at_ms  BIGINT NOT NULL,
    seen_at_ms     BIGINT NOT NULL,   -- when the person last signed in
    UNIQUE (issuer, subject)
);

-- What a person may do. An operator is a member of no organization: org_id is *.
CREATE TABLE members (
    user_id       {id} NOT NULL REFERENCES users (id),
    org_id        {id} NOT NULL,
    role          TEXT NOT NULL CHECK (role IN ('viewer', 'member', 'admin', 'operator')),
    source        TEXT NOT NULL CHECK (source IN ('groups', 'granted')),
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (user_id, org_id)
) {without_rowid};
CREATE INDEX members_by_org ON members (org_id, user_id);

ALTER TABLE keys ADD COLUMN user_id {id};  -- whose key it is; it stops with the person
ALTER TABLE keys ADD COLUMN kind TEXT;     -- session: nobody has it, a person's sessions act through it; null: a key
CREATE INDEX keys_by_user ON keys (user_id, org_id) WHERE user_id IS NOT NULL;

CREATE TABLE sessions (
    digest        {blob} PRIMARY KEY,  -- of what the cookie holds
    id            {id} NOT NULL UNIQUE,
    key_id        {id} NOT NULL REFERENCES keys (id),  -- through which it acts
    user_id       {id},                -- null: signed in with the key itself
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    address       TEXT,
    agent         TEXT
);
CREATE INDEX sessions_by_key ON sessions (key_id);
CREATE INDEX sessions_by_user ON sessions (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX sessions_by_expiry ON sessions (expires_at_ms);

CREATE TABLE invitations (
    id            {id} PRIMARY KEY,
    digest        {blob} NOT NULL UNIQUE,  -- of the text in the link
    org_id        {id} NOT NULL,           -- * for an operator
    email         TEXT NOT NULL,           -- in lower case
    role          TEXT NOT NULL CHECK (role IN ('viewer', 'member', 'admin', 'operator')),
    created_by    TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    used_at_ms    BIGINT
);
CREATE INDEX invitations_by_org ON invitations (org_id, id);
