"""A SQLite connection has checked settings, a private file, and the errors of the store."""

from pathlib import Path

import apsw
import pytest

from penstock.store.base import ConstraintViolated, StorageMisconfigured, StorageUnavailable
from penstock.store.queries import parse_queries
from penstock.store.sqlite_session import SETTINGS, check_settings, check_version, open_session, store_error

QUERIES = parse_queries("""
-- name: list_things
-- All of them.
SELECT a, b FROM things;

-- name: add_thing
-- One more.
INSERT INTO things (a, b) VALUES (:a, :b);
""").sqlite


def test_a_new_file_has_every_setting_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "penstock.db"
    session = open_session(path, QUERIES)
    session.connection.execute("CREATE TABLE things (a, b)")
    assert {name: session.connection.pragma(name) for name in SETTINGS} == SETTINGS
    for suffix in ("", "-wal", "-shm"):
        assert path.with_name(path.name + suffix).stat().st_mode & 0o777 == 0o600
    session.connection.close()


def test_a_commit_waits_for_the_disk(tmp_path: Path) -> None:
    session = open_session(tmp_path / "penstock.db", QUERIES)
    found = session.connection.pragma("journal_mode"), session.connection.pragma("synchronous")
    session.connection.close()
    assert found == ("wal", 2)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("journal_mode", "delete"), ("synchronous", 1), ("foreign_keys", 0), ("secure_delete", 0), ("temp_store", 0)],
)
def test_each_missing_setting_is_named(tmp_path: Path, name: str, wrong: str | int) -> None:
    session = open_session(tmp_path / "penstock.db", QUERIES)
    check_settings(session.connection)
    session.connection.pragma(name, wrong)
    with pytest.raises(StorageMisconfigured, match=f"SQLite setting {name} is {wrong!r}"):
        check_settings(session.connection)
    session.connection.close()


def test_a_database_that_cannot_have_a_log_is_refused() -> None:
    """A database in memory has no write-ahead log, and SQLite ignores the pragma that asks for one."""
    before = Path(":memory:")
    assert not before.exists()
    with pytest.raises(StorageMisconfigured, match="journal_mode is 'memory'"):
        open_session(before, QUERIES, read_only=True)


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageMisconfigured, match=r"Cannot open the database .*/nowhere/penstock\.db"):
        open_session(tmp_path / "nowhere" / "penstock.db", QUERIES)
    (tmp_path / "letter.db").write_text("Dear all, this is not a database. " * 100)
    with pytest.raises(StorageMisconfigured, match=r"Cannot use the database .*/letter\.db: .*not a database"):
        open_session(tmp_path / "letter.db", QUERIES)


@pytest.mark.parametrize("version", ["3.51.2", "3.40.1", "3.7.0", "2.99.99"])
def test_old_releases_are_refused(version: str) -> None:
    with pytest.raises(StorageMisconfigured, match=f"SQLite {version} can corrupt"):
        check_version(version)


@pytest.mark.parametrize("version", ["3.51.3", "3.54.1", "4.0", apsw.sqlite_lib_version()])
def test_newer_releases_are_accepted(version: str) -> None:
    check_version(version)


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    path = tmp_path / "penstock.db"
    writer = open_session(path, QUERIES)
    writer.connection.execute("CREATE TABLE things (a, b)")
    reader = open_session(path, QUERIES, read_only=True)
    assert reader.rows(QUERIES["list_things"], {}) == []
    with pytest.raises(apsw.ReadOnlyError):
        reader.run(QUERIES["add_thing"], {"a": 1, "b": 2})
    assert writer.run(QUERIES["add_thing"], {"a": 1, "b": 2}) == 1
    assert reader.rows(QUERIES["list_things"], {}) == [{"a": 1, "b": 2}]
    reader.connection.close()
    writer.connection.close()


def test_errors_of_sqlite_become_errors_of_the_store() -> None:
    assert isinstance(store_error(apsw.FullError()), StorageUnavailable)
    assert "no space" in str(store_error(apsw.FullError()))
    assert "another process" in str(store_error(apsw.BusyError()))
    assert isinstance(store_error(apsw.IOError()), StorageUnavailable)
    assert isinstance(store_error(apsw.CorruptError()), StorageUnavailable)
    assert isinstance(store_error(apsw.ConstraintError()), ConstraintViolated)
    for error in (apsw.SQLError("near"), ValueError("x")):
        assert store_error(error) is error
