-- Webhook messages, and the secrets that sign them.

-- name: get_secrets
-- The encrypted signing secret of an organization, and the one before it.
SELECT id, secret, old_secret, old_secret_until_ms FROM orgs WHERE id = :org_id;

-- name: set_first_secret
-- Set the first signing secret of an organization. Changes nothing if another process was first.
UPDATE orgs SET secret = :secret WHERE id = :org_id AND secret IS NULL;

-- name: replace_secret
-- Set a new signing secret. The former one signs too until :until_ms.
UPDATE orgs SET old_secret = secret, old_secret_until_ms = :until_ms, secret = :secret WHERE id = :org_id;

-- name: list_secrets
-- All encrypted signing secrets.
SELECT id, secret, old_secret, old_secret_until_ms FROM orgs WHERE secret IS NOT NULL ORDER BY id;

-- name: reseal_secrets
-- Store the same secrets encrypted with a newer master key, unless they were replaced meanwhile.
UPDATE orgs SET secret = :secret, old_secret = :old_secret WHERE id = :id AND secret = :seen;

-- name: add_message
-- Add a message that is due at once, or leased by the process that adds it. A request has one message; a second is
-- ignored. An alert has no request.
INSERT INTO messages (id, org_id, request_id, event, url, body, state, unrecorded, next_at_ms, lease_token,
    created_at_ms, trace_context, drops)
VALUES (:id, :org_id, :request_id, :event, :url, :body, 'waiting', :unrecorded, :next_at_ms, :lease_token,
    :at_ms, :trace_context, :drops)
ON CONFLICT (request_id) DO NOTHING;

-- name: claim_messages [sqlite]
-- Lease due messages, except those to busy hosts and of busy organizations. A message whose process dies is due again when
-- its lease ends. Messages are read in the order of the index until :limit are found, so the time does not grow with the
-- number that wait, unless there are fewer.
UPDATE messages SET unrecorded = unrecorded + 1, lease_token = lease_token + 1, next_at_ms = :until_ms
WHERE id IN (
    SELECT id FROM messages INDEXED BY messages_waiting
    WHERE state = 'waiting' AND next_at_ms <= :now_ms
    AND substr(substr(url, instr(url, '//') + 2), 1, instr(substr(url, instr(url, '//') + 2), '/') - 1)
        NOT IN (SELECT value FROM json_each(:busy_hosts))
    AND org_id NOT IN (SELECT value FROM json_each(:busy_orgs))
    ORDER BY next_at_ms LIMIT :limit
)
RETURNING id, org_id, url, body, deliveries, lease_token, trace_context, drops;

