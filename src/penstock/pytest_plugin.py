"""A pytest fixture: a real gateway that replays recordings from files beside the tests."""

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

if TYPE_CHECKING:  # pytest loads this module in every run where the package is installed, so imports are made late
    from penstock.gateway import Gateway
    from penstock.values import OrgId

T = TypeVar("T")
_START_SECONDS = 60.0


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("penstock")
    group.addoption(
        "--penstock-record",
        action="store_true",
        help="Let tests that use the `penstock` fixture call providers, and replace their recordings.",
    )


@dataclass(frozen=True, slots=True)
class GatewayAccess:
    """What a test needs to call the gateway, as in `openai.OpenAI(base_url=…, api_key=…)`."""

    base_url: str
    api_key: str = field(repr=False)
    recordings: Path


@pytest.fixture(scope="session")
def _penstock_gateway() -> Iterator[_GatewayThread]:
    with TemporaryDirectory(prefix="penstock-") as folder:
        thread = _GatewayThread(Path(folder))
        try:
            yield thread
        finally:
            thread.stop()


@pytest.fixture(scope="module")
def penstock(request: pytest.FixtureRequest, _penstock_gateway: _GatewayThread) -> Iterator[GatewayAccess]:
    """A gateway in replay mode, with the recordings in `recordings/<test module>` beside the test file.

    With `--penstock-record` it calls the providers whose credentials are in the environment, and the recordings in the
    folder are replaced.
    """
    records = bool(request.config.getoption("--penstock-record"))
    folder = request.path.parent / "recordings" / request.path.stem
    org_id, key = _penstock_gateway.call(_import_recordings(_penstock_gateway.gateway, folder, records))
    try:
        yield GatewayAccess(_penstock_gateway.base_url, key, folder)
    finally:
        if records:
            _penstock_gateway.call(_export_recordings(_penstock_gateway.gateway, org_id, folder))


async def _import_recordings(gateway: Gateway, folder: Path, records: bool) -> tuple[OrgId, str]:
    """Create an organization for a test module, import its recordings, and return the id and a key."""
    from penstock.accounts.orgs import create_org
    from penstock.accounts.transfers import add_credit
    from penstock.recordings import files
    from penstock.values import nanos

    now = gateway.clock.now_ms()
    org = await create_org(gateway.store, gateway.clock, folder.name, "prepaid")
    await gateway.store.write(lambda tx: add_credit(tx, org.id, nanos(1000), now, "for tests"))
    documents = [] if records else await asyncio.to_thread(lambda: sorted(folder.glob("*.json")))
    for document in documents:
        loaded = await asyncio.to_thread(files.load_recording, document)
        await files.import_recording(gateway.store, gateway.recordings, org.id, *loaded, now, pool=gateway.worker_pool)
    mode = "replay-or-record" if records else "replay-or-error"
    made = await gateway.keys.create_key(org.id, name="tests", replay_mode=mode)
    return org.id, made.key


async def _export_recordings(gateway: Gateway, org_id: OrgId, folder: Path) -> None:
    """Replace the recordings in the folder by those of this run."""
    from penstock.recordings import files

    rows = [await gateway.recordings.get(org_id, row.id) for row in await gateway.recordings.all(org_id)]
    exported = [await files.export_recording(gateway.recordings, row) for row in rows]

    def save() -> None:
        for old in folder.glob("rec_*"):
            old.unlink()
        for document, media_files in exported:
            files.save_recording(folder, document, media_files)

    await asyncio.to_thread(save)


class _GatewayThread:
    """A gateway that is served by a thread with its own event loop; one for the whole session."""

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
        """Run a coroutine on the event loop of the gateway and return its result."""
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
        from penstock import settings_loading
        from penstock.api.asgi import AsgiApp
        from penstock.app import build_gateway, ensure_first_key, run_background_work
        from penstock.http_server import server

        loaded = settings_loading.load({"data": folder, "port": port, "access_log": False})
        async with build_gateway(loaded) as gateway, run_background_work(gateway):
            await ensure_first_key(gateway)
            app = AsgiApp(gateway)
            serving = asyncio.create_task(
                server.serve(app, loaded, lambda: self._ready.set_result(gateway), listener=self._listener)
            )
            await self._stop.wait()
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
