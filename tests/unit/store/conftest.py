"""The store's tests on both databases, each with a schema and queries of its own."""

import secrets
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.unit.store import small_schema


@pytest.fixture
def migrations(tmp_path: Path) -> Path:
    """A folder of migrations that a test may add to."""
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "0001_begin.sql").write_text(small_schema.SCHEMA)
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
    """Here the server keeps its promises, because the store refuses one that does not."""
    return cluster.address


@pytest.fixture
def fresh_database(cluster: small_schema.Cluster) -> Iterator[str]:
    """As for all tests, but it does not mind a restart in between."""
    name = f"test_{secrets.token_hex(8)}"
    with psycopg.connect(f"{cluster.address}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    yield f"{cluster.address}/{name}"
    with psycopg.connect(f"{cluster.address}/postgres", autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
