"""Fixtures of the stories: the real server as a process, on SQLite and on a durable Postgres."""

from collections.abc import Iterator
from pathlib import Path

import openai
import pytest

from penstock.store.base import Dialect
from tests import postgres
from tests.fake_providers.scripted import ScriptedProvider, scripted_provider_in_thread
from tests.stories.processes import Installation, Serving


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A Postgres with fsync, because the server refuses one without."""
    with postgres.server(postgres.COMMON) as address:
        yield address


@pytest.fixture
def lab() -> Iterator[ScriptedProvider]:
    with scripted_provider_in_thread() as lab:
        yield lab


@pytest.fixture
def story(request: pytest.FixtureRequest, dialect: Dialect, tmp_path: Path, lab: ScriptedProvider) -> Installation:
    """A data folder on which servers can be started, stopped and killed."""
    database = request.getfixturevalue("fresh_database") if dialect == "postgres" else ""
    return Installation(tmp_path / "data", database, lab)


@pytest.fixture(scope="session")
def shared_lab() -> Iterator[ScriptedProvider]:
    """The provider of the shared server; what other tests sent to it stays."""
    with scripted_provider_in_thread() as lab:
        yield lab


@pytest.fixture(scope="session")
def shared_server(shared_lab: ScriptedProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A running server on SQLite for tests that do not need one of their own; at the end its audit must be clean."""
    story = Installation(tmp_path_factory.mktemp("shared") / "data", "", shared_lab)
    with story.serving() as serving:
        yield serving
        assert story.penstock("audit").status == 0


@pytest.fixture
def shared_client(shared_server: Serving) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=shared_server.base_url, api_key=shared_server.key, timeout=30) as client:
        yield client


@pytest.fixture
def served(story: Installation) -> Iterator[Serving]:
    """A running server; `penstock audit` must be clean after the test."""
    with story.serving() as serving:
        yield serving
        assert story.penstock("audit").status == 0
