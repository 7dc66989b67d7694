"""A browser and a gateway for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.store.base import Dialect
from tests.browser.chromium import Browser, chromium
from tests.stories.conftest import lab, served, story

__all__ = ["browser", "dialect", "lab", "served", "story"]


@pytest.fixture
def dialect() -> Dialect:
    """The database makes no difference here."""
    return "sqlite"


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    with chromium(downloads) as browser:
        yield browser
