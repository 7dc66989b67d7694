-- The auditor's questions: each finds what must not exist.

-- name: audit_balances
-- Stored balances that are not the sum of their transfers.
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
-- Prepaid organizations that owe us.
SELECT id, available FROM orgs WHERE billing = 'prepaid' AND (available < 0 OR held < 0);

-- name: audit_open_holds
-- Requests that ended without settling their hold.
SELECT r.id, r.status FROM requests r JOIN transfers h ON h.ref = r.id AND h.step = 'hold'
WHERE r.status NOT IN ('pending', 'processing')
    AND NOT EXISTS (SELECT 1 FROM transfers t WHERE t.ref = r.id AND t.step = 'end');

-- name: audit_early_ends
-- Holds that were settled although the request goes on.
SELECT r.id, r.status FROM requests r JOIN transfers t ON t.ref = r.id AND t.step = 'end'
WHERE r.status IN ('pending', 'processing');

-- name: audit_missing_holds
-- Accepted requests under way without a hold, and completed ones that were never captured.
SELECT r.id, r.status FROM requests r
WHERE (r.status IN ('pending', 'processing')
        AND NOT EXISTS (SELECT 1 FROM transfers t WHERE t.ref = r.id AND t.step = 'hold'))
    OR (r.status = 'completed'
        AND NOT EXISTS (SELECT 1 FROM transfers t WHERE t.ref = r.id AND t.kind = 'capture'));

-- name: audit_costs
-- Records whose cost is not what was captured.
SELECT r.id, r.cost, COALESCE(t.amount, 0) AS captured FROM requests r
LEFT JOIN transfers t ON t.ref = r.id AND t.kind = 'capture'
WHERE r.cost <> COALESCE(t.amount, 0);

-- name: audit_refunds
-- Holds that did not go out exactly as they came in.
SELECT h.ref AS id, h.amount AS hold, t.amount + t.returned AS moved
FROM transfers h JOIN transfers t ON t.ref = h.ref AND t.step = 'end'
WHERE h.step = 'hold' AND t.amount + t.returned <> h.amount;

-- name: audit_states
-- Generations and records that tell different stories.
SELECT r.id, r.status, g.status AS generation FROM requests r JOIN generations g ON g.id = r.id
WHERE NOT (
    (g.status IN ('queued', 'in_progress') AND r.status IN ('pending', 'processing'))
    OR (g.status = 'completed' AND r.status = 'completed')
    OR (g.status = 'failed' AND r.status IN ('upstream_failure', 'cancelled'))
);

-- name: audit_messages
-- Ended generations whose caller was promised news and has none waiting or sent.
SELECT g.id FROM generations g
WHERE g.webhook_url IS NOT NULL AND g.status IN ('completed', 'failed')
    AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.request_id = g.id);

-- name: audit_early_messages
-- News of something that has not happened.
SELECT m.request_id AS id FROM messages m JOIN generations g ON g.id = m.request_id
WHERE g.status IN ('queued', 'in_progress');

-- name: audit_overdue
-- Work that nobody gave up in time.
SELECT id FROM generations WHERE status IN ('queued', 'in_progress') AND deadline_ms < :now_ms;

-- name: audit_purged
-- Traces of requests that were to be forgotten.
SELECT r.id FROM requests r WHERE r.purged_at_ms IS NOT NULL AND (
    EXISTS (SELECT 1 FROM media m WHERE m.request_id = r.id)
    OR EXISTS (SELECT 1 FROM generations g WHERE g.id = r.id AND g.request IS NOT NULL)
);

-- name: audit_usage
-- Slots that do not add up to the records of an organization.
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
-- Work that was sent to somebody else although the first may have done it.
SELECT DISTINCT b.request_id AS id FROM attempts a
JOIN attempts b ON b.request_id = a.request_id AND b.candidate > a.candidate
WHERE a.state = 'unknown';

-- name: audit_losses
-- What a provider made for nobody, and nobody booked.
SELECT a.id, a.cost FROM attempts a JOIN generations g ON g.id = a.request_id
WHERE g.status = 'failed' AND a.state = 'completed' AND a.cost > 0
    AND NOT EXISTS (SELECT 1 FROM transfers t WHERE t.ref = a.id AND t.step = 'loss' AND t.amount = a.cost);
