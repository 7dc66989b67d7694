"""A whole gateway in the test's event loop: real database and storage, a fake provider, and a clock that tests move.

    async with open_gateway() as running:
        image = await running.image(prompt="a pear")
        started = await running.video(prompt="a train", seconds=4)
        video = await running.wait_for_video(started.json["id"])

The audit runs when the gateway is closed; anything it finds fails the test.
"""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    closing,
    contextmanager,
    suppress,
)
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import apsw
import msgspec
import psycopg
import pytest
from psycopg.rows import dict_row

from penstock import failpoints
from penstock.accounts.audit import audit
from penstock.accounts.orgs import create_org
from penstock.accounts.transfers import add_credit
from penstock.app.background import run_background_work
from penstock.app.build import build_gateway
from penstock.app.first_start import ensure_first_key
from penstock.errors import StorageUnavailable
from penstock.gateway import Gateway
from penstock.generations import endpoints, retrieve
from penstock.generations.cancel import cancel_video
from penstock.generations.purge import purge
from penstock.jobs.leases import Jobs, Run
from penstock.jobs.running import Lease, RunningJob
from penstock.media.opening import open_storage
from penstock.media.storage import Storage
from penstock.recordings import files
from penstock.recordings.files import RecordingFile
from penstock.recordings.recordings import Recordings
from penstock.recordings.rows import RecordingRow
from penstock.schema import Call, Caller, Response
from penstock.settings import Settings
from penstock.store import postgres, sqlite
from penstock.store.base import Dialect, Transaction
from penstock.values import Nanos, OrgId, nanos, new_id
from tests import lock_order
from tests.child_tasks import run_tasks_in_threads
from tests.databases import put_migrated_file, without_waiting_for_the_disk
from tests.fake_providers.scripted import KEY, KEY_ENV, ScriptedProvider, scripted_provider
from tests.manual_clock import ManualClock

MASTER = "m" * 43
ENDED = ("completed", "upstream_failure", "cancelled", "rejected")
SECONDS_BETWEEN_WRITES = 3.0  # much shorter than a lease


