-- name: add_payload
-- Store the bodies of a chat call, unless they are stored already.
INSERT INTO payloads (org_id, request_id, request, response, prompt, expires_at_ms)
VALUES (:org_id, :request_id, :request, :response, :prompt, :expires_at_ms)
ON CONFLICT (org_id, request_id) DO NOTHING;

-- name: get_payload
-- The stored bodies of a chat call.
SELECT request, response, expires_at_ms FROM payloads WHERE org_id = :org_id AND request_id = :request_id;

-- name: delete_payload
-- Remove the stored bodies of one chat call.
DELETE FROM payloads WHERE org_id = :org_id AND request_id = :request_id;

-- name: delete_expired_payloads
-- Remove the stored bodies of chat calls that have expired.
DELETE FROM payloads WHERE (org_id, request_id) IN (
    SELECT org_id, request_id FROM payloads WHERE expires_at_ms <= :now_ms
    ORDER BY org_id, request_id FOR UPDATE SKIP LOCKED
);

-- name: list_expired_payloads
-- Ended generations whose payloads have expired. Those whose webhook message is not delivered yet come later.
SELECT {generation_columns} FROM generations WHERE payload_expires_at_ms <= :now_ms
    AND NOT EXISTS (SELECT 1 FROM messages WHERE messages.request_id = generations.id AND messages.state = 'waiting')
ORDER BY payload_expires_at_ms LIMIT :limit;

-- name: strip_generation
-- Replace what a generation stores by versions without texts.
UPDATE generations SET request = :request, plan = :plan, result = :result, error_message = :error_message,
    payload_expires_at_ms = NULL
WHERE id = :id;

-- name: strip_attempts
-- Remove providers' messages, which may quote the request.
UPDATE attempts SET failure_message = NULL WHERE id IN (
    SELECT id FROM attempts WHERE request_id = :request_id ORDER BY id FOR NO KEY UPDATE
);

-- name: strip_media
-- Remove the prompts that providers revised.
UPDATE media SET revised_prompt = NULL WHERE id IN (
    SELECT id FROM media WHERE request_id = :request_id ORDER BY id FOR NO KEY UPDATE
);

-- name: strip_request
-- Replace a provider's message, which may quote the request.
UPDATE requests SET error_message = :error_message
WHERE id = :id AND org_id = :org_id AND error_message IS NOT NULL;
