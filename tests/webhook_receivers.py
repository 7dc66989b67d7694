"""Deliveries through a fake HTTP client that responds as a test says."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple

from penstock.clock import Clock
from penstock.net.checked_urls import NO_EXCEPTIONS, EgressRules
from penstock.net.client import HttpClient
from penstock.settings import Settings
from penstock.store.base import Store, Transaction
from penstock.values import OrgId, new_id
from penstock.vault import Vault
from penstock.webhooks.deliveries import Deliveries
from penstock.webhooks.delivery import LeasedMessage
from penstock.webhooks.events import event_body, message_row
from penstock.webhooks.sender import Sender
from tests.databases import Database
from tests.manual_clock import ManualClock

VAULT = Vault("v" * 43)
ORG = OrgId("org_" + "0" * 32)
FIRST_DELAYS = (5, 15, 45)  # of the default schedule, enough for most tests
URL = "https://hooks.example.com/in"


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A delivery that reached the receiver, and when."""

    url: str
    body: bytes
    headers: Mapping[str, str]
    at: float
    share: str  # of the places for lookups


Respond = Callable[[SentMessage], Awaitable[int]]


class Receiver(HttpClient):
    """An HTTP client that sends nothing: it remembers the messages and responds with a status."""

    def __init__(self, clock: ManualClock, respond: Respond | int = 200) -> None:
        self._now = clock.monotonic
        self.respond = respond
        self.sent: list[SentMessage] = []

    async def post_guarded(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        timeout_seconds: float,
        egress: EgressRules = NO_EXCEPTIONS,
        share: str = "",
    ) -> int:
        assert timeout_seconds == 30
        sent = SentMessage(url, body, headers, self._now(), share)
        self.sent.append(sent)
        return self.respond if isinstance(self.respond, int) else await self.respond(sent)


class MessageState(NamedTuple):
    """What the database says about a message."""

    state: str
    deliveries: int
    last_result: str | None


class StepwiseDeliveries(Deliveries):
    """Deliveries that start when a test says so."""

    async def deliver_due_messages(self) -> None:
        """Deliver all messages that are due, and wait for the results."""
        while await self._start_due_deliveries() or self._running:
            await self._wait_for_running()


@dataclass(frozen=True, slots=True)
class Process:
    """What one process has to deliver messages: a store of its own, a clock and a receiver."""

    store: Store
    clock: ManualClock
    receiver: Receiver
    deliveries: StepwiseDeliveries

    def deliver(self, message: LeasedMessage) -> None:
        """Start the delivery of a message that was just claimed."""
        place = self.deliveries._places.take(message)
        self.deliveries._start(message, place, self.clock.steady_ms())

    async def state(self, message_id: str) -> MessageState:
        row = await self.store.one("get_message", id=message_id)
        assert row is not None
        return MessageState(row["state"], row["deliveries"], row["last_result"])


def new_deliveries(store: Store, client: HttpClient, clock: Clock, settings: Settings) -> StepwiseDeliveries:
    return StepwiseDeliveries(store, Sender(store, client, VAULT, clock, settings), clock, settings)


@asynccontextmanager
async def open_process(
    database: Database,
    respond: Respond | int = 200,
    clock: ManualClock | None = None,
    delays: Sequence[float] = FIRST_DELAYS,
) -> AsyncIterator[Process]:
    async with database.open() as store:
        await store.write(lambda tx: add_org(tx, ORG))
        clock = clock or ManualClock(at_ms=round(time.time() * 1000))
        receiver = Receiver(clock, respond)
        settings = Settings(webhook_delays_seconds=tuple(delays))
        yield Process(store, clock, receiver, new_deliveries(store, receiver, clock, settings))


async def add_org(tx: Transaction, org_id: OrgId) -> None:
    if await tx.one("get_balance", org_id=org_id) is None:
        await tx.run("add_org", id=org_id, name="Acme", billing="prepaid", created_at_ms=0)


async def add_messages(store: Store, *urls: str, org_id: OrgId = ORG, drops: int = 0) -> list[str]:
    """Add a message for each URL, or one for the default URL. Returns their ids."""
    urls = urls or (URL,)
    ids = [new_id("req", 1) for _ in urls]

    async def work(tx: Transaction) -> None:
        for request_id, url in zip(ids, urls, strict=True):
            await add_org(tx, org_id)
            await tx.run("put_request", id=request_id, org_id=org_id)
            body = event_body("video.failed", request_id, "m", error={"code": "CANCELLED", "message": "gone"})
            await tx.put(
                "add_message",
                **message_row(
                    org_id=org_id, request_id=request_id, url=url, event="video.failed", body=body, at_ms=7, drops=drops
                ),
            )

    await store.write(work)
    return [f"msg_{request_id}" for request_id in ids]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 (there is no event for some conditions)
            await asyncio.sleep(0.001)


@asynccontextmanager
async def run_deliveries(process: Process) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(process.deliveries.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def hang(_: SentMessage) -> int:
    await asyncio.Event().wait()
    return 200