@dataclass(slots=True)
class RunningGateway:
    """A running gateway, and a caller to make calls for."""

    gateway: Gateway
    clock: ManualClock
    lab: ScriptedProvider
    annex: ScriptedProvider
    caller: Caller
    storage: Storage
    key: str = field(repr=False)
    works: bool = True

    # --------------------------------------------------------------------------------------------------------- calling

    def call(
        self,
        body: Any = None,
        *,
        endpoint: str = "/compat/v1/videos",
        caller: Caller | None = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        **path: str,
    ) -> Call:
        at_ms = self.clock.now_ms()
        data = b"" if body is None else json.dumps(body).encode()
        return Call(
            id=new_id("req", at_ms),
            caller=caller or self.caller,
            endpoint=endpoint,
            at_ms=at_ms,
            started=self.clock.monotonic(),
            headers=headers or {},
            query=query or {},
            path=path,
            body=data,
            json=body,
            size_bytes=len(data),
            base_url="http://gateway.test",
        )

    async def image(
        self, *, caller: Caller | None = None, headers: Mapping[str, str] | None = None, **body: Any
    ) -> Any:
        """The JSON of the response; by default a small image from the provider `lab`."""
        body = {"model": "image-1", "prompt": "a pear", "size": "64x64", **body}
        call = self.call(body, endpoint="/compat/v1/images/generations", caller=caller, headers=headers)
        return (await endpoints.make_images(self.gateway, call)).json

    async def edit(self, **body: Any) -> Any:
        body = {"model": "edit-1", "prompt": "add a hat", "size": "64x64", **body}
        return (await endpoints.edit_images(self.gateway, self.call(body, endpoint="/compat/v1/images/edits"))).json

    async def video(
        self, *, caller: Caller | None = None, query: Mapping[str, str] | None = None, **body: Any
    ) -> Response:
        body = {"model": "video-1", "prompt": "a train", "seconds": 4, **body}
        response = await endpoints.start_video(self.gateway, self.call(body, caller=caller, query=query))
        if self.works and self.gateway.settings.worker and "id" in response.json:
            await self._wait_until_claimed(response.json["id"], (caller or self.caller).org_id)
        return response

    async def _wait_until_claimed(self, video_id: str, org_id: OrgId) -> None:
        """Wait until a worker has claimed it: in a cluster it goes through the queue, which uses real time."""
        async with asyncio.timeout(45):
            while True:
                row = await self.gateway.store.one("get_generation", id=video_id, org_id=org_id)
                if row is None or row["lease_token"] or row["status"] == "failed":
                    return
                await asyncio.sleep(0.002)

    async def get_video(self, video_id: str, caller: Caller | None = None) -> Any:
        return (await retrieve.video(self.gateway, self.call(id=video_id, caller=caller))).json

    async def cancel(self, video_id: str) -> Response:
        return await cancel_video(self.gateway, self.call(id=video_id))

    async def purge(self, request_id: str) -> Any:
        call = self.call(endpoint="/v1/requests", request_id=request_id)
        return (await purge(self.gateway, call)).json

    # --------------------------------------------------------------------------------------------------------- reading

    async def record(self, request_id: str, caller: Caller | None = None) -> dict[str, Any]:
        found = await self.gateway.requests.get_record((caller or self.caller).org_id, request_id)
        assert found is not None, f"{request_id} has no record"
        return found

    async def records(self) -> list[dict[str, Any]]:
        rows = await self.gateway.store.all(
            "list_newer_requests", org_id=self.caller.org_id, low="req_", high="req_~", limit=10_000
        )
        return [dict(row) for row in rows]

    async def money(self, org_id: OrgId | None = None) -> tuple[Nanos, Nanos]:
        """The available and the held amount."""
        row = await self.gateway.store.one("get_balance", org_id=org_id or self.caller.org_id)
        assert row is not None
        return Nanos(row["available"]), Nanos(row["held"])

    async def rows(self, sql: str) -> list[dict[str, Any]]:
        """Rows read directly from the database."""
        settings = self.gateway.settings
        return await asyncio.to_thread(_rows, settings.database or settings.data / "penstock.db", sql)

    async def tables_with(self, word: str) -> list[str]:
        """The tables that have a row with a word in any of its columns."""
        if self.gateway.store.dialect == "sqlite":
            tables = await self.rows("SELECT name FROM sqlite_master WHERE type = 'table'")
        else:
            tables = await self.rows("SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'")
        found = []
        for table in tables:
            rows = await self.rows(f'SELECT * FROM "{table["name"]}"')  # noqa: S608 - the database's own names
            texts = (
                value if isinstance(value, bytes) else str(value).encode() for row in rows for value in row.values()
            )
            if any(word.encode() in text for text in texts):
                found.append(table["name"])
        return found

    async def change(self, *statements: str) -> None:
        """Change the database directly."""
        settings = self.gateway.settings
        await asyncio.to_thread(_change, settings.database or settings.data / "penstock.db", statements)

    async def transfers(self, request_id: str) -> dict[str, int]:
        """The transfers of one request by kind."""
        found = await self.rows(f"SELECT kind, amount FROM transfers WHERE ref = '{request_id}'")  # noqa: S608
        return {row["kind"]: row["amount"] for row in found}

    async def attempts(self, request_id: str) -> list[dict[str, Any]]:
        return await self.gateway.store.all("list_attempts", request_id=request_id)

    @property
    def scratch(self) -> list[str]:
        """The files in the scratch folder, without the locks of its owners."""
        folder = self.gateway.settings.data / "tmp"
        return [path.name for path in folder.rglob("*") if path.is_file() and path.name != "lock"]

    async def run_audit(self) -> list[str]:
        return await audit(self.gateway.store, self.storage, self.clock)

    # ---------------------------------------------------------------------------------------------------------- waiting

    async def wait_until(
        self, met: Callable[[], Awaitable[bool]], step_seconds: float = 1.0, seconds: float = 45
    ) -> None:
        """Move the clock until a condition is met; the real clock only limits how long this takes.

        Every few seconds of the clock it waits for the database: on a busy machine the leases of jobs would otherwise
        expire while their renewals are still being written.
        """
        passed = 0.0
        async with asyncio.timeout(seconds):
            while not await met():
                await asyncio.sleep(0.001)
                self.clock.advance(step_seconds)
                passed += step_seconds
                if passed >= SECONDS_BETWEEN_WRITES:
                    await self._wait_for_a_write()
                    passed = 0.0

    async def _wait_for_a_write(self) -> None:
        """Wait until the gateway's database has written something, but not for one that a test has stopped."""

        async def write_nothing(tx: Transaction) -> None:
            await tx.one("get_fact", name="first_org")

        with suppress(StorageUnavailable, TimeoutError):
            async with asyncio.timeout(0.1):
                await self.gateway.store.write(write_nothing)

    async def wait_for_request(self, request_id: str, step_seconds: float = 1.0) -> dict[str, Any]:
        """The record of a request once it has ended."""

        async def met() -> bool:
            return (await self.record(request_id))["status"] in ENDED

        await self.wait_until(met, step_seconds)
        return await self.record(request_id)

    async def wait_for_video(self, video_id: str, step_seconds: float = 1.0) -> Any:
        """A video once it has ended."""
        await self.wait_for_request(video_id, step_seconds)
        return await self.get_video(video_id)

    async def wait_until_idle(self) -> None:
        """Wait until every generation has been begun, and no job runs."""

        async def met() -> bool:
            waiting = await self.rows("SELECT id FROM generations WHERE status = 'queued' AND lease_token = 0")
            return self.gateway.jobs.running == 0 and not waiting

        await self.wait_until(met)

    # ----------------------------------------------------------------------------------------------------------- others

    async def create_caller_in_new_org(self, usd: str = "10", **limits: Any) -> Caller:
        """A caller of another organization."""
        org = await create_org(self.gateway.store, self.clock, "Other", "prepaid")
        await self.add_credit(usd, org.id)
        return await self.create_caller(org.id, **limits)

    async def create_caller(self, org_id: OrgId | None = None, **limits: Any) -> Caller:
        created = await self.gateway.keys.create_key(org_id or self.caller.org_id, **limits)
        return await self.gateway.keys.authenticate(f"Bearer {created.key}")

    async def add_credit(self, usd: str, org_id: OrgId | None = None) -> None:
        org = org_id or self.caller.org_id
        await self.gateway.store.write(
            lambda tx: add_credit(tx, org, nanos(usd), self.clock.now_ms(), "credit of a test")
        )


