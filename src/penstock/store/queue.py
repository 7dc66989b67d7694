"""Install the tables of the job queue, which are Procrastinate's own, and bring them up to date."""

import time
from importlib.util import find_spec
from pathlib import Path

import psycopg

from penstock.store.base import Row, StorageMisconfigured
from penstock.store.migrate import ADVISORY_LOCK

_TABLE = "CREATE TABLE IF NOT EXISTS queue_version (migration TEXT PRIMARY KEY, applied_at_ms BIGINT NOT NULL)"
_FOREIGN = "This database has a Procrastinate that Penstock did not install; give Penstock a database of its own."


async def install_queue(connection: psycopg.AsyncConnection[Row]) -> None:
    """On a connection in autocommit; other processes wait for the lock that migrations take too."""
    while await _step(connection):
        pass


async def _step(connection: psycopg.AsyncConnection[Row]) -> bool:
    """One migration, or the whole schema where there is none; whether more may follow."""
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
                f"The queue in this database is at {last}, this release knows {max(known)}: it was written by a newer "
                "release. Upgrade, or restore an older backup."
            )
        pending = sorted(name for name in known if name > last)
        if pending:
            await _apply(connection, pending[0], known[pending[0]])
        return len(pending) > 1


def migrations() -> dict[str, str]:
    """What the installed Procrastinate knows; names sort in the order of its releases."""
    return {path.name: path.read_text(encoding="utf-8") for path in (_sql() / "migrations").glob("*.sql")}


def _sql() -> Path:
    """Found without importing the library, which a process that only looks at the books has no use for."""
    found = find_spec("procrastinate")
    assert found is not None, "it is one of our dependencies"
    return Path(str(found.origin)).with_name("sql")


async def _apply(connection: psycopg.AsyncConnection[Row], name: str, script: str) -> None:
    await connection.execute(script.encode())
    await connection.execute("INSERT INTO queue_version VALUES (%s, %s)", (name, time.time_ns() // 1_000_000))


async def _value(connection: psycopg.AsyncConnection[Row], sql: str) -> str | None:
    row = await (await connection.execute(sql.encode())).fetchone()
    return row["value"] if row else None
