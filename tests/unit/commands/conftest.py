"""One running gateway for the commands that call a gateway."""

import asyncio
import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.app.opening import open_store_and_vault
from penstock.settings import Settings
from tests.command_line import Ended, penstock
from tests.fake_providers.scripted import scripted_provider_in_thread
from tests.stories.processes import Installation, Serving

Command = Callable[..., Ended]
TypeOnStdin = Callable[[bytes], None]


@pytest.fixture
def data_folder(tmp_path: Path) -> Path:
    """A data folder in which a gateway has run once, on SQLite."""
    data = tmp_path / "gateway"

    async def run_once() -> None:
        async with open_store_and_vault(Settings(data=data)):
            pass

    asyncio.run(run_once())
    return data


@pytest.fixture(scope="session")
def served_installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A data folder and a fake provider. The commands speak HTTP, so the database makes no difference to them."""
    with scripted_provider_in_thread() as lab:
        yield Installation(tmp_path_factory.mktemp("commands") / "data", "", lab)


@pytest.fixture(scope="session")
def served(served_installation: Installation) -> Iterator[Serving]:
    """A gateway that runs on that installation."""
    with served_installation.serving() as serving:
        yield serving


@pytest.fixture
def type_on_stdin(monkeypatch: pytest.MonkeyPatch) -> TypeOnStdin:
    """Put bytes on stdin."""
    return lambda content: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.fixture
def run(served: Serving, type_on_stdin: TypeOnStdin) -> Command:
    """Run a command against the gateway, with the key in the environment and nothing on stdin."""
    type_on_stdin(b"")
    return lambda *words: penstock(*words, PENSTOCK_URL=served.url, PENSTOCK_KEY=served.key)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that commands run in."""
    path = tmp_path / "here"
    path.mkdir()
    monkeypatch.chdir(path)
    return path
