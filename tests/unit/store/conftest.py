"""The store's tests on both databases, each with a schema and queries of its own."""

import secrets
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.unit.store import ground


@pytest.fixture
def migrations(tmp_path: Path) -> Path:
    """A folder of migrations that a test may add to."""
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "0001_begin.sql").write_text(ground.SCHEMA)
    return folder


@pytest.fixture
def sqlite_database(tmp_path: Path, migrations: Path) -> ground.Database:
    return ground.database("sqlite", str(tmp_path / "penstock.db"), migrations)


@pytest.fixture
def postgres_database(fresh_database: str, migrations: Path) -> ground.Database:
    return ground.database("postgres", fresh_database, migrations)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> ground.Database:
    found: ground.Database = request.getfixturevalue(f"{request.param}_database")
    return found


@pytest.fixture(scope="session")
def cluster() -> Iterator[ground.Cluster]:
    folder = Path(tempfile.mkdtemp(prefix="penstock-cluster-"))
    try:
        cluster = ground.Cluster(folder)
        cluster.start()
        yield cluster
        cluster.stop(signal.SIGINT)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_url(cluster: ground.Cluster) -> str:
    """Here the server keeps its promises, because the store refuses one that does not."""
    return cluster.address


@pytest.fixture
def fresh_database(cluster: ground.Cluster) -> Iterator[str]:
    """As for all tests, but it does not mind a restart in between."""
    name = f"test_{secrets.token_hex(8)}"
    with psycopg.connect(f"{cluster.address}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    yield f"{cluster.address}/{name}"
    with psycopg.connect(f"{cluster.address}/postgres", autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
