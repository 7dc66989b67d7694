"""Columns that a newer version might add to the tables, which must not disturb one that runs already."""

import apsw

from penstock.store.migrate import migrate_sqlite, package_migrations


def migrated_sqlite() -> apsw.Connection:
    """An empty database in memory with the gateway's tables."""
    connection = apsw.Connection(":memory:")
    migrate_sqlite(connection, package_migrations())
    return connection


def additions() -> list[str]:
    """Statements that add a column of a new name to every table, and one of each name that another table has."""
    existing = _columns(migrated_sqlite())
    names = {"added_later"}.union(*existing.values())
    return [
        f"ALTER TABLE {table} ADD COLUMN {name} BIGINT"
        for table in sorted(existing)
        for name in sorted(names - existing[table])
    ]


def _columns(connection: apsw.Connection) -> dict[str, set[str]]:
    """The columns of each table."""
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    return {
        str(name): {str(row[1]) for row in connection.execute(f"PRAGMA table_info({name})")}
        for (name,) in tables.fetchall()
        if name != "schema_version"
    }