@contextmanager
def locked_balance(running: RunningGateway, org_id: OrgId) -> Iterator[None]:
    """A transaction of somebody else that keeps the balance of an organization locked."""
    database = running.gateway.settings.database
    assert database is not None
    with psycopg.connect(database) as other:
        other.execute("SELECT available FROM orgs WHERE id = %s FOR UPDATE", (org_id,))
        yield


def _rows(place: str | Path, sql: str) -> list[dict[str, Any]]:
    if isinstance(place, str):
        with _observer(place) as connection:
            return connection.execute(sql.encode()).fetchall()
    opened = apsw.Connection(str(place), flags=apsw.SQLITE_OPEN_READONLY)
    with closing(opened):
        cursor = opened.execute(sql)
        return [dict(zip([name for name, _ in cursor.get_description()], row, strict=True)) for row in cursor]


_observers: dict[str, psycopg.Connection[dict[str, Any]]] = {}
_observing = threading.Lock()


@contextmanager
def _observer(url: str) -> Iterator[psycopg.Connection[dict[str, Any]]]:
    """A connection to a database that is kept for the next look at it: some tests look a hundred times."""
    with _observing:
        connection = _observers.get(url)
        try:
            if connection is not None:
                connection.execute("SELECT 1")
        except psycopg.OperationalError:  # connections are ended between tests
            _observers.pop(url).close()
            connection = None
        if connection is None:
            connection = _observers[url] = psycopg.connect(url, autocommit=True, row_factory=dict_row)
        yield connection


def close_observers() -> None:
    while _observers:
        _observers.popitem()[1].close()


def files_with(folder: Path, word: str) -> list[str]:
    """The files below a folder that contain a word."""
    return [str(path) for path in folder.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]


def _change(place: str | Path, statements: tuple[str, ...]) -> None:
    if isinstance(place, str):
        with _observer(place) as connection:
            for statement in statements:
                connection.execute(statement.encode())
        return
    opened = apsw.Connection(str(place))
    with closing(opened):
        opened.set_busy_timeout(5000)
        for statement in statements:
            opened.execute(statement)


class OpenGateway(Protocol):
    """Opens a gateway on the test's database; opening again, with the same providers, is a restart."""

    def __call__(
        self,
        *,
        labs: tuple[ScriptedProvider, ScriptedProvider] | None = None,
        annex: bool = False,
        works: bool = True,
        audited: bool = True,
        child_processes: bool = False,
        clock: ManualClock | None = None,
        **changes: Any,
    ) -> AbstractAsyncContextManager[RunningGateway]: ...


