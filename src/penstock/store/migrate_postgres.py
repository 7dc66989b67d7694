"""Apply the migrations that a Postgres database lacks, each in one transaction."""

from contextlib import suppress

import psycopg

from penstock.failpoints import failpoint
from penstock.store.base import Row, StorageMisconfigured
from penstock.store.migrate import APPLIED, TABLE, Migration, now_ms, pending

# An arbitrary number, the same in every process that uses the database.
ADVISORY_LOCK = 7_305_818_246_731


async def migrate_postgres(connection: psycopg.AsyncConnection[Row], migrations: tuple[Migration, ...]) -> None:
    """Apply the pending migrations on a connection in autocommit mode. Other processes wait for the advisory lock."""
    with suppress(psycopg.Error):  # not available on every system
        # If this process dies during a long statement, the server notices and releases the lock.
        await connection.execute("SET client_connection_check_interval = '1s'")
    while await _apply_next(connection, migrations):
        pass


async def _apply_next(connection: psycopg.AsyncConnection[Row], migrations: tuple[Migration, ...]) -> bool:
    """Apply the first pending migration, if there is one. Returns True if more are pending."""
    async with connection.transaction():
        # Held until the end of the transaction, also if the process dies.
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (ADVISORY_LOCK,))
        await connection.execute(TABLE)
        rows = await connection.execute(APPLIED)
        todo = pending(migrations, await rows.fetchall())
        if todo:
            await _apply(connection, todo[0])
    return len(todo) > 1


async def _apply(connection: psycopg.AsyncConnection[Row], migration: Migration) -> None:
    try:
        # Without parameters psycopg sends the whole text, and the server splits it into statements.
        await connection.execute(migration.scripts["postgres"].encode())
    except psycopg.Error as error:
        raise StorageMisconfigured(f"Migration {migration.name} failed: {error}") from error
    if connection.info.transaction_status != psycopg.pq.TransactionStatus.INTRANS:
        raise StorageMisconfigured(f"Migration {migration.name} ends its transaction.")
    failpoint("migrate.mid")
    await connection.execute(
        "INSERT INTO schema_version VALUES (%s, %s, %s, %s)",
        (migration.version, migration.name, migration.sha256, now_ms()),
    )
