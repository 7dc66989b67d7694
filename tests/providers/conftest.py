"""Provider tests run on SQLite only, because providers do not use the database."""

import pytest

from penstock.store.base import Dialect


@pytest.fixture
def dialect() -> Dialect:
    return "sqlite"
