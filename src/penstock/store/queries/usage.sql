-- Usage over time. :buckets is a JSON list of buckets of time, each with the first id in it, the first id after it, and the
-- milliseconds at which it begins.

-- part: filters
-- What callers may filter by; a null parameter does not filter.
AND (CAST(:key_id AS TEXT) IS NULL OR r.key_id = :key_id)
AND (CAST(:model AS TEXT) IS NULL OR r.model = :model)
AND (CAST(:provider AS TEXT) IS NULL OR r.provider = :provider)
AND (CAST(:kind AS TEXT) IS NULL OR r.kind = :kind)
AND (CAST(:end_user AS TEXT) IS NULL OR r.end_user = :end_user)
AND (CAST(:session_id AS TEXT) IS NULL OR r.session_id = :session_id)
AND (CAST(:has_label AS TEXT) IS NULL OR replace(r.labels, :has_label, '') <> r.labels)
AND (CAST(:has_second AS TEXT) IS NULL OR replace(r.labels, :has_second, '') <> r.labels)

-- name: sum_usage [{sqlite|postgres}]
-- Requests, costs and tokens in each bucket by status and, if :group_by and :and_by are given, by one or two of model,
-- provider, key, kind, user, session, account and label (:label and :and_label are the names of labels); and how many
-- completed requests had which duration, as a JSON object. Durations are rounded down to three digits, so that their
-- number is limited however many requests there are. In SQLite the join makes each bucket a range of the primary key.
-- Postgres reads one range, and finds the bucket of a time by bisection.
SELECT bucket, name, second, status, SUM(count) AS count, SUM(cost) AS cost, SUM(input_tokens) AS input_tokens,
    SUM(output_tokens) AS output_tokens,
    CAST({json_group_object|json_object_agg}(duration, count) FILTER (WHERE duration IS NOT NULL) AS TEXT) AS durations
FROM (
    SELECT {b.key|width_bucket(r.created_at_ms, b.starts) - 1} AS bucket,
        CASE CAST(:group_by AS TEXT) WHEN 'model' THEN r.model WHEN 'provider' THEN r.provider WHEN 'key' THEN r.key_id
            WHEN 'kind' THEN r.kind WHEN 'user' THEN r.end_user WHEN 'session' THEN r.session_id
            WHEN 'account' THEN COALESCE(r.account_id, 'acc_env_' || r.provider)
            WHEN 'label' THEN {r.labels|CAST(r.labels AS json)} ->> CAST(:label AS TEXT) END AS name,
        CASE CAST(:and_by AS TEXT) WHEN 'model' THEN r.model WHEN 'provider' THEN r.provider WHEN 'key' THEN r.key_id
            WHEN 'kind' THEN r.kind WHEN 'user' THEN r.end_user WHEN 'session' THEN r.session_id
            WHEN 'account' THEN COALESCE(r.account_id, 'acc_env_' || r.provider)
            WHEN 'label' THEN {r.labels|CAST(r.labels AS json)} ->> CAST(:and_label AS TEXT) END AS second,
        r.status, COUNT(*) AS count, SUM(r.cost) AS cost,
        COALESCE(SUM(r.input_tokens), 0) AS input_tokens, COALESCE(SUM(r.output_tokens), 0) AS output_tokens,
        CASE WHEN r.status <> 'completed' THEN NULL
            WHEN r.duration_ms < 1000 THEN r.duration_ms WHEN r.duration_ms < 10000 THEN r.duration_ms / 10 * 10
            WHEN r.duration_ms < 100000 THEN r.duration_ms / 100 * 100
            WHEN r.duration_ms < 1000000 THEN r.duration_ms / 1000 * 1000
            WHEN r.duration_ms < 10000000 THEN r.duration_ms / 10000 * 10000
            ELSE r.duration_ms / 100000 * 100000 END AS duration
    FROM {json_each(:buckets)|(SELECT array_agg(CAST(listed.value ->> 2 AS BIGINT) ORDER BY listed.number) AS starts}
        { |FROM json_array_elements(CAST(:buckets AS json)) WITH ORDINALITY AS listed (value, number))} AS b
    CROSS JOIN requests AS r
    WHERE r.org_id = :org_id {AND r.id >= b.value ->> 0 AND r.id < b.value ->> 1| }
        AND {+r.id|r.id} >= :low AND {+r.id|r.id} < :high  -- with a plus these do not replace the range of the bucket
        {filters}
    GROUP BY 1, 2, 3, 4, duration
) AS durations
GROUP BY 1, 2, 3, 4 LIMIT :limit;

-- name: count_failures
-- The most frequent failures between two ids, with the newest request of each.
SELECT f.error_code, f.status, f.model, f.provider, f.count, f.last_id, r.error_message, r.created_at_ms
FROM (
    SELECT r.error_code, r.status, r.model, r.provider, COUNT(*) AS count, MAX(r.id) AS last_id
    FROM requests AS r INDEXED BY requests_by_status
    WHERE r.org_id = :org_id AND r.status IN ('upstream_failure', 'rejected') AND r.id > :low AND r.id < :high
        {filters}
    GROUP BY 1, 2, 3, 4 ORDER BY count DESC, last_id DESC LIMIT :limit
) AS f JOIN requests AS r ON r.org_id = :org_id AND r.id = f.last_id
ORDER BY f.count DESC, f.last_id DESC;

-- name: sum_pace
-- What an organization spent since a slot, and the first slot in which it had a request.
SELECT
    (SELECT COALESCE(SUM(cost), 0) FROM usage_slots
        WHERE org_id = :org_id AND key_id = '' AND status = '' AND slot >= :first) AS spent,
    (SELECT MIN(slot) FROM usage_slots WHERE org_id = :org_id AND key_id = '' AND status = '') AS first_slot;
