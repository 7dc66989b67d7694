"""Columns that a newer version might add to the tables, which must not disturb one that runs already."""

import re

import apsw

from penstock.store.migrate import migrate_sqlite, package_migrations
from penstock.store.queries import package_queries


def migrated_sqlite() -> apsw.Connection:
    """An empty database in memory with the gateway's tables."""
    connection = apsw.Connection(":memory:")
    migrate_sqlite(connection, package_migrations())
    return connection


def additions() -> list[str]:
    """Statements that add a column of a new name to every table, and those of each table that a statement of the
    gateway reads together with it.
    """
    existing = _columns(migrated_sqlite())
    names = {table: {"added_later"} for table in existing}
    queries = package_queries()
    for query in (*queries.sqlite.values(), *queries.postgres.values()):
        used = [table for table in existing if re.search(rf"\b{table}\b", query.sql)]
        for table in used:
            names[table].update(*(existing[other] for other in used))
    return [
        f"ALTER TABLE {table} ADD COLUMN {name} BIGINT"
        for table in sorted(existing)
        for name in sorted(names[table] - existing[table])
    ]


def _columns(connection: apsw.Connection) -> dict[str, set[str]]:
    """The columns of each table."""
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    return {
        str(name): {str(row[1]) for row in connection.execute(f"PRAGMA table_info({name})")}
        for (name,) in tables.fetchall()
        if name != "schema_version"
    }
