-- Invitations: each is good once, for one e-mail address, for seven days.

-- name: lock_invitation
-- An invitation that was neither used nor is over, locked until the end of the transaction.
SELECT id, org_id, email, role FROM invitations
WHERE digest = :digest AND used_at_ms IS NULL AND expires_at_ms > :now_ms FOR NO KEY UPDATE;

-- name: add_invitation
-- Invite somebody. Only the digest of the text in the link is stored.
INSERT INTO invitations (id, digest, org_id, email, role, created_by, created_at_ms, expires_at_ms)
VALUES (:id, :digest, :org_id, :email, :role, :created_by, :created_at_ms, :expires_at_ms);

-- name: use_invitation
-- Note that an invitation was accepted.
UPDATE invitations SET used_at_ms = :at_ms WHERE id = :id;

-- name: delete_invitation
-- Take an invitation back; of any organization for the operator.
DELETE FROM invitations WHERE id = :id AND used_at_ms IS NULL AND (:org_id = '*' OR org_id = :org_id);

-- name: list_invitations
-- The open invitations of an organization, newest first; of all for the operator.
SELECT id, org_id, email, role, created_by, created_at_ms, expires_at_ms FROM invitations
WHERE used_at_ms IS NULL AND expires_at_ms > :now_ms AND (:org_id = '*' OR org_id = :org_id)
ORDER BY id DESC LIMIT :limit;
