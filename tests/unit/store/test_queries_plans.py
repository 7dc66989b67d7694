"""No query reads all rows of a table or of an organization, unless that is what it is for."""

import re

import apsw

from penstock.store.migrate import migrate_sqlite, package_migrations
from penstock.store.queries import package_queries

# What a plan says when it reads a whole table, or everything that an organization has. `told` is a subquery.
READS_ALL = re.compile(r"\bSCAN (?!CONSTANT|json_each|told\b|\w+ VIRTUAL)\w+|USING [\w ]*\(org_id=\?\)")

# These add up, list or audit everything, or run seldom on small tables.
MAY_READ_ALL = {
    "count_failures": "its subquery has one row for each kind of failure",
    "count_low_balances": "one number, for the metrics",
    "count_messages": "one number per state, for the metrics",
    "count_open_generations": "unfinished generations, for the metrics",
    "count_orphans": "a check by operators",
    "delete_expired_idempotency_keys": "in the background, at most every few seconds",
    "delete_expired_response_items": "in the background, at most every few seconds",
    "delete_expired_payloads": "in the background, at most every few seconds",
    "delete_oldest_response_items": "in the background, for organizations with too many",
    "delete_response_items": "its subquery finds them by request, on Postgres; a purge",
    "delete_oldest_live_models": "at most a few thousand rows, when a catalogue was asked",
    "find_pinned_recording": "recordings of one organization, for calls that name one",
    "get_caller": "at most 201 budgets of labels, once a second for a key",
    "get_caller_of_key": "the same",
    "get_session_caller": "the same, for each call of the pages",
    "get_file_row": "in the background, for files that seem to have no row",
    "get_stored_bytes": "at most every thirty seconds per organization",
    "list_destinations": "a handful of buckets, when they have changed",
    "list_failed_destinations": "a handful of buckets, in the background, to find alerts",
    "lock_destinations": "at most twenty buckets of one organization",
    "list_accounts": "a handful of accounts, when they have changed",
    "list_all_files": "in the background, once an hour",
    "list_budgets": "in the background, to find alerts",
    "list_dead_processes": "one row per process",
    "list_events_of_org": "the gateway of a test writes the folder of its calls",
    "remove_account_use": "a row for each account and process, every few seconds",
    "list_failed_accounts": "a handful of accounts, in the background, to find alerts",
    "list_file_digests": "the audit of files",
    "list_free_batches": "batches that have not ended, in the background every second",
    "list_free_generations": "unfinished generations, in the background every few seconds",
    "list_invitations": "a page of open invitations, each of which lives for seven days",
    "list_users": "a list by admins, of people that can be counted",
    "list_users_by_email": "a command names a person",
    "get_session_key": "keys of one organization, when a person signs in",
    "list_label_budgets": "a handful of budgets of one organization",
    "list_label_values": "the values that it has found so far",
    "list_low_balances": "in the background, to find alerts",
    "list_messages": "a page by id",
    "list_old_batches": "one row per batch, in the background once an hour",
    "list_left_trials": "one row per trial, in the background once an hour",
    "list_orgs_with_many_items": "in the background",
    "list_orgs": "a list by operators",
    "list_secrets": "when the master secret is rotated",
    "list_suspects": "unfinished generations, after a crash",
    "release_recording_claim": "one row per recording that is being made",
    "release_batches": "one row per batch, when a gateway on SQLite starts",
    "sum_spend_of_orgs": "a list by operators",
    "sum_usage": "its subquery has one row for each duration in each bucket",
}


def test_queries_use_an_index_for_what_they_look_up() -> None:
    connection = apsw.Connection(":memory:")
    migrate_sqlite(connection, package_migrations())
    found = {}
    for name, query in package_queries().sqlite.items():
        rows = connection.execute("EXPLAIN QUERY PLAN " + query.sql, dict.fromkeys(query.parameters))
        plan = " | ".join(str(row[3]) for row in rows)
        if READS_ALL.search(plan) and not name.startswith("audit_"):
            found[name] = plan
    unexpected = [f"{name}: {plan}" for name, plan in found.items() if name not in MAY_READ_ALL]
    assert unexpected == [], "\n".join(unexpected)
    assert set(MAY_READ_ALL) - set(found) == set(), "these need no exception any more"
