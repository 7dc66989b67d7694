"""Fixtures for the tests of the store: both databases with a small schema and its queries."""

import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import postgres
from tests.unit.store import small_schema


@pytest.fixture
def migrations(tmp_path: Path) -> Path:
    """A folder of migrations, to which a test may add."""
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "0001_schema.sql").write_text(small_schema.SCHEMA)
    return folder


@pytest.fixture
def sqlite_database(tmp_path: Path, migrations: Path) -> small_schema.Database:
    return small_schema.database("sqlite", str(tmp_path / "penstock.db"), migrations)


@pytest.fixture
def postgres_database(fresh_database: str, migrations: Path) -> small_schema.Database:
    return small_schema.database("postgres", fresh_database, migrations)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> small_schema.Database:
    found: small_schema.Database = request.getfixturevalue(f"{request.param}_database")
    return found


@pytest.fixture(scope="session")
def cluster() -> Iterator[small_schema.Cluster]:
    folder = Path(tempfile.mkdtemp(prefix="penstock-cluster-"))
    try:
        cluster = small_schema.Cluster(folder)
        cluster.start()
        yield cluster
        cluster.stop(signal.SIGINT)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_url(cluster: small_schema.Cluster) -> str:
    """A server that waits for the disk, because the store refuses any other."""
    return cluster.address


@pytest.fixture(scope="session")
def shared_database(cluster: small_schema.Cluster) -> Iterator[postgres.SharedDatabase]:
    """A database with the gateway's tables on this server."""
    with postgres.shared_database(cluster.address) as database:
        yield database