@dataclass(slots=True)
class Installation:
    """What outlives each gateway of a test: a data folder, a database and a clock."""

    data: Path
    database: str
    clock: ManualClock = field(default_factory=ManualClock)
    key: str = ""
    lab_settings: dict[str, Any] = field(default_factory=dict)  # more settings of the provider `lab`
    environ: dict[str, str] = field(default_factory=lambda: {KEY_ENV: KEY})

    def own_settings(self, **changes: Any) -> Settings:
        """The defaults on this folder and database."""
        return Settings(data=self.data, database=self.database, secret=MASTER, **changes)

    @asynccontextmanager
    async def open(
        self,
        *,
        labs: tuple[ScriptedProvider, ScriptedProvider] | None = None,
        annex: bool = False,
        works: bool = True,
        audited: bool = True,
        child_processes: bool = False,
        clock: ManualClock | None = None,
        **changes: Any,
    ) -> AsyncIterator[RunningGateway]:
        async with AsyncExitStack() as stack:
            providers: tuple[ScriptedProvider, ScriptedProvider] = (
                await stack.enter_async_context(two_providers()) if labs is None else labs
            )
            chosen = self.settings(providers, annex, changes)
            clock = clock or self.clock
            gateway = await stack.enter_async_context(build_gateway(chosen, clock, self.environ))
            if not child_processes:
                run_tasks_in_threads(gateway.worker_pool)
            self.key = (await ensure_first_key(gateway)).key or self.key
            if works:
                await stack.enter_async_context(run_background_work(gateway))
            else:
                leave_undone(gateway.jobs)
            caller = await gateway.keys.authenticate(f"Bearer {self.key}")
            storage = open_storage(chosen.media, chosen.media_options, chosen.data)
            running = RunningGateway(gateway, clock, *providers, caller, storage, self.key, works)
            yield running
            if audited:
                breaches = await running.run_audit()
                assert not breaches, breaches

    def settings(
        self, labs: tuple[ScriptedProvider, ScriptedProvider], annex: bool, changes: Mapping[str, Any]
    ) -> Settings:
        providers = {"lab": labs[0].settings(**self.lab_settings)}
        if annex:
            providers["annex"] = labs[1].settings(priority=1)
        usual: dict[str, Any] = {"data": self.data, "database": self.database, "secret": MASTER, "providers": providers}
        usual["provenance"] = "off"  # outputs are compared with what the providers made
        return Settings(**{**usual, "disabled_providers": ("atelier",), **changes})


def installation_for(request: pytest.FixtureRequest, dialect: Dialect) -> Installation:
    data: Path = request.getfixturevalue("tmp_path") / "data"
    monkeypatch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
    if dialect == "sqlite":
        monkeypatch.setattr(sqlite, "PURGE_PAUSE_SECONDS", 0.0)
        without_waiting_for_the_disk(monkeypatch)
        put_migrated_file(data / "penstock.db")
        return Installation(data, "")
    # The tests' server does not wait for the disk; tests/unit/store checks that the store asks for it.
    monkeypatch.setattr(postgres, "DURABILITY", {})
    violations = lock_order.watch(monkeypatch)
    request.addfinalizer(lambda: check_lock_order(violations))
    return Installation(data, request.getfixturevalue("migrated_database"))


def leave_undone(jobs: Jobs) -> None:
    """Let a gateway without background work accept generations, but not run them: their leases run out."""
    start = jobs.start

    async def run_nothing(_: RunningJob) -> None: ...

    def start_nothing(lease: Lease, run: Run | None = None) -> RunningJob:
        return start(lease, run_nothing)

    jobs.start = start_nothing  # type: ignore[method-assign]


def check_lock_order(violations: list[str]) -> None:
    assert not violations, "locks in another order than docs/decisions/lock-order.md says:\n" + "\n".join(
        sorted(set(violations))
    )


def caller_with(caller: Caller, **changes: Any) -> Caller:
    return replace(caller, **changes)


@contextmanager
def failpoint_raises(name: str, passage: int = 0) -> Iterator[None]:
    """Let a failpoint raise, each time it is passed or only one of the times."""
    assert name in failpoints.NAMES
    before = failpoints._places, failpoints._passed
    failpoints._places, failpoints._passed = {name: ("raise", passage)}, {}
    try:
        yield
    finally:
        failpoints._places, failpoints._passed = before


@asynccontextmanager
async def two_providers() -> AsyncIterator[tuple[ScriptedProvider, ScriptedProvider]]:
    """Two providers that outlive the gateways of a test that restarts."""
    async with scripted_provider() as lab, scripted_provider("annex") as annex:
        yield lab, annex


sqlite_only = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
postgres_only = pytest.mark.parametrize("dialect", ["postgres"], indirect=True)


async def exported(recordings: Recordings, row: RecordingRow) -> RecordingFile:
    """The recording file of a recording, as the API exports it: with its outputs in it."""
    _, pieces = await files.stream_recording(recordings, row)
    return msgspec.json.decode(b"".join([piece async for piece in pieces]), type=RecordingFile)
