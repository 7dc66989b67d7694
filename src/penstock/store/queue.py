"""Install and migrate the tables of the job queue, which belong to the library Procrastinate."""

import time
from importlib.util import find_spec
from pathlib import Path

import psycopg

from penstock.store.base import Row, StorageMisconfigured
from penstock.store.migrate_postgres import ADVISORY_LOCK

_TABLE = "CREATE TABLE IF NOT EXISTS queue_version (migration TEXT PRIMARY KEY, applied_at_ms BIGINT NOT NULL)"
_FOREIGN = "This database has tables of Procrastinate that Penstock did not create; use another database for Penstock."


async def install_queue(connection: psycopg.AsyncConnection[Row]) -> None:
    """Install or migrate the queue on a connection in autocommit mode. Other processes wait for the advisory lock.

    Raises StorageMisconfigured if the tables belong to another program or a newer release.
    """
    while await _apply_next(connection):
        pass


async def _apply_next(connection: psycopg.AsyncConnection[Row]) -> bool:
    """Apply the whole schema or else the next migration. Returns True if more are pending."""
    known = migrations()
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (ADVISORY_LOCK,))
        await connection.execute(_TABLE)
        last = await _value(connection, "SELECT MAX(migration) AS value FROM queue_version")
        if last is None:
            if await _value(connection, "SELECT CAST(to_regclass('procrastinate_jobs') AS TEXT) AS value"):
                raise StorageMisconfigured(_FOREIGN)
            await _apply(connection, max(known), (_sql() / "schema.sql").read_text(encoding="utf-8"))
            return False
        if last > max(known):
            raise StorageMisconfigured(
                f"The queue in this database is at {last}, this release has {max(known)}: a newer release has migrated "
                "it. Upgrade, or restore an older backup."
            )
        pending = sorted(name for name in known if name > last)
        if pending:
            await _apply(connection, pending[0], known[pending[0]])
        return len(pending) > 1


def migrations() -> dict[str, str]:
    """The migrations of the installed Procrastinate by name; names sort by release."""
    return {path.name: path.read_text(encoding="utf-8") for path in (_sql() / "migrations").glob("*.sql")}


def _sql() -> Path:
    """The folder with Procrastinate's SQL, found without importing the library, which takes time."""
    found = find_spec("procrastinate")
    assert found is not None, "it is a dependency"
    return Path(str(found.origin)).with_name("sql")


async def _apply(connection: psycopg.AsyncConnection[Row], name: str, script: str) -> None:
    await connection.execute(script.encode())
    await connection.execute("INSERT INTO queue_version VALUES (%s, %s)", (name, time.time_ns() // 1_000_000))


async def _value(connection: psycopg.AsyncConnection[Row], sql: str) -> str | None:
    row = await (await connection.execute(sql.encode())).fetchone()
    return row["value"] if row else None
