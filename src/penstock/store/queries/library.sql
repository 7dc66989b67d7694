-- The library: outputs that are still stored, and what they were made from.

-- name: get_output
-- One output of an organization.
SELECT id, request_id, expires_at_ms, share_version FROM media WHERE id = :id AND org_id = :org_id AND role = 'output';

-- name: find_outputs_by_digest [sqlite]
-- Outputs with one of these digests, which are hexadecimal, also those whose files have expired.
SELECT sha256, id AS media_id, request_id FROM media INDEXED BY media_by_digest
WHERE org_id = :org_id AND role = 'output' AND sha256 IN (SELECT unhex(value) FROM json_each(:ids))
UNION SELECT sha256, media_id, request_id FROM seals
WHERE org_id = :org_id AND sha256 IN (SELECT unhex(value) FROM json_each(:ids));

-- name: find_outputs_by_digest [postgres]
-- Outputs with one of these digests, which are hexadecimal, also those whose files have expired.
SELECT sha256, id AS media_id, request_id FROM media
WHERE org_id = :org_id AND role = 'output'
    AND sha256 IN (SELECT decode(value, 'hex') FROM json_array_elements_text(CAST(:ids AS json)) AS each (value))
UNION SELECT sha256, media_id, request_id FROM seals
WHERE org_id = :org_id
    AND sha256 IN (SELECT decode(value, 'hex') FROM json_array_elements_text(CAST(:ids AS json)) AS each (value));

-- name: add_reused_output
-- Remember that a request took an output as an input.
INSERT INTO reused_outputs (org_id, request_id, media_id, made_by)
VALUES (:org_id, :request_id, :media_id, :made_by);

-- name: list_reused_outputs [sqlite]
-- Which outputs these requests took as inputs, and which requests took theirs.
SELECT request_id, media_id, made_by FROM reused_outputs
WHERE org_id = :org_id AND request_id IN (SELECT value FROM json_each(:ids))
UNION SELECT request_id, media_id, made_by FROM reused_outputs INDEXED BY reused_outputs_by_maker
WHERE org_id = :org_id AND made_by IN (SELECT value FROM json_each(:ids))
ORDER BY request_id, media_id;

-- name: list_reused_outputs [postgres]
-- Which outputs these requests took as inputs, and which requests took theirs.
SELECT request_id, media_id, made_by FROM reused_outputs
WHERE org_id = :org_id AND request_id IN (SELECT json_array_elements_text(CAST(:ids AS json)))
UNION SELECT request_id, media_id, made_by FROM reused_outputs
WHERE org_id = :org_id AND made_by IN (SELECT json_array_elements_text(CAST(:ids AS json)))
ORDER BY request_id, media_id;

-- name: delete_reused_outputs
-- Forget what a purged request was made from.
DELETE FROM reused_outputs WHERE (org_id, request_id, media_id) IN (
    SELECT org_id, request_id, media_id FROM reused_outputs
    WHERE org_id = :org_id AND request_id = :request_id
    ORDER BY org_id, request_id, media_id FOR UPDATE
);

-- name: delete_uses_of_outputs
-- Forget who took the outputs of a purged request.
DELETE FROM reused_outputs WHERE (org_id, request_id, media_id) IN (
    SELECT org_id, request_id, media_id FROM reused_outputs INDEXED BY reused_outputs_by_maker
    WHERE org_id = :org_id AND made_by = :request_id
    ORDER BY org_id, request_id, media_id FOR UPDATE
);

-- name: list_{older|newer}_outputs
-- A page {downwards|upwards} from an id of the outputs that are still stored; a null parameter does not filter.
SELECT media.id, media.request_id, media.content_type, media.size_bytes, media.width, media.height,
    media.revised_prompt, media.created_at_ms, media.expires_at_ms, media.favorite_at_ms,
    requests.kind, requests.model, requests.provider, requests.key_id,
    (SELECT seals.credentials FROM seals WHERE seals.request_id = media.request_id AND seals.media_id = media.id
    ORDER BY seals.created_at_ms DESC LIMIT 1) AS credentials
FROM media INDEXED BY media_outputs
CROSS JOIN requests
WHERE media.org_id = :org_id AND media.role = 'output' AND media.id > :low AND media.id < :high
    AND media.expires_at_ms > :now_ms
    AND requests.org_id = :org_id AND requests.id = media.request_id
    AND (CAST(:request_id AS TEXT) IS NULL OR media.request_id = :request_id)
    AND (CAST(:type AS TEXT) IS NULL OR substr(media.content_type, 1, 6) = :type)
    AND (CAST(:model AS TEXT) IS NULL OR requests.model = :model)
    AND (CAST(:kind AS TEXT) IS NULL OR requests.kind = :kind)
    AND (CAST(:key_id AS TEXT) IS NULL OR requests.key_id = :key_id)
    AND (CAST(:favorite AS TEXT) IS NULL OR media.favorite_at_ms IS NOT NULL)
    AND (CAST(:after_ms AS BIGINT) IS NULL OR media.created_at_ms >= :after_ms)
    AND (CAST(:before_ms AS BIGINT) IS NULL OR media.created_at_ms <= :before_ms)
    AND (CAST(:words AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM (
        SELECT
            {generation_prompt}
            AS prompt
        FROM generations WHERE generations.id = media.request_id AND generations.org_id = :org_id
    ) AS told WHERE NOT EXISTS (
        {missing_word}
    )))
ORDER BY media.id {DESC|ASC} LIMIT :limit;
