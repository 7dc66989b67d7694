"""Deliveries with a network that does what a test says: the seam under them is the wire."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from penstock.clock import ManualClock
from penstock.net.client import HttpClient
from penstock.net.guard import NO_EXCEPTIONS, EgressRules
from penstock.settings import Settings
from penstock.store.base import Store, Transaction
from penstock.values import new_id
from penstock.vault import Vault
from penstock.webhooks.deliveries import Deliveries
from penstock.webhooks.events import event, queue
from tests.databases import Database

VAULT = Vault("v" * 43)
ORG = "org_" + "0" * 32
URL = "https://hooks.example.com/in"


@dataclass(frozen=True, slots=True)
class Sent:
    url: str
    body: bytes
    headers: Mapping[str, str]
    at: float


Answer = Callable[[Sent], Awaitable[int]]


class Receiver(HttpClient):
    """Stands for the network: the seam under deliveries."""

    def __init__(self, clock: ManualClock, answer: Answer | int = 200) -> None:
        self._now = clock.monotonic
        self.answer = answer
        self.sent: list[Sent] = []

    async def post_guarded(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        timeout_seconds: float,
        egress: EgressRules = NO_EXCEPTIONS,
    ) -> int:
        assert timeout_seconds == 30
        sent = Sent(url, body, headers, self._now())
        self.sent.append(sent)
        return self.answer if isinstance(self.answer, int) else await self.answer(sent)


@dataclass(frozen=True, slots=True)
class Process:
    """One running installation of deliveries, on its own connection to the database."""

    store: Store
    clock: ManualClock
    receiver: Receiver
    deliveries: Deliveries

    async def state(self, message_id: str) -> dict[str, Any]:
        row = await self.store.one("get_message", id=message_id)
        assert row is not None
        return {name: row[name] for name in ("state", "deliveries", "last_result")}


@asynccontextmanager
async def started(
    database: Database, answer: Answer | int = 200, clock: ManualClock | None = None
) -> AsyncIterator[Process]:
    async with database.open() as store:
        await store.write(lambda tx: add_org(tx, ORG))
        clock = clock or ManualClock(at_ms=round(time.time() * 1000))
        receiver = Receiver(clock, answer)
        yield Process(store, clock, receiver, Deliveries(store, receiver, VAULT, clock, Settings()))


async def add_org(tx: Transaction, org_id: str) -> None:
    if await tx.one("get_balance", org_id=org_id) is None:
        await tx.run("add_org", id=org_id, name="Acme", billing="prepaid", created_at_ms=0)


async def put(store: Store, *urls: str) -> list[str]:
    """Queue messages; their ids."""
    urls = urls or (URL,)
    ids = [new_id("req", 1) for _ in urls]

    async def work(tx: Transaction) -> None:
        for request_id, url in zip(ids, urls, strict=True):
            await tx.run("put_request", id=request_id, org_id=ORG)
            body = event("video.failed", request_id, "m", error={"code": "CANCELLED", "message": "gone"})
            await queue(tx, org_id=ORG, request_id=request_id, url=url, kind="video.failed", body=body, at_ms=7)

    await store.write(work)
    return [f"msg_{request_id}" for request_id in ids]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 (there is no event for some conditions)
            await asyncio.sleep(0.001)


@asynccontextmanager
async def running(process: Process) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(process.deliveries.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def hang(_: Sent) -> int:
    await asyncio.Event().wait()
    return 200
