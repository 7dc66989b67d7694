-- Balances and transfers. The conditional UPDATE of `hold_amount` is what makes an overdraft impossible.

-- name: get_balance
-- Billing type and balance of an organization.
SELECT billing, available, held FROM orgs WHERE id = :org_id;

-- name: add_credit
-- Add to what an organization may spend.
UPDATE orgs SET available = available + :amount WHERE id = :org_id;

-- name: hold_amount
-- Reserve an amount if a prepaid organization has it beside what is reserved in memory; postpaid ones always do.
UPDATE orgs SET available = available - :amount, held = held + :amount
WHERE id = :org_id AND (billing = 'postpaid' OR available >= :amount + :reserved);

-- name: spend_amount
-- Take what calls cost that were reserved in memory.
UPDATE orgs SET available = available - :amount WHERE id = :org_id;

-- name: settle_hold
-- End a hold: the charged part is gone, the rest is available again.
UPDATE orgs SET available = available + :held - :charged, held = held - :held WHERE id = :org_id;

-- name: add_transfer
-- One movement between two accounts; the key refuses a second hold, and a second end, of the same reference.
INSERT INTO transfers (ref, step, kind, org_id, source, target, amount, returned, created_at_ms, note)
VALUES (:ref, :step, :kind, :org_id, :source, :target, :amount, :returned, :created_at_ms, :note);

-- name: add_org
-- A new organization with nothing on its account.
INSERT INTO orgs (id, name, billing, created_at_ms) VALUES (:id, :name, :billing, :created_at_ms);

-- name: list_orgs
-- All organizations, oldest first.
SELECT id, name, billing, available, held, created_at_ms FROM orgs ORDER BY id;

-- name: get_fact
-- A fact about this installation.
SELECT value FROM facts WHERE name = :name;

-- name: add_fact
-- Remember a fact once; the first writer wins.
INSERT INTO facts (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING;
