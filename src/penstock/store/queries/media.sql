-- Stored files: outputs of generations and inputs of requests.

-- part: media_columns
-- What MediaRow has.
    media.id, media.org_id, media.request_id, media.role, media.position, media.content_type, media.size_bytes,
    media.sha256, media.width, media.height, media.revised_prompt, media.created_at_ms, media.expires_at_ms,
    media.share_version,
    (SELECT seals.credentials FROM seals WHERE seals.request_id = media.request_id AND seals.media_id = media.id
    ORDER BY seals.created_at_ms DESC LIMIT 1) AS credentials

-- name: add_media
-- Add a stored file. After a crash the same file may be stored again: its row is updated.
INSERT INTO media (id, org_id, request_id, role, position, content_type, size_bytes, sha256, width, height,
    revised_prompt, delivered, created_at_ms, expires_at_ms)
VALUES (:id, :org_id, :request_id, :role, :position, :content_type, :size_bytes, :sha256, :width, :height,
    :revised_prompt, :delivered, :created_at_ms, :expires_at_ms)
ON CONFLICT (id) DO UPDATE SET content_type = excluded.content_type, size_bytes = excluded.size_bytes,
    sha256 = excluded.sha256, width = excluded.width, height = excluded.height, delivered = excluded.delivered,
    expires_at_ms = excluded.expires_at_ms;

-- name: get_media
-- One file, by the id in its signed URL.
SELECT {media_columns} FROM media WHERE id = :id;

-- name: list_media
-- The files of a request, in order.
SELECT {media_columns} FROM media WHERE request_id = :request_id AND org_id = :org_id ORDER BY role, position;

-- name: list_expired_media
-- The ids of files that have expired. Inputs of an unfinished generation have not, even if the clock was set forward.
SELECT id FROM media
WHERE expires_at_ms <= :now_ms AND (role = 'output' OR NOT EXISTS (
    SELECT 1 FROM generations g WHERE g.id = media.request_id AND g.status IN ('queued', 'in_progress')
))
ORDER BY expires_at_ms LIMIT :limit;

-- name: expire_media
-- Let a file expire that is to be deleted.
UPDATE media SET expires_at_ms = 0 WHERE id = :id;

-- name: delete_media
-- Delete the row of a deleted file.
DELETE FROM media WHERE id = :id;

-- name: expire_inputs
-- Let the inputs of an ended request expire.
UPDATE media SET expires_at_ms = :at_ms WHERE id IN (
    SELECT id FROM media INDEXED BY media_by_request
    WHERE request_id = :request_id AND org_id = :org_id AND role <> 'output'
    ORDER BY id FOR NO KEY UPDATE
);

-- name: keep_outputs
-- Keep the outputs of a request longer, unless they are kept as long already or have expired.
UPDATE media SET expires_at_ms = :until_ms WHERE id IN (
    SELECT id FROM media INDEXED BY media_by_request
    WHERE request_id = :request_id AND org_id = :org_id AND role = 'output'
        AND expires_at_ms > :now_ms AND expires_at_ms < :until_ms
    ORDER BY id FOR NO KEY UPDATE
);

-- name: set_favorite
-- Make an output a favorite, or none with null.
UPDATE media SET favorite_at_ms = :at_ms WHERE id = :id AND org_id = :org_id AND role = 'output';

-- name: revoke_shares
-- Refuse all URLs by which an output was shared.
UPDATE media SET share_version = share_version + 1 WHERE id = :id AND org_id = :org_id AND role = 'output';

-- name: list_all_files
-- Every file that should be in storage.
SELECT id, size_bytes, expires_at_ms FROM media UNION ALL SELECT media_id, size_bytes, NULL FROM recording_files;

-- name: get_stored_bytes
-- The bytes of all files of an organization, and its own limit of them.
SELECT (SELECT storage_bytes FROM orgs WHERE id = :org_id) AS max_bytes,
    COALESCE((SELECT SUM(size_bytes) FROM media WHERE org_id = :org_id), 0)
    + COALESCE((SELECT SUM(recording_files.size_bytes) FROM recording_files
        JOIN recordings ON recordings.id = recording_files.recording_id WHERE recordings.org_id = :org_id), 0) AS bytes;

-- name: list_file_digests
-- Every file that should be in storage, with its SHA-256.
SELECT id, size_bytes, sha256 FROM media UNION ALL SELECT media_id, size_bytes, sha256 FROM recording_files;

-- name: get_file_row
-- Returns a row if a file belongs to a request or to a recording.
SELECT id FROM media WHERE id = :id
UNION SELECT media_id FROM recording_files WHERE media_id = :id;

-- name: get_unfinished_generation
-- The unfinished generation whose files are named after this request or attempt. Its files may not have rows yet.
SELECT id FROM generations
WHERE status IN ('queued', 'in_progress')
    AND (id = :request_id OR id = (SELECT request_id FROM attempts WHERE id = :attempt_id));

-- name: add_seal
-- Remember a delivered file by its digest. After a crash the same file may be stored again.
INSERT INTO seals (org_id, sha256, media_id, request_id, manifest, status, credentials,
    created_at_ms)
VALUES (:org_id, :sha256, :media_id, :request_id, :manifest, :status, :credentials, :created_at_ms)
ON CONFLICT DO NOTHING;

-- name: find_seal_by_digest
-- The newest delivered file with a digest.
SELECT request_id, media_id, credentials FROM seals
WHERE org_id = :org_id AND sha256 = :sha256 ORDER BY created_at_ms DESC LIMIT 1;

-- name: find_seal_by_manifest
-- The newest delivered file with a manifest.
SELECT request_id, media_id, credentials FROM seals INDEXED BY seals_by_manifest
WHERE org_id = :org_id AND manifest = :manifest ORDER BY created_at_ms DESC LIMIT 1;

-- name: delete_seals
-- Forget the delivered files of a request that is purged.
DELETE FROM seals WHERE request_id = :request_id AND org_id = :org_id;
