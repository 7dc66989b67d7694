"""Fixtures for the unit tests: the real schema on an empty database, and an S3 server."""

from collections.abc import Iterator

import pytest

from penstock.store.base import Dialect
from tests.databases import Database, database_for
from tests.s3_server import S3Server, run_s3_server


@pytest.fixture
def database(request: pytest.FixtureRequest, dialect: Dialect) -> Database:
    """An empty database: the test runs once on SQLite and once on Postgres."""
    return database_for(request, dialect)


@pytest.fixture
def sqlite(request: pytest.FixtureRequest) -> Database:
    """An empty database on SQLite, for tests that do not depend on the database."""
    return database_for(request, "sqlite")


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with run_s3_server(tmp_path_factory.mktemp("buckets")) as s3:
        yield s3
