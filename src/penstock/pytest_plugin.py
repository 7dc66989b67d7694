"""Pytest fixtures: a real gateway that replays recordings from files beside the tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # pytest loads this module in every run where the package is installed, so imports are made late
    from penstock.commands.replay_gateway import ReplayGateway

_NAME_CHARS = 100


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("penstock")
    group.addoption(
        "--penstock-record",
        action="store_true",
        help="Let tests that use the fixtures `penstock` and `penstock_cassette` call providers, and replace their "
        "recordings.",
    )


@dataclass(frozen=True, slots=True)
class GatewayAccess:
    """What a test needs to call the gateway, as in `openai.OpenAI(base_url=…, api_key=…)`."""

    base_url: str
    api_key: str = field(repr=False)
    recordings: Path


@pytest.fixture(scope="session")
def _penstock_gateway() -> Iterator[ReplayGateway]:
    from penstock.commands.quick_imports import quick_imports

    with quick_imports():
        from penstock.commands.replay_gateway import ReplayGateway

    with TemporaryDirectory(prefix="penstock-") as folder:
        thread = ReplayGateway(Path(folder))
        try:
            yield thread
        finally:
            thread.stop()


@pytest.fixture(scope="module")
def penstock(request: pytest.FixtureRequest, _penstock_gateway: ReplayGateway) -> Iterator[GatewayAccess]:
    """A gateway in replay mode, with the recordings in `recordings/<test module>` beside the test file.

    With `--penstock-record` it calls the providers whose credentials are in the environment, and the recordings in the
    folder are replaced. Calls that match are recorded once.
    """
    folder = request.path.parent / "recordings" / request.path.stem
    yield from _access(request, _penstock_gateway, folder, per_test=False)


@pytest.fixture
def penstock_cassette(request: pytest.FixtureRequest, _penstock_gateway: ReplayGateway) -> Iterator[GatewayAccess]:
    """The same for one test, with the recordings in `recordings/<test module>/<test>`: every call of it, in order."""
    name = re.sub(r"[^\w.-]+", "-", request.node.name).strip("-.")[:_NAME_CHARS]
    folder = request.path.parent / "recordings" / request.path.stem / name
    yield from _access(request, _penstock_gateway, folder, per_test=True)


def _access(
    request: pytest.FixtureRequest, served: ReplayGateway, folder: Path, *, per_test: bool
) -> Iterator[GatewayAccess]:
    from penstock.commands.replay_gateway import open_cassette, save_cassette

    records = bool(request.config.getoption("--penstock-record"))
    recording = "record" if per_test else "replay-or-record"
    org_id, key = served.call(open_cassette(served.gateway, folder, recording if records else "replay-or-error"))
    try:
        yield GatewayAccess(served.base_url, key, folder)
    finally:
        if records:
            served.call(save_cassette(served.gateway, org_id, folder, numbered=per_test))
