"""Fixtures for the unit tests: the real schema on an empty database."""

import pytest

from penstock.store.base import Dialect
from tests.databases import Database, database_for


@pytest.fixture
def database(request: pytest.FixtureRequest, dialect: Dialect) -> Database:
    """An empty database: the test runs once on SQLite and once on Postgres."""
    return database_for(request, dialect)


@pytest.fixture
def sqlite(request: pytest.FixtureRequest) -> Database:
    """An empty database on SQLite, for tests that do not depend on the database."""
    return database_for(request, "sqlite")
