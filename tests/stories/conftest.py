"""Whole journeys: the real server as a process, on SQLite and on a Postgres that keeps its promises."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.store.base import Dialect
from tests import postgres
from tests.fake_providers.scripted import ScriptedProvider, scripted_provider_in_thread
from tests.stories.processes import Ground, Serving


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """Waits for the disk, because the server refuses one that does not."""
    with postgres.server(postgres.COMMON) as address:
        yield address


@pytest.fixture
def lab() -> Iterator[ScriptedProvider]:
    with scripted_provider_in_thread() as lab:
        yield lab


@pytest.fixture
def story(request: pytest.FixtureRequest, dialect: Dialect, tmp_path: Path, lab: ScriptedProvider) -> Ground:
    """Where a server can be started, stopped and killed as often as the story wants."""
    database = request.getfixturevalue("fresh_database") if dialect == "postgres" else ""
    return Ground(tmp_path / "data", database, lab)


@pytest.fixture
def served(story: Ground) -> Iterator[Serving]:
    """A server at work, whose books are in order when the story is over."""
    with story.serving() as serving:
        yield serving
        assert story.penstock("audit").returncode == 0
