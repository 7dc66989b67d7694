-- Files that callers upload to make batches of them, in pieces.

-- part: upload_columns
-- What UploadRow has.
    uploads.id, uploads.org_id, uploads.filename, uploads.purpose, uploads.size_bytes, uploads.created_at_ms,
    uploads.expires_at_ms

-- name: add_upload
-- Add a file.
INSERT INTO uploads (id, org_id, filename, purpose, size_bytes, created_at_ms, expires_at_ms)
VALUES (:id, :org_id, :filename, :purpose, :size_bytes, :created_at_ms, :expires_at_ms);

-- name: add_upload_piece
-- Add a piece of a file.
INSERT INTO upload_pieces (upload_id, number, data) VALUES (:upload_id, :number, :data);

-- name: get_upload
-- One file of an organization.
SELECT {upload_columns} FROM uploads WHERE id = :id AND org_id = :org_id;

-- name: get_upload_piece
-- A piece of a file.
SELECT data FROM upload_pieces WHERE upload_id = :upload_id AND number = :number;

-- name: list_{older|newer}_uploads
-- A page of files {downwards|upwards} from an id.
SELECT {upload_columns} FROM uploads WHERE uploads.org_id = :org_id AND uploads.id > :low AND uploads.id < :high
ORDER BY uploads.id {DESC|ASC} LIMIT :limit;

-- name: list_expired_uploads
-- Files that have been kept for long enough.
SELECT {upload_columns} FROM uploads WHERE uploads.expires_at_ms <= :now_ms ORDER BY uploads.expires_at_ms LIMIT :limit;

-- name: delete_upload_pieces
-- Remove what is in a file.
DELETE FROM upload_pieces WHERE upload_id = :upload_id;

-- name: delete_upload
-- Remove a file before its pieces.
DELETE FROM uploads WHERE id = :id;
