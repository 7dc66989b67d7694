-- Trials, the rows of their batches, and votes.

-- part: trial_columns
-- What TrialRecord has.
    trials.id, trials.org_id, trials.key_id, trials.batch_id, trials.name, trials.kind, trials.models, trials.prompts,
    trials.created_at_ms, trials.link_digest, trials.link_expires_at_ms, trials.shows_prompts, trials.verdict,
    batches.status, batches.reason, batches.rows_total, batches.rows_completed, batches.rows_failed, batches.estimate,
    batches.cost, batches.max_cost

-- name: add_trial
-- Add a trial whose batch is stored, unless another call has added it.
INSERT INTO trials (id, org_id, key_id, batch_id, name, kind, models, prompts, created_at_ms)
VALUES (:id, :org_id, :key_id, :batch_id, :name, :kind, :models, :prompts, :created_at_ms)
ON CONFLICT (id) DO NOTHING;

-- name: get_trial
-- One trial of an organization, with the state of its batch.
SELECT {trial_columns} FROM trials JOIN batches ON batches.id = trials.batch_id
WHERE trials.id = :id AND trials.org_id = :org_id;

-- name: get_trial_of_batch
-- The trial whose rows are those of a batch.
SELECT {trial_columns} FROM trials JOIN batches ON batches.id = trials.batch_id
WHERE trials.batch_id = :batch_id AND trials.org_id = :org_id;

-- name: list_{older|newer}_trials
-- A page {downwards|upwards} from an id.
SELECT {trial_columns} FROM trials JOIN batches ON batches.id = trials.batch_id
WHERE trials.org_id = :org_id AND trials.id > :low AND trials.id < :high
ORDER BY trials.id {DESC|ASC} LIMIT :limit;

-- name: get_trial_by_link
-- The trial that a link is for.
SELECT {trial_columns} FROM trials JOIN batches ON batches.id = trials.batch_id
WHERE trials.link_digest = :digest AND trials.link_expires_at_ms > :now_ms;

-- name: list_trial_rows
-- How the prompts of a trial ended with each model; `expires_at_ms` is that of their outputs, null of texts.
SELECT batch_rows.number, batch_rows.status, batch_rows.cost, batch_rows.request_id, requests.duration_ms,
    generations.expires_at_ms
FROM batch_rows
LEFT JOIN requests ON requests.org_id = :org_id AND requests.id = batch_rows.request_id
LEFT JOIN generations ON generations.id = batch_rows.request_id AND generations.org_id = :org_id
WHERE batch_rows.batch_id = :batch_id ORDER BY batch_rows.number LIMIT :limit;

-- name: count_trial_votes
-- The votes on a trial, by pair of models and choice.
SELECT first, second, choice, COUNT(*) AS votes FROM trial_votes WHERE trial_id = :trial_id
GROUP BY first, second, choice ORDER BY first, second, choice;

-- name: count_trial_voters
-- How many have voted on a trial.
SELECT COUNT(DISTINCT voter) AS voters FROM trial_votes WHERE trial_id = :trial_id;

-- name: list_prompts_to_compare
-- The ids of the newest completed requests of an organization and a kind; a null model does not filter.
SELECT id FROM requests
WHERE org_id = :org_id AND id < :high AND kind = :kind AND status = 'completed' AND drill IS NULL
    AND (CAST(:model AS TEXT) IS NULL OR model = :model)
ORDER BY id DESC LIMIT :limit;

-- name: delete_trial_votes
-- Remove the votes on a trial.
DELETE FROM trial_votes WHERE trial_id = :id;

-- name: delete_trial
-- Remove a trial, after its votes.
DELETE FROM trials WHERE id = :id;

-- name: list_left_trials
-- Trials whose batch has been kept for long enough and is gone.
SELECT trials.id FROM trials LEFT JOIN batches ON batches.id = trials.batch_id
WHERE batches.id IS NULL ORDER BY trials.id LIMIT :limit;

-- name: set_trial_link
-- Set the link by which people vote on a trial, or with nulls revoke it.
UPDATE trials SET link_digest = :digest, link_expires_at_ms = :expires_at_ms, shows_prompts = :shows_prompts
WHERE id = :id AND org_id = :org_id;

-- name: list_votes_of_voter
-- The pairs of a trial on which somebody has voted.
SELECT prompt, first, second FROM trial_votes WHERE trial_id = :trial_id AND voter = :voter;

-- name: count_votes_by_pair
-- How many votes each pair of outputs of a trial has.
SELECT prompt, first, second, COUNT(*) AS votes FROM trial_votes WHERE trial_id = :trial_id
GROUP BY prompt, first, second ORDER BY prompt, first, second;

-- name: add_trial_vote
-- Add a vote by a link that is still good, unless this voter has voted on the pair.
INSERT INTO trial_votes (trial_id, voter, prompt, first, second, choice, created_at_ms)
SELECT trials.id, :voter, :prompt, :first, :second, :choice, :at_ms FROM trials
WHERE trials.link_digest = :digest AND trials.link_expires_at_ms > :at_ms
ON CONFLICT (trial_id, voter, prompt, first, second) DO NOTHING;

-- name: set_trial_verdict
-- Note what was decided by a trial.
UPDATE trials SET verdict = :verdict WHERE id = :id AND org_id = :org_id;

-- name: sum_model_traffic
-- How many requests for a model were completed in a time, and what they cost.
SELECT COUNT(*) AS requests, COALESCE(SUM(cost), 0) AS cost FROM requests INDEXED BY requests_by_model
WHERE org_id = :org_id AND model = :model AND id >= :low AND id < :high AND status = 'completed' AND kind = :kind
    AND drill IS NULL;
