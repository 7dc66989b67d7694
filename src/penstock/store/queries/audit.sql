-- Queries of the audit. Each returns the rows that break a rule; an empty result means that the rule holds.

-- name: audit_balances
-- Organizations whose stored balance is not the sum of their transfers.
SELECT * FROM (
    SELECT o.id, o.available, o.held,
        COALESCE((SELECT SUM(amount) FROM transfers t WHERE t.target = o.id || ':available'), 0)
        - COALESCE((SELECT SUM(amount) FROM transfers t WHERE t.source = o.id || ':available'), 0)
        + COALESCE((SELECT SUM(returned) FROM transfers t WHERE t.source = o.id || ':held'), 0) AS sum_available,
        COALESCE((SELECT SUM(amount) FROM transfers t WHERE t.target = o.id || ':held'), 0)
        - COALESCE((SELECT SUM(amount + returned) FROM transfers t WHERE t.source = o.id || ':held'), 0) AS sum_held
    FROM orgs o
) AS sums
WHERE available <> sum_available OR held <> sum_held;

-- name: audit_overdrafts
-- Prepaid organizations with a negative balance.
SELECT id, available FROM orgs WHERE billing = 'prepaid' AND (available < 0 OR held < 0);

-- name: audit_open_holds
-- Ended requests whose hold was neither captured nor released.
SELECT r.id, r.status FROM requests r JOIN transfers h ON h.ref = r.id AND h.step = 'hold'
WHERE r.status NOT IN ('pending', 'processing')
    AND NOT EXISTS (SELECT 1 FROM transfers t WHERE t.ref = r.id AND t.step = 'end');

-- name: audit_early_ends
-- Unfinished requests whose hold was already captured or released.
SELECT r.id, r.status FROM requests r JOIN transfers t ON t.ref = r.id AND t.step = 'end'
WHERE r.status IN ('pending', 'processing');

-- name: audit_missing_holds
-- Unfinished requests without a hold, and completed requests without a capture.
SELECT r.id, r.status FROM requests r
WHERE (r.status IN ('pending', 'processing')
        AND NOT EXISTS (SELECT 1 FROM transfers t WHERE t.ref = r.id AND t.step = 'hold'))
    OR (r.status = 'completed'
        AND NOT EXISTS (SELECT 1 FROM transfers t WHERE t.ref = r.id AND t.kind = 'capture'));

-- name: audit_unrecorded
-- Holds, captures, releases and losses of requests that have no record. Every chat that was answered has one of them.
SELECT DISTINCT t.ref AS id, t.kind FROM transfers t
WHERE t.step IN ('hold', 'end', 'loss')
    AND NOT EXISTS (SELECT 1 FROM requests r WHERE r.org_id = t.org_id AND r.id = t.ref)
    AND NOT (t.step = 'loss' AND EXISTS (SELECT 1 FROM attempts a WHERE a.id = t.ref));

-- name: audit_costs
-- Requests whose cost differs from the captured amount.
SELECT r.id, r.cost, COALESCE(t.amount, 0) AS captured FROM requests r
LEFT JOIN transfers t ON t.ref = r.id AND t.kind = 'capture'
WHERE r.cost <> COALESCE(t.amount, 0);

-- name: audit_refunds
-- Holds whose captured and returned amounts do not add up to the amount held.
SELECT h.ref AS id, h.amount AS hold, t.amount + t.returned AS moved
FROM transfers h JOIN transfers t ON t.ref = h.ref AND t.step = 'end'
WHERE h.step = 'hold' AND t.amount + t.returned <> h.amount;

-- name: audit_states
-- Generations whose status contradicts the status of their request.
SELECT r.id, r.status, g.status AS generation FROM requests r JOIN generations g ON g.id = r.id
WHERE NOT (
    (g.status IN ('queued', 'in_progress') AND r.status IN ('pending', 'processing'))
    OR (g.status = 'completed' AND r.status = 'completed')
    OR (g.status = 'failed' AND r.status IN ('upstream_failure', 'cancelled'))
);

-- name: audit_messages
-- Ended generations with a webhook URL but without a message.
SELECT g.id FROM generations g
WHERE g.webhook_url IS NOT NULL AND g.status IN ('completed', 'failed')
    AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.request_id = g.id);

-- name: audit_early_messages
-- Messages of generations that have not ended.
SELECT m.request_id AS id FROM messages m JOIN generations g ON g.id = m.request_id
WHERE g.status IN ('queued', 'in_progress');

-- name: audit_overdue
-- Unfinished generations past their deadline.
SELECT id FROM generations WHERE status IN ('queued', 'in_progress') AND deadline_ms < :now_ms;

-- name: audit_abandoned
-- Unfinished chat calls whose process has been gone for long.
SELECT r.id FROM requests r WHERE r.status IN ('pending', 'processing') AND r.process_id IS NOT NULL
    AND r.created_at_ms < :now_ms
    AND NOT EXISTS (SELECT 1 FROM processes p WHERE p.id = r.process_id AND p.lease_until_ms >= :now_ms);

-- name: audit_purged
-- Purged requests that still have files or a stored request.
SELECT r.id FROM requests r WHERE r.purged_at_ms IS NOT NULL AND (
    EXISTS (SELECT 1 FROM media m WHERE m.request_id = r.id)
    OR EXISTS (SELECT 1 FROM generations g WHERE g.id = r.id AND g.request IS NOT NULL)
    OR EXISTS (SELECT 1 FROM payloads p WHERE p.org_id = r.org_id AND p.request_id = r.id)
);

-- name: audit_usage
-- Organizations whose usage slots do not add up to their requests.
SELECT * FROM (
    SELECT o.id AS org_id,
        COALESCE((SELECT SUM(count) FROM usage_slots u WHERE u.org_id = o.id AND u.key_id = '' AND u.status = ''), 0) AS counted,
        COALESCE((SELECT SUM(cost) FROM usage_slots u WHERE u.org_id = o.id AND u.key_id = '' AND u.status = ''), 0) AS cost,
        (SELECT COUNT(*) FROM requests r WHERE r.org_id = o.id AND r.status NOT IN ('pending', 'processing')) AS records,
        COALESCE((SELECT SUM(r.cost) FROM requests r WHERE r.org_id = o.id), 0) AS spent
    FROM orgs o
) AS sums
WHERE counted <> records OR cost <> spent;

-- name: audit_attempts
-- Generations that were sent to a second candidate although the first may have completed them.
SELECT DISTINCT b.request_id AS id FROM attempts a
JOIN attempts b ON b.request_id = a.request_id
    AND (b.round > a.round OR (b.round = a.round AND b.candidate > a.candidate))
WHERE a.state = 'unknown';

-- name: audit_losses
-- Attempts of ended generations whose cost was neither recorded as a loss nor part of what the caller paid.
SELECT a.id, a.cost FROM attempts a JOIN generations g ON g.id = a.request_id
WHERE g.status IN ('completed', 'failed')
    AND ((g.status = 'failed' AND a.state = 'completed') OR a.state IN ('failed', 'cancelled')) AND a.cost > 0
    AND NOT EXISTS (SELECT 1 FROM transfers t WHERE t.ref = a.id AND t.step = 'loss' AND t.amount = a.cost)
    AND a.cost > (SELECT COALESCE(SUM(t.amount), 0) FROM transfers t WHERE t.ref = g.id AND t.kind IN ('capture', 'loss'));
