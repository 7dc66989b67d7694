-- Sessions of the pages. Each acts through a key.

-- name: add_session
-- Begin a session.
INSERT INTO sessions (digest, id, key_id, user_id, created_at_ms, expires_at_ms, idle_until_ms, address, agent)
VALUES (:digest, :id, :key_id, :user_id, :created_at_ms, :expires_at_ms, :idle_until_ms, :address, :agent);

-- name: get_session_caller
-- The caller of a session that has not ended, as `get_caller` has it.
SELECT {caller_columns},
    sessions.id AS session_id, sessions.user_id AS session_user_id, sessions.expires_at_ms AS session_expires_at_ms,
    sessions.idle_until_ms AS session_idle_until_ms, users.subject AS session_subject
FROM sessions JOIN keys ON keys.id = sessions.key_id JOIN orgs ON orgs.id = keys.org_id
LEFT JOIN users ON users.id = keys.user_id
WHERE sessions.digest = :digest AND sessions.expires_at_ms > :now_ms AND keys.status = 'active'
    AND (keys.user_id IS NULL OR users.status = 'active')
    AND (keys.expires_at_ms IS NULL OR keys.expires_at_ms > :now_ms);

-- name: set_session_used
-- Let the session of an operator last until it is idle again.
UPDATE sessions SET idle_until_ms = :idle_until_ms WHERE id = :id;

-- name: delete_session
-- End a session.
DELETE FROM sessions WHERE id = :id;

-- name: delete_sessions_of_key
-- End all sessions that act through a key.
DELETE FROM sessions WHERE key_id = :key_id;

-- name: delete_sessions_of_user
-- End all sessions of a person.
DELETE FROM sessions WHERE user_id = :user_id;

-- name: delete_older_sessions
-- End the sessions of a person that began until a moment.
DELETE FROM sessions WHERE user_id = :user_id AND created_at_ms <= :begun_until_ms;

-- name: delete_expired_sessions
-- Remove what is left of sessions that are over.
DELETE FROM sessions WHERE expires_at_ms <= :now_ms;

