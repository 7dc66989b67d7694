-- Webhook messages and the secrets that sign them.

-- name: get_secrets
-- The sealed signing secret of an organization, and the one before it.
SELECT secret, old_secret, old_secret_until_ms FROM orgs WHERE id = :org_id;

-- name: set_first_secret
-- Give an organization its secret; the first of many to try wins.
UPDATE orgs SET secret = :secret WHERE id = :org_id AND secret IS NULL;

-- name: replace_secret
-- A new secret; the one until now goes on signing beside it for a while.
UPDATE orgs SET old_secret = secret, old_secret_until_ms = :until_ms, secret = :secret WHERE id = :org_id;

-- name: list_secrets
-- Every sealed secret, for sealing them again under a new master secret.
SELECT id, secret, old_secret FROM orgs WHERE secret IS NOT NULL;

-- name: reseal_secrets
-- The same secrets, sealed anew, unless they were changed in between.
UPDATE orgs SET secret = :secret, old_secret = :old_secret WHERE id = :id AND secret = :seen;

-- name: add_message
-- Queue an event for delivery at once; a request has one event only.
INSERT INTO messages (id, org_id, request_id, event, url, body, state, next_at_ms, created_at_ms)
VALUES (:id, :org_id, :request_id, :event, :url, :body, 'waiting', 0, :at_ms)
ON CONFLICT (request_id) DO NOTHING;

-- name: claim_messages [sqlite]
-- Take messages that are due and whose hosts are not busy. Whoever dies with one leaves it to the next when the lease
-- ends. However many wait, only as many are looked at as the index brings up first.
UPDATE messages SET unrecorded = unrecorded + 1, lease_token = lease_token + 1, next_at_ms = :until_ms
WHERE id IN (
    SELECT id FROM messages INDEXED BY messages_waiting
    WHERE state = 'waiting' AND next_at_ms <= :now_ms
    AND substr(substr(url, instr(url, '//') + 2), 1, instr(substr(url, instr(url, '//') + 2), '/') - 1)
        NOT IN (SELECT value FROM json_each(:busy_hosts))
    ORDER BY next_at_ms LIMIT :limit
)
RETURNING id, org_id, url, body, deliveries, unrecorded, lease_token;

-- name: claim_messages [postgres]
-- Take messages that are due and whose hosts are not busy. Whoever dies with one leaves it to the next when the lease
-- ends. However many wait, only as many are looked at as the index brings up first.
WITH due AS MATERIALIZED (
    SELECT id FROM messages
    WHERE state = 'waiting' AND next_at_ms <= :now_ms
    AND split_part(url, '/', 3) NOT IN (SELECT json_array_elements_text(CAST(:busy_hosts AS json)))
    ORDER BY next_at_ms LIMIT :limit
    FOR UPDATE SKIP LOCKED
)
UPDATE messages SET unrecorded = unrecorded + 1, lease_token = lease_token + 1, next_at_ms = :until_ms
FROM due WHERE messages.id = due.id
RETURNING messages.id, org_id, url, body, deliveries, unrecorded, lease_token;

-- name: free_messages
-- Whoever leased them is gone. Those that this happened to several times wait for their lease to end all the same.
UPDATE messages SET next_at_ms = :now_ms
WHERE state = 'waiting' AND unrecorded BETWEEN 1 AND 3 AND next_at_ms > :now_ms;

-- name: recall_messages [sqlite]
-- A moment further off than any wait can be was written by a clock that has been set back since.
UPDATE messages INDEXED BY messages_waiting SET next_at_ms = :now_ms
WHERE state = 'waiting' AND next_at_ms > :far_ms;

-- name: recall_messages [postgres]
-- A moment further off than any wait can be was written by a clock that has been set back since.
UPDATE messages SET next_at_ms = :now_ms WHERE state = 'waiting' AND next_at_ms > :far_ms;

-- name: get_next_message_due [sqlite]
-- When the next message that is not due yet will be.
SELECT MIN(next_at_ms) AS at_ms FROM messages INDEXED BY messages_waiting
WHERE state = 'waiting' AND next_at_ms > :now_ms;

-- name: get_next_message_due [postgres]
-- When the next message that is not due yet will be.
SELECT MIN(next_at_ms) AS at_ms FROM messages WHERE state = 'waiting' AND next_at_ms > :now_ms;

-- name: end_message
-- Delivered, or given up; only by whoever holds the lease.
UPDATE messages SET state = :state, deliveries = :deliveries, last_result = :result, ended_at_ms = :at_ms
WHERE id = :id AND lease_token = :lease_token AND state = 'waiting';

-- name: postpone_message
-- Not delivered yet; only by whoever holds the lease.
UPDATE messages SET deliveries = :deliveries, unrecorded = :unrecorded, next_at_ms = :next_at_ms, last_result = :result
WHERE id = :id AND lease_token = :lease_token AND state = 'waiting';

-- name: requeue_message
-- Deliver an ended message again, from the beginning.
UPDATE messages SET state = 'waiting', deliveries = 0, unrecorded = 0, next_at_ms = 0, ended_at_ms = NULL
WHERE id = :id AND state IN ('delivered', 'exhausted');

-- name: purge_message
-- Forget the words of an event, which may quote what was asked for.
UPDATE messages SET body = :body WHERE request_id = :request_id AND org_id = :org_id;

-- name: get_message
-- One message, for operators.
SELECT id, org_id, request_id, event, url, state, deliveries, last_result, created_at_ms, ended_at_ms
FROM messages WHERE id = :id;

-- name: list_messages
-- The newest messages in a state, for operators.
SELECT id, org_id, request_id, event, url, state, deliveries, last_result, created_at_ms, ended_at_ms
FROM messages WHERE CAST(:state AS TEXT) IS NULL OR state = :state ORDER BY id DESC LIMIT :limit;

-- name: count_messages
-- How many messages there are in each state.
SELECT state, COUNT(*) AS count FROM messages GROUP BY state;
