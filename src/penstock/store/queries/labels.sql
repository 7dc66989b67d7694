-- Labels of requests: one row per label, spend per month and value, budgets.

-- name: add_request_label
-- Add a label of a request. Changes nothing the second time.
INSERT INTO request_labels (org_id, name, value, request_id) VALUES (:org_id, :name, :value, :request_id)
ON CONFLICT (org_id, name, value, request_id) DO NOTHING;

-- name: list_label_values
-- The values that a label has had. Each step is one look into the index, however many requests a value has.
WITH RECURSIVE found (value) AS (
    SELECT MIN(value) FROM request_labels WHERE org_id = :org_id AND name = :name
    UNION ALL
    SELECT (SELECT MIN(l.value) FROM request_labels AS l
        WHERE l.org_id = :org_id AND l.name = :name AND l.value > found.value)
    FROM found WHERE found.value IS NOT NULL
)
SELECT value FROM found WHERE value IS NOT NULL LIMIT :limit;

-- name: add_label_spend
-- Add what ended requests cost to the month of a value.
INSERT INTO label_spend (month, org_id, name, value, spent) VALUES (:month, :org_id, :name, :value, :spent)
ON CONFLICT (month, org_id, name, value) DO UPDATE SET spent = label_spend.spent + excluded.spent;

-- name: get_declared_labels
-- The labels that an organization has declared.
SELECT declared_labels FROM orgs WHERE id = :org_id;

-- name: set_declared_labels
-- Declare the labels of an organization.
UPDATE orgs SET declared_labels = :declared_labels WHERE id = :org_id;

-- name: get_label_budget
-- The budget of a value, its own or that of each value; what is spent in a month, and held for unfinished requests.
SELECT b.nanos_per_month,
    COALESCE((SELECT s.spent FROM label_spend AS s
        WHERE s.month = :month AND s.org_id = :org_id AND s.name = :name AND s.value = :value), 0) AS spent,
    (SELECT COALESCE(SUM(r.hold), 0) FROM requests AS r INDEXED BY requests_by_status
        WHERE r.org_id = :org_id AND r.status IN ('pending', 'processing')
            AND replace(r.labels, :has_label, '') <> r.labels) AS held
FROM label_budgets AS b
WHERE b.org_id = :org_id AND b.name = :name AND b.value IN (:value, '*')
ORDER BY CASE b.value WHEN '*' THEN 1 ELSE 0 END LIMIT 1;

-- name: list_label_budgets
-- All budgets of an organization with what is spent in a month; that for each value has no sum.
SELECT b.name, b.value, b.nanos_per_month, b.alert_percents,
    COALESCE((SELECT s.spent FROM label_spend AS s
        WHERE s.month = :month AND s.org_id = b.org_id AND s.name = b.name AND s.value = b.value), 0) AS spent
FROM label_budgets AS b WHERE b.org_id = :org_id ORDER BY b.name, b.value;

-- name: set_label_budget
-- Set the budget of a value, or change it.
INSERT INTO label_budgets (org_id, name, value, nanos_per_month, alert_percents)
VALUES (:org_id, :name, :value, :nanos_per_month, :alert_percents)
ON CONFLICT (org_id, name, value)
DO UPDATE SET nanos_per_month = excluded.nanos_per_month, alert_percents = excluded.alert_percents;

-- name: remove_label_budget
-- Remove the budget of a value.
DELETE FROM label_budgets WHERE org_id = :org_id AND name = :name AND value = :value;

-- name: list_used_label_budgets
-- Values that have spent a percentage of their budget in a month; a null organization, name or value does not filter.
SELECT s.org_id, orgs.name AS org_name, s.name, s.value, s.spent,
    COALESCE(own.nanos_per_month, each.nanos_per_month) AS nanos_per_month,
    COALESCE(own.alert_percents, each.alert_percents) AS alert_percents
FROM label_spend AS s JOIN orgs ON orgs.id = s.org_id
LEFT JOIN label_budgets AS own ON own.org_id = s.org_id AND own.name = s.name AND own.value = s.value
LEFT JOIN label_budgets AS each ON each.org_id = s.org_id AND each.name = s.name AND each.value = '*'
WHERE s.month = :month AND COALESCE(own.nanos_per_month, each.nanos_per_month) > 0
    AND (CAST(:org_id AS TEXT) IS NULL OR s.org_id = :org_id) AND (CAST(:name AS TEXT) IS NULL OR s.name = :name)
    AND (CAST(:value AS TEXT) IS NULL OR s.value = :value)
    AND s.spent * 100.0 >= COALESCE(own.nanos_per_month, each.nanos_per_month) * 1.0 * CAST(:percent AS BIGINT);
