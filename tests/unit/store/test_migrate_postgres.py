"""A migration that fails on Postgres leaves nothing behind."""

from pathlib import Path

import pytest

from penstock.store.base import StorageMisconfigured
from tests.unit.store.small_schema import Database, query, versions


async def test_a_failed_migration_leaves_the_version_before(postgres_database: Database, migrations: Path) -> None:
    bad = migrations / "0002_bad.sql"
    bad.write_text("CREATE TABLE more (a TEXT); INSERT INTO nowhere VALUES (1);")
    with pytest.raises(StorageMisconfigured, match=r"0002_bad failed: .*nowhere"):
        async with postgres_database.open():
            pass
    assert versions(postgres_database) == [(1, "0001_schema")]
    assert query(postgres_database, "SELECT to_regclass('more')") == [(None,)]
    bad.write_text("CREATE TABLE more (a TEXT); COMMIT;")
    with pytest.raises(StorageMisconfigured, match="0002_bad ends its transaction"):
        async with postgres_database.open():
            pass
    assert versions(postgres_database) == [(1, "0001_schema")]
