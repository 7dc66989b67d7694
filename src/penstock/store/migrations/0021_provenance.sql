-- What an organization asks of the Content Credentials of its outputs, and what became of each delivered file.

ALTER TABLE orgs ADD COLUMN provenance TEXT;  -- such as `sign; required`; null: as the settings say
ALTER TABLE seals ADD COLUMN status TEXT;     -- that of its credentials

UPDATE seals SET status = known.status FROM (
    SELECT 'signed' AS status UNION ALL SELECT 'carried' UNION ALL SELECT 'kept' UNION ALL SELECT 'none'
    UNION ALL SELECT 'removed' UNION ALL SELECT 'invalid' UNION ALL SELECT 'dropped_invalid'
    UNION ALL SELECT 'dropped_large' UNION ALL SELECT 'unsupported_format' UNION ALL SELECT 'too_large'
    UNION ALL SELECT 'failed'
) AS known
WHERE seals.credentials LIKE '{"status":"' || known.status || '"%';

CREATE INDEX seals_by_status ON seals (org_id, status, request_id);
