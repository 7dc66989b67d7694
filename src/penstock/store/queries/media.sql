-- Files: what was made and what came with a request.

-- name: add_media
-- A kept file; kept again after a crash, it is the same row.
INSERT INTO media (id, org_id, request_id, role, position, content_type, size_bytes, sha256, width, height,
    revised_prompt, created_at_ms, expires_at_ms)
VALUES (:id, :org_id, :request_id, :role, :position, :content_type, :size_bytes, :sha256, :width, :height,
    :revised_prompt, :created_at_ms, :expires_at_ms)
ON CONFLICT (id) DO UPDATE SET content_type = excluded.content_type, size_bytes = excluded.size_bytes,
    sha256 = excluded.sha256, width = excluded.width, height = excluded.height, expires_at_ms = excluded.expires_at_ms;

-- name: get_media
-- One file, by the id in its signed address.
SELECT * FROM media WHERE id = :id;

-- name: list_media
-- The files of a request, in order.
SELECT * FROM media WHERE request_id = :request_id AND org_id = :org_id ORDER BY role, position;

-- name: list_expired_media
-- Files whose time is over.
SELECT id, org_id, request_id FROM media WHERE expires_at_ms <= :now_ms ORDER BY expires_at_ms LIMIT :limit;

-- name: delete_media
-- Forget a file that is gone.
DELETE FROM media WHERE id = :id;

-- name: expire_inputs
-- A request that ended needs what came with it no longer.
UPDATE media SET expires_at_ms = :at_ms WHERE request_id = :request_id AND org_id = :org_id AND role <> 'output';

-- name: list_all_files
-- Every file there should be.
SELECT id, size_bytes, expires_at_ms FROM media UNION ALL SELECT media_id, size_bytes, NULL FROM recording_files;

-- name: get_file_row
-- Whether a file belongs to something.
SELECT id FROM media WHERE id = :id
UNION SELECT media_id FROM recording_files WHERE media_id = :id;

-- name: get_unfinished_maker
-- The generation that is still being made, by an attempt or a stand-in, and whose files have no rows yet.
SELECT id FROM generations
WHERE status IN ('queued', 'in_progress')
    AND (id = :request_id OR id = (SELECT request_id FROM attempts WHERE id = :attempt_id));
