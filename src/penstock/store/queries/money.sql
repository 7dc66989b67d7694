-- Balances and transfers. The condition in `hold_amount` makes an overdraft impossible.

-- name: get_balance
-- Billing type and balance of an organization.
SELECT billing, available, held FROM orgs WHERE id = :org_id;

-- name: add_credit
-- Add to the available balance.
UPDATE orgs SET available = available + :amount WHERE id = :org_id;

-- name: hold_amount
-- Hold an amount. Changes and returns nothing when a prepaid organization has less than the amount and what is reserved
-- in memory.
UPDATE orgs SET available = available - :amount, held = held + :amount
WHERE id = :org_id AND (billing = 'postpaid' OR available >= :amount + :reserved)
RETURNING id;

-- name: hold_unseen
-- Hold an amount without saying whether a prepaid organization has it: if not, the CHECK of the table refuses it.
UPDATE orgs SET available = available - :amount, held = held + :amount WHERE id = :org_id;

-- name: capture_reserved
-- Charge calls whose amounts were reserved in memory.
UPDATE orgs SET available = available - :amount WHERE id = :org_id;

-- name: end_hold
-- End a hold: the charged part is gone, the rest is available again.
UPDATE orgs SET available = available + :held - :charged, held = held - :held WHERE id = :org_id;

-- name: add_transfer
-- Add a transfer. The primary key refuses a second hold, and a second end, of the same reference.
INSERT INTO transfers (ref, step, kind, org_id, source, target, amount, returned, created_at_ms, note)
VALUES (:ref, :step, :kind, :org_id, :source, :target, :amount, :returned, :created_at_ms, :note);

-- name: list_released [sqlite]
-- Of these requests, those whose hold was released and for which no loss is recorded.
SELECT ref AS id FROM transfers
WHERE ref IN (SELECT value FROM json_each(:ids)) AND step = 'end' AND kind = 'release'
    AND NOT EXISTS (SELECT 1 FROM transfers AS losses WHERE losses.ref = transfers.ref AND losses.step = 'loss');

-- name: list_released [postgres]
-- Of these requests, those whose hold was released and for which no loss is recorded.
SELECT ref AS id FROM transfers
WHERE ref IN (SELECT json_array_elements_text(CAST(:ids AS JSON))) AND step = 'end' AND kind = 'release'
    AND NOT EXISTS (SELECT 1 FROM transfers AS losses WHERE losses.ref = transfers.ref AND losses.step = 'loss');

-- name: add_org
-- Add an organization with an empty account.
INSERT INTO orgs (id, name, billing, created_at_ms) VALUES (:id, :name, :billing, :created_at_ms);

-- name: set_org
-- Change the name and the limits of an organization.
UPDATE orgs SET name = :name, nanos_per_month = :nanos_per_month, storage_bytes = :storage_bytes,
    provenance = :provenance
WHERE id = :id;

-- name: lock_org
-- Lock an organization until the end of the transaction.
SELECT id FROM orgs WHERE id = :id FOR NO KEY UPDATE;

-- name: count_low_balances
-- Number of prepaid organizations that have less than an amount.
SELECT COUNT(*) AS count FROM orgs WHERE billing = 'prepaid' AND available < :amount;

-- name: list_orgs
-- All organizations, oldest first.
SELECT id, name, billing, available, held, nanos_per_month, storage_bytes, provenance, created_at_ms FROM orgs ORDER BY id;

-- name: get_org
-- One organization.
SELECT id, name, billing, available, held, nanos_per_month, storage_bytes, provenance, created_at_ms FROM orgs WHERE id = :id;

-- name: sum_spend_of_orgs
-- What each organization spent since a slot; a null id does not filter.
SELECT id, (SELECT COALESCE(SUM(cost), 0) FROM usage_slots
    WHERE org_id = orgs.id AND key_id = '' AND status = '' AND slot >= :month) AS spent
FROM orgs WHERE CAST(:id AS TEXT) IS NULL OR id = :id;

-- name: sum_budget_of_org
-- What an organization spent since a slot, and what is held for its unfinished requests.
SELECT held, (SELECT COALESCE(SUM(cost), 0) FROM usage_slots
    WHERE org_id = :org_id AND key_id = '' AND status = '' AND slot >= :month) AS spent
FROM orgs WHERE id = :org_id;

-- name: list_budgets
-- Monthly budgets of organizations and keys of which a percentage is spent since a slot; a null id does not filter.
SELECT * FROM (
    SELECT orgs.id AS org_id, orgs.name AS org_name, CAST(NULL AS TEXT) AS key_id, CAST(NULL AS TEXT) AS key_name,
        orgs.nanos_per_month,
        (SELECT COALESCE(SUM(cost), 0) FROM usage_slots
            WHERE org_id = orgs.id AND key_id = '' AND status = '' AND slot >= :month) AS spent
    FROM orgs WHERE orgs.nanos_per_month > 0 AND (CAST(:id AS TEXT) IS NULL OR orgs.id = :id)
    UNION ALL
    SELECT keys.org_id, orgs.name, keys.id, keys.name, keys.nanos_per_month,
        (SELECT COALESCE(SUM(cost), 0) FROM usage_slots
            WHERE org_id = keys.org_id AND key_id = keys.id AND status = '' AND slot >= :month)
    FROM keys JOIN orgs ON orgs.id = keys.org_id
    WHERE keys.nanos_per_month > 0 AND keys.status = 'active' AND (CAST(:id AS TEXT) IS NULL OR keys.id = :id)
) AS budgets WHERE spent * 100.0 >= nanos_per_month * 1.0 * CAST(:percent AS BIGINT);

-- name: list_low_balances
-- Prepaid organizations with less than an amount available, and their newest credits.
SELECT orgs.id AS org_id, orgs.name AS org_name, orgs.available, credits.id AS credit_id
FROM orgs JOIN (
    SELECT org_id, MAX(ref) AS id FROM transfers WHERE ref > 'crd_' AND ref < 'crd_~' AND step = 'credit' GROUP BY org_id
) AS credits ON credits.org_id = orgs.id
WHERE orgs.billing = 'prepaid' AND orgs.available < :low;

-- name: list_credits
-- The newest credits of an organization. Their ids begin with `crd_`, so they are one range of the primary key.
SELECT ref AS id, org_id, amount, note, created_at_ms FROM transfers
WHERE ref > 'crd_' AND ref < 'crd_~' AND step = 'credit' AND org_id = :org_id ORDER BY ref DESC LIMIT :limit;

-- name: get_fact
-- A fact about this installation.
SELECT value FROM facts WHERE name = :name;

-- name: list_facts
-- Facts whose names are in a range.
SELECT name FROM facts WHERE name >= :low AND name < :high LIMIT :limit;

-- name: set_fact
-- Store a fact, or replace it.
INSERT INTO facts (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: add_fact
-- Store a fact. A fact that is already stored stays as it is.
INSERT INTO facts (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING;
