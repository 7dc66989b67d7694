"""The settings decide which database is opened, with the real schema and queries."""

from pathlib import Path

import pytest

from penstock import package_extras
from penstock.settings import Settings
from penstock.store.opening import open_store


async def test_sqlite_by_default(tmp_path: Path) -> None:
    store = await open_store(Settings(data=tmp_path))
    try:
        assert store.dialect == "sqlite"
        assert (tmp_path / "penstock.db").is_file()
        assert await store.one("get_fact", name="first_org") is None
    finally:
        await store.close()


async def test_postgres_if_the_settings_have_its_url(
    tmp_path: Path, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.store.postgres.DURABILITY", {})  # the tests' server runs without fsync, for speed
    store = await open_store(Settings(data=tmp_path, database=fresh_database, database_connections=2))
    try:
        assert store.dialect == "postgres"
        assert await store.one("get_fact", name="first_org") is None
    finally:
        await store.close()


async def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(package_extras, "find_spec", lambda name: None)
    with pytest.raises(
        package_extras.ExtraMissing, match=r"^Postgres needs an extra: pip install '\.\[postgres\]' in a"
    ):
        await open_store(Settings(data=tmp_path, database="postgresql://db.test/penstock"))
