"""A gateway for tests in a thread of its own, and the cassettes that it replays: folders with the calls of one run."""

import asyncio
import re
import socket
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from penstock.accounts.orgs import create_org
from penstock.accounts.transfers import add_credit
from penstock.api.asgi import AsgiApp
from penstock.app.background import run_background_work
from penstock.app.build import build_gateway
from penstock.app.first_start import ensure_first_key
from penstock.gateway import Gateway
from penstock.http_server import server
from penstock.recordings import files, folders
from penstock.settings.loading import load
from penstock.values import OrgId, nanos

T = TypeVar("T")
_Entry = tuple[int, str, Any, Sequence[tuple[str, bytes]]]  # when, what, and the files of it
_START_SECONDS = 60.0
# Files that a cassette has written: numbered in the order of the calls, or named by the ids of recordings.
_OWN_FILE = re.compile(rf"(\d{{2,4}}-({'|'.join([*files.KINDS, 'webhook'])})|rec_\w+)(-\d+)?\.\w+")


async def open_cassette(gateway: Gateway, folder: Path, mode: str, *, usd: str = "1000") -> tuple[OrgId, str]:
    """Create an organization that has the recordings of a folder, unless it is to record all anew, and so much money;
    return its id and a key with this replay mode.
    """
    now = gateway.clock.now_ms()
    org = await create_org(gateway.store, gateway.clock, folder.name, "prepaid")
    await gateway.store.write(lambda tx: add_credit(tx, org.id, nanos(usd), now, "for tests"))
    documents = [] if mode.endswith("record") else await asyncio.to_thread(_load, folder)
    for document, media in documents:
        await files.import_recording(
            gateway.store, gateway.recordings, org.id, document, media, now, pool=gateway.worker_pool
        )
    made = await gateway.keys.create_key(org.id, name="tests", replay_mode=mode)
    return org.id, made.key


def _load(folder: Path) -> list[tuple[Any, dict[str, bytes]]]:
    """The recordings of a folder; its webhooks are for readers, since a replay sends its own."""
    found = [folders.load_recording(path) for path in sorted(folder.glob("*.json"))]
    return [(document, media) for document, media in found if "penstock_webhook" not in document]


async def save_cassette(gateway: Gateway, org_id: OrgId, folder: Path, *, numbered: bool) -> None:
    """Replace the recordings in a folder by those of this run: numbered in the order of the calls, together with the
    webhooks that were sent, or under their ids.
    """
    rows = [await gateway.recordings.get(org_id, row.id) for row in await gateway.recordings.all(org_id)]
    exported = [(row, await files.export_recording(gateway.recordings, row)) for row in rows]
    webhooks = await gateway.store.slow("list_events_of_org", org_id=org_id) if numbered else []

    def save() -> None:
        if folder.is_dir():
            for old in folder.iterdir():
                if _OWN_FILE.fullmatch(old.name):
                    old.unlink()
        entries: list[_Entry] = [(row.created_at_ms, row.kind, document, media) for row, (document, media) in exported]
        entries += [(row["created_at_ms"], "webhook", _webhook(row), []) for row in webhooks]
        entries.sort(key=lambda entry: entry[0])
        for number, (_, kind, document, media) in enumerate(entries, 1):
            folders.save_recording(folder, document, media, f"{number:02}-{kind}" if numbered else None)

    await asyncio.to_thread(save)


def _webhook(row: dict[str, Any]) -> dict[str, Any]:
    return {"penstock_webhook": 1, "event": row["event"], "body": msgspec.json.decode(row["body"])}


class ReplayGateway:
    """A gateway that is served by a thread with its own event loop."""

    gateway: Gateway

    def __init__(self, folder: Path, config: Path | None = None) -> None:
        """`config` is the path of a penstock.toml."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.base_url = f"http://127.0.0.1:{port}/compat/v1"
        self._loop = asyncio.new_event_loop()
        self._ready: Future[Gateway] = Future()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, args=(folder, port, config), name="penstock", daemon=True)
        self._thread.start()
        self.gateway = self._ready.result(_START_SECONDS)

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the event loop of the gateway and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_START_SECONDS)
        self._loop.close()

    def _run(self, folder: Path, port: int, config: Path | None) -> None:
        try:
            self._loop.run_until_complete(self._serve(folder, port, config))
        except BaseException as problem:
            if self._ready.done():
                raise
            self._ready.set_exception(problem)

    async def _serve(self, folder: Path, port: int, config: Path | None) -> None:
        # The receivers of webhooks in tests are on this machine.
        options = {
            "data": folder,
            "config": config,
            "port": port,
            "access_log": False,
            "egress_allow_hosts": ("localhost", "127.0.0.1"),
        }
        loaded = load(options)
        async with build_gateway(loaded) as gateway, run_background_work(gateway):
            await ensure_first_key(gateway)
            app = AsgiApp(gateway)
            serving = asyncio.create_task(
                server.serve(app, loaded, lambda: self._ready.set_result(gateway), listener=self._listener)
            )
            await self._stop.wait()
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
