-- Recordings, their files, and claims on recordings that are being made.

-- part: recording_columns
-- What RecordingRow has.
    recordings.id, recordings.org_id, recordings.request_id, recordings.imported_id, recordings.import_digest,
    recordings.kind, recordings.task, recordings.model, recordings.standard, recordings.strict, recordings.request,
    recordings.result, recordings.duration_ms, recordings.created_at_ms, recordings.exact

-- name: add_recording
-- Add a recording. An id that exists already stays as it is.
INSERT INTO recordings (id, org_id, request_id, imported_id, import_digest, kind, task, model, standard, strict,
    exact, request, result, duration_ms, created_at_ms)
VALUES (:id, :org_id, :request_id, :imported_id, :import_digest, :kind, :task, :model, :standard, :strict,
    :exact, :request, :result, :duration_ms, :created_at_ms)
ON CONFLICT (id) DO NOTHING;

-- name: find_imported_recording
-- The recording of an organization that was imported from a file with the same contents.
SELECT id FROM recordings WHERE org_id = :org_id AND import_digest = :import_digest;

-- name: find_pinned_recording
-- The recording with an id, else the newest one that was imported from a file with that id.
SELECT {recording_columns} FROM recordings WHERE org_id = :org_id AND (id = :id OR imported_id = :id)
ORDER BY CASE WHEN id = :id THEN 0 ELSE 1 END, id DESC LIMIT 1;

-- name: add_recording_file
-- Add a file of a recording.
INSERT INTO recording_files (recording_id, position, media_id, content_type, size_bytes, sha256)
VALUES (:recording_id, :position, :media_id, :content_type, :size_bytes, :sha256)
ON CONFLICT (recording_id, position) DO NOTHING;

-- name: find_standard_recording
-- The newest recording with the same canonical parameters; one with the same prompt comes first.
SELECT {recording_columns} FROM recordings WHERE org_id = :org_id AND kind = :kind AND standard = :digest
ORDER BY CASE WHEN exact = :exact THEN 0 ELSE 1 END, id DESC LIMIT 1;

-- name: find_exact_recording
-- The newest recording with the same canonical parameters and the same prompt.
SELECT {recording_columns} FROM recordings WHERE org_id = :org_id AND kind = :kind AND exact = :digest
ORDER BY id DESC LIMIT 1;

-- name: find_strict_recording
-- The newest recording with the same body.
SELECT {recording_columns} FROM recordings WHERE org_id = :org_id AND kind = :kind AND strict = :digest
ORDER BY id DESC LIMIT 1;

-- name: get_recording
-- One recording of an organization.
SELECT {recording_columns} FROM recordings WHERE id = :id AND org_id = :org_id;

-- name: list_{older|newer}_recordings
-- A page {downwards|upwards} from an id, without results and without requests that are longer than :max_bytes.
SELECT id, org_id, request_id, imported_id, kind, model, duration_ms, created_at_ms,
    CASE WHEN LENGTH(request) <= :max_bytes THEN request END AS request
FROM recordings WHERE org_id = :org_id AND id > :low AND id < :high ORDER BY id {DESC|ASC} LIMIT :limit;

-- name: list_requests_to_match
-- The requests of recordings of a kind that are older than an id, newest first, except those longer than :max_bytes.
SELECT id, request FROM recordings
WHERE org_id = :org_id AND kind = :kind AND id < :high AND LENGTH(request) <= :max_bytes ORDER BY id DESC LIMIT :limit;

-- name: list_recordings_of_request
-- The recordings that were made from a request.
SELECT id FROM recordings WHERE request_id = :request_id AND org_id = :org_id;

-- name: list_recording_files
-- The files of a recording, in order.
SELECT recording_id, position, media_id, content_type, size_bytes, sha256 FROM recording_files
WHERE recording_id = :recording_id ORDER BY position;

-- name: lock_recording
-- Lock a recording that is to be deleted, before the rows of its files, which are deleted first.
SELECT id FROM recordings WHERE id = :id FOR UPDATE;

-- name: delete_recording_files
-- Delete the rows of a recording's files.
DELETE FROM recording_files WHERE recording_id = :recording_id;

-- name: delete_recording
-- Delete a recording.
DELETE FROM recordings WHERE id = :id AND org_id = :org_id;

-- name: claim_recording
-- Claim a recording that is to be made. Inserts nothing when another request has claimed it.
INSERT INTO recording_claims (org_id, kind, digest, request_id) VALUES (:org_id, :kind, :digest, :request_id)
ON CONFLICT (org_id, kind, digest) DO NOTHING;

-- name: get_recording_claim
-- The request that makes a recording now.
SELECT request_id FROM recording_claims WHERE org_id = :org_id AND kind = :kind AND digest = :digest;

-- name: release_recording_claim
-- End the claim of a request that has ended.
DELETE FROM recording_claims WHERE request_id = :request_id;
