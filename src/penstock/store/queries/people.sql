-- People, what they may do in which organization, and the keys through which their sessions act.

-- name: lock_user
-- A person by the issuer's id of them, locked until the end of the transaction.
SELECT id, status FROM users WHERE issuer = :issuer AND subject = :subject FOR NO KEY UPDATE;

-- name: lock_user_by_id
-- A person, locked until the end of the transaction.
SELECT id, status, email, name FROM users WHERE id = :id FOR NO KEY UPDATE;

-- name: add_user
-- Add a person who signs in for the first time.
INSERT INTO users (id, issuer, subject, email, email_verified, name, status, created_at_ms, seen_at_ms)
VALUES (:id, :issuer, :subject, :email, :email_verified, :name, 'active', :at_ms, :at_ms);

-- name: set_user_seen
-- What the issuer says about a person now.
UPDATE users SET email = :email, email_verified = :email_verified, name = :name, seen_at_ms = :at_ms WHERE id = :id;

-- name: set_user_status
-- Deactivate a person, or undo it.
UPDATE users SET status = :status WHERE id = :id;

-- name: get_user
-- One person.
SELECT id, email, name, status FROM users WHERE id = :id;

-- name: list_users
-- People, and what they may do: those of an organization and those without any role; null: everybody.
SELECT users.id, users.email, users.email_verified, users.name, users.status, users.created_at_ms, users.seen_at_ms,
    members.org_id, members.role, members.source
FROM users LEFT JOIN members ON members.user_id = users.id
WHERE CAST(:org_id AS TEXT) IS NULL OR members.org_id IS NULL OR members.org_id = :org_id
ORDER BY users.id, members.org_id LIMIT :limit;

-- name: list_users_by_email
-- People with a verified e-mail address.
SELECT id FROM users WHERE email = :email AND email_verified = 1 ORDER BY id;

-- name: list_memberships
-- What a person may do, by organization; the name is null for operators.
SELECT members.org_id, members.role, members.source, orgs.name
FROM members LEFT JOIN orgs ON orgs.id = members.org_id WHERE members.user_id = :user_id ORDER BY members.org_id;

-- name: set_membership
-- Say what a person may do in an organization.
INSERT INTO members (user_id, org_id, role, source, created_at_ms) VALUES (:user_id, :org_id, :role, :source, :at_ms)
ON CONFLICT (user_id, org_id) DO UPDATE SET role = excluded.role, source = excluded.source;

-- name: delete_membership
-- A person may do nothing in an organization any more.
DELETE FROM members WHERE user_id = :user_id AND org_id = :org_id;

-- name: get_session_key
-- The key through which a person's sessions act in an organization.
SELECT id FROM keys
WHERE user_id = :user_id AND org_id = :org_id AND kind = 'session' AND status = 'active' ORDER BY id LIMIT 1;

-- name: list_keys_of_user
-- The keys through which a person's sessions act, and those that the person has made.
SELECT id, org_id, scopes, kind, user_id FROM keys WHERE user_id = :user_id AND status = 'active' ORDER BY id;

-- name: add_session_key
-- Add a key for a person's sessions. Nobody knows a key with this digest.
INSERT INTO keys (id, org_id, name, last_four, digest, scopes, status, created_at_ms, user_id, kind)
VALUES (:id, :org_id, :name, '', :digest, :scopes, 'active', :at_ms, :user_id, 'session');

-- name: set_session_key
-- Change what a person's sessions may do.
UPDATE keys SET scopes = :scopes WHERE id = :id AND kind = 'session';

-- name: revoke_session_key
-- End what a person's sessions may do in an organization.
UPDATE keys SET status = 'revoked', revoked_at_ms = :at_ms WHERE id = :id AND kind = 'session' AND status = 'active';

-- name: move_session
-- Let a session act through another key of its person.
UPDATE sessions SET key_id = :key_id WHERE id = :id AND user_id = :user_id;
