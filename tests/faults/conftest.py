"""Databases for processes that are broken on purpose, and how long to go on breaking them."""

import secrets
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from penstock.store.base import Dialect
from tests.unit.store.small_schema import Cluster


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, default=4, help="How often to kill the gateway at random moments.")
    parser.addoption("--batch-rows", type=int, default=200, help="How many rows the batch has that is killed.")
    parser.addoption("--monkey-seconds", type=float, default=12, help="How long to restart the database at random.")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A Postgres that waits for the disk, because real servers refuse any other."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-faults-"))
    try:
        cluster = Cluster(folder)
        cluster.start()
        yield cluster
        cluster.stop(signal.SIGINT)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def database(request: pytest.FixtureRequest, dialect: Dialect) -> Iterator[str]:
    """Address of an empty database, or nothing for SQLite."""
    if dialect == "sqlite":
        yield ""
        return
    cluster: Cluster = request.getfixturevalue("cluster")
    name = f"test_{secrets.token_hex(8)}"
    with psycopg.connect(f"{cluster.address}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    yield f"{cluster.address}/{name}"
    with psycopg.connect(f"{cluster.address}/postgres", autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