-- name: claim_messages [postgres]
-- Lease due messages, except those to busy hosts and of busy organizations. A message whose process dies is due again when
-- its lease ends. Messages are read in the order of the index until :limit are found, so the time does not grow with the
-- number that wait, unless there are fewer.
WITH due AS MATERIALIZED (
    SELECT id FROM messages
    WHERE state = 'waiting' AND next_at_ms <= :now_ms
    AND split_part(url, '/', 3) NOT IN (SELECT json_array_elements_text(CAST(:busy_hosts AS json)))
    AND org_id NOT IN (SELECT json_array_elements_text(CAST(:busy_orgs AS json)))
    ORDER BY next_at_ms LIMIT :limit
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE messages SET unrecorded = unrecorded + 1, lease_token = lease_token + 1, next_at_ms = :until_ms
FROM due WHERE messages.id = due.id
RETURNING messages.id, org_id, url, body, deliveries, lease_token, trace_context, drops;

-- name: renew_message_leases [sqlite]
-- Extend the leases of messages that are being delivered. One whose result was recorded meanwhile keeps its schedule.
UPDATE messages SET next_at_ms = :until_ms FROM json_each(:leases) AS one
WHERE messages.id = one.value ->> 0 AND lease_token = one.value ->> 1 AND state = 'waiting' AND unrecorded > 0;

-- name: renew_message_leases [postgres]
-- Extend the leases of messages that are being delivered. One whose result was recorded meanwhile keeps its schedule, and
-- one whose result is being recorded needs no lease.
WITH held AS MATERIALIZED (
    SELECT id FROM messages JOIN json_array_elements(CAST(:leases AS json)) AS one
        ON messages.id = one ->> 0 AND messages.lease_token = CAST(one ->> 1 AS BIGINT)
    WHERE state = 'waiting' AND unrecorded > 0
    ORDER BY id FOR NO KEY UPDATE OF messages SKIP LOCKED
)
UPDATE messages SET next_at_ms = :until_ms FROM held WHERE messages.id = held.id;

-- name: make_leased_messages_due
-- Make leased messages due now, because the process that leased them is gone.
UPDATE messages SET next_at_ms = :now_ms WHERE id IN (
    SELECT id FROM messages WHERE state = 'waiting' AND unrecorded > 0 AND next_at_ms > :now_ms
    ORDER BY id FOR NO KEY UPDATE
);

-- name: make_far_messages_due [sqlite]
-- Make messages due now whose time is too far away. Such a time was written before the clock was set back.
UPDATE messages INDEXED BY messages_waiting SET next_at_ms = :now_ms
WHERE state = 'waiting' AND next_at_ms > :far_ms;

-- name: make_far_messages_due [postgres]
-- Make messages due now whose time is too far away. Such a time was written before the clock was set back.
UPDATE messages SET next_at_ms = :now_ms WHERE id IN (
    SELECT id FROM messages WHERE state = 'waiting' AND next_at_ms > :far_ms ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
);

-- name: get_next_message_due [sqlite]
-- When the next message becomes due.
SELECT MIN(next_at_ms) AS at_ms FROM messages INDEXED BY messages_waiting
WHERE state = 'waiting' AND next_at_ms > :now_ms;

-- name: get_next_message_due [postgres]
-- When the next message becomes due.
SELECT MIN(next_at_ms) AS at_ms FROM messages WHERE state = 'waiting' AND next_at_ms > :now_ms;

-- name: end_message
-- Mark a leased message as delivered or exhausted. The URL of a request that was purged meanwhile is forgotten.
UPDATE messages SET state = :state, deliveries = :deliveries, last_result = :result, ended_at_ms = :at_ms,
    url = CASE WHEN EXISTS (
        SELECT 1 FROM requests r
        WHERE r.org_id = messages.org_id AND r.id = messages.request_id AND r.purged_at_ms IS NOT NULL
    ) THEN '' ELSE url END
WHERE id = :id AND lease_token = :lease_token AND state = 'waiting';

-- name: postpone_message
-- Schedule the next delivery of a leased message.
UPDATE messages SET deliveries = :deliveries, unrecorded = 0, next_at_ms = :next_at_ms, last_result = :result
WHERE id = :id AND lease_token = :lease_token AND state = 'waiting';

-- name: add_delivery
-- Add a try to deliver a message.
INSERT INTO deliveries (message_id, number, started_at_ms, ended_at_ms, http_status, result)
VALUES (:message_id, :number, :started_at_ms, :ended_at_ms, :http_status, :result)
ON CONFLICT (message_id, number) DO NOTHING;

-- name: requeue_message
-- Start the deliveries of an ended message over.
UPDATE messages SET state = 'waiting', deliveries = 0, drops = NULL, unrecorded = 0, next_at_ms = 0, ended_at_ms = NULL
WHERE id = :id AND (CAST(:org_id AS TEXT) IS NULL OR org_id = :org_id) AND state IN ('delivered', 'exhausted')
    AND url <> '';

-- name: send_waiting_message_now
-- Make the next delivery of a message due, unless one is under way; those that were made still count.
UPDATE messages SET next_at_ms = 0
WHERE id = :id AND (CAST(:org_id AS TEXT) IS NULL OR org_id = :org_id) AND state = 'waiting' AND unrecorded = 0;

-- name: requeue_exhausted_messages
-- Start the deliveries of some exhausted messages over; a null organization does not filter.
UPDATE messages SET state = 'waiting', deliveries = 0, drops = NULL, unrecorded = 0, next_at_ms = 0, ended_at_ms = NULL WHERE id IN (
    SELECT id FROM messages
    WHERE state = 'exhausted' AND (CAST(:org_id AS TEXT) IS NULL OR org_id = :org_id) AND url <> ''
    ORDER BY id LIMIT :limit FOR NO KEY UPDATE
);

-- name: purge_message
-- Replace the body of a message, whose text may quote the request.
UPDATE messages SET body = :body WHERE request_id = :request_id AND org_id = :org_id;

-- name: purge_message_url
-- Forget where a message was delivered to. One that is still to be delivered keeps its URL until then.
UPDATE messages SET url = CASE WHEN state = 'waiting' THEN url ELSE '' END
WHERE request_id = :request_id AND org_id = :org_id;

-- name: get_message
-- One message, for operators.
SELECT id, org_id, request_id, event, url, state, deliveries, last_result, next_at_ms, created_at_ms, ended_at_ms
FROM messages WHERE id = :id;

-- name: list_messages
-- The newest messages, of one state or of all, for operators.
SELECT id, org_id, request_id, event, url, state, deliveries, last_result, next_at_ms, created_at_ms, ended_at_ms
FROM messages WHERE CAST(:state AS TEXT) IS NULL OR state = :state ORDER BY id DESC LIMIT :limit;

-- name: get_message_of_org
-- One message of an organization, with its body.
SELECT id, org_id, request_id, event, url, state, deliveries, last_result, next_at_ms, created_at_ms, ended_at_ms, body
FROM messages WHERE id = :id AND org_id = :org_id;

-- name: list_{older|newer}_messages
-- A page {downwards|upwards} from an id; a null parameter does not filter.
SELECT id, org_id, request_id, event, url, state, deliveries, last_result, next_at_ms, created_at_ms, ended_at_ms
FROM messages INDEXED BY messages_by_org
WHERE org_id = :org_id AND id > :low AND id < :high AND (CAST(:state AS TEXT) IS NULL OR state = :state)
    AND (CAST(:event AS TEXT) IS NULL OR event = :event)
    AND (CAST(:request_id AS TEXT) IS NULL OR request_id = :request_id)
ORDER BY id {DESC|ASC} LIMIT :limit;

-- name: count_messages
-- Number of messages in each state.
SELECT state, COUNT(*) AS count FROM messages GROUP BY state;

-- name: get_oldest_message
-- When the oldest message was added that is not yet delivered; null if there is none.
SELECT MIN(created_at_ms) AS at_ms FROM messages WHERE state = 'waiting';

-- name: list_events_of_org
-- The events of all messages of an organization, oldest first.
SELECT event, body, created_at_ms FROM messages WHERE org_id = :org_id ORDER BY id;
