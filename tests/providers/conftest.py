"""Providers care for no database: their journeys run on SQLite alone."""

import pytest

from penstock.store.base import Dialect


@pytest.fixture
def dialect() -> Dialect:
    return "sqlite"
