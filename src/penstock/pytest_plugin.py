"""A pytest fixture: a real gateway that answers from recordings kept beside the tests."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:  # pytest loads this module in every run of everybody who has the package: keep that cheap
    from penstock.gateway import Gateway

T = TypeVar("T")
_START_SECONDS = 60.0


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("penstock")
    group.addoption(
        "--penstock-record",
        action="store_true",
        help="Let tests that use the `penstock` fixture reach providers, and record anew what they answer.",
    )


@dataclass(frozen=True, slots=True)
class Served:
    """What a test needs to talk to the gateway: `openai.OpenAI(base_url=…, api_key=…)`."""

    base_url: str
    api_key: str = field(repr=False)
    recordings: Path


@pytest.fixture(scope="session")
def _penstock_gateway() -> Iterator[_Thread]:
    with TemporaryDirectory(prefix="penstock-") as folder:
        thread = _Thread(Path(folder))
        try:
            yield thread
        finally:
            thread.stop()


@pytest.fixture(scope="module")
def penstock(request: pytest.FixtureRequest, _penstock_gateway: _Thread) -> Iterator[Served]:
    """A gateway in replay mode; its recordings lie in `recordings/<test module>` beside the test file.

    With `--penstock-record` it reaches the providers whose credentials are in the environment, and the folder is
    written anew from what they answered.
    """
    anew = bool(request.config.getoption("--penstock-record"))
    folder = request.path.parent / "recordings" / request.path.stem
    org_id, key = _penstock_gateway.call(_moved_in(_penstock_gateway.gateway, folder, anew))
    try:
        yield Served(_penstock_gateway.base_url, key, folder)
    finally:
        if anew:
            _penstock_gateway.call(_moved_out(_penstock_gateway.gateway, org_id, folder))


async def _moved_in(gateway: Gateway, folder: Path, anew: bool) -> tuple[str, str]:
    """An organization of its own for each test module, with the recordings of that module and no others."""
    from penstock.accounts.orgs import create_org
    from penstock.accounts.transfers import add_credit
    from penstock.recordings import files as transcripts
    from penstock.values import nanos

    now = gateway.clock.now_ms()
    org = await create_org(gateway.store, gateway.clock, folder.name, "prepaid")
    await gateway.store.write(lambda tx: add_credit(tx, org.id, nanos(1000), now, "for tests"))
    documents = [] if anew else await asyncio.to_thread(lambda: sorted(folder.glob("*.json")))
    for document in documents:
        loaded = await asyncio.to_thread(transcripts.load, document)
        await transcripts.taken_in(gateway.store, gateway.recordings, org.id, *loaded, now)
    mode = "replay-or-record" if anew else "replay-or-error"
    made = await gateway.keys.create_key(org.id, name="tests", replay_mode=mode)
    return org.id, made.key


async def _moved_out(gateway: Gateway, org_id: str, folder: Path) -> None:
    """The folder holds exactly what this run recorded."""
    from penstock.recordings import files as transcripts

    rows = await gateway.recordings.all(org_id)
    written = [await transcripts.written(gateway.recordings, row, inline=False) for row in rows]

    def save() -> None:
        for old in folder.glob("rec_*"):
            old.unlink()
        for transcript, files in written:
            transcripts.save(folder, transcript, files)

    await asyncio.to_thread(save)


class _Thread:
    """The gateway, served from a thread with a loop of its own; one for the whole session."""

    gateway: Gateway

    def __init__(self, folder: Path) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.base_url = f"http://127.0.0.1:{port}/compat/v1"
        self._loop = asyncio.new_event_loop()
        self._ready: Future[Gateway] = Future()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, args=(folder, port), name="penstock", daemon=True)
        self._thread.start()
        self.gateway = self._ready.result(_START_SECONDS)

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_START_SECONDS)
        self._loop.close()

    def _run(self, folder: Path, port: int) -> None:
        try:
            self._loop.run_until_complete(self._serve(folder, port))
        except BaseException as problem:
            if self._ready.done():
                raise
            self._ready.set_exception(problem)

    async def _serve(self, folder: Path, port: int) -> None:
        from penstock import settings
        from penstock.api import server
        from penstock.api.asgi import AsgiApp
        from penstock.app import first_start, opened_gateway, working

        these = settings.load({"data": folder, "port": port})
        async with opened_gateway(these) as gateway, working(gateway):
            await first_start(gateway)
            app = AsgiApp(gateway)
            serving = asyncio.create_task(
                server.serve(app, these, lambda: self._ready.set_result(gateway), listener=self._listener)
            )
            await self._stop.wait()
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
