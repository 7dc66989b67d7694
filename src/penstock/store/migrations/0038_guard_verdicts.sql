-- How often each guard gave each verdict about calls of an organization, by UTC day.

CREATE TABLE guard_verdicts (
    day     {id} NOT NULL,     -- such as 2026-11-19
    org_id  {id} NOT NULL,
    guard   {id} NOT NULL,     -- its name in penstock.toml
    verdict {id} NOT NULL,     -- pass, flag, refuse, or error: no answer
    number  BIGINT NOT NULL,
    PRIMARY KEY (day, org_id, guard, verdict)
) {without_rowid};
