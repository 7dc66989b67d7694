"""Run two transactions at the same time on Postgres, one of them stopped before each of its statements in turn."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import msgspec
import psycopg
import pytest
from psycopg.errors import DeadlockDetected

from penstock.accounts.alerts import Alert, Alerts
from penstock.accounts.chat_leases import ChatLeases, release_abandoned
from penstock.accounts.chat_reservations import ChatReservations
from penstock.accounts.chat_settlement import ChatSettlement
from penstock.accounts.orgs import change_org
from penstock.accounts.requests import RequestEnd
from penstock.accounts.transfers import add_credit
from penstock.errors import InvalidRequest, Problem, UpstreamError
from penstock.generation_jobs.finish import NewResult, complete, fail
from penstock.generation_jobs.job import Job, read_job, record_attempt
from penstock.generations import payloads, validate
from penstock.generations.accept import accept
from penstock.generations.cancel import cancel_video
from penstock.generations.plan import make_plan
from penstock.generations.purge import purge
from penstock.jobs.callbacks import CalledAttempt
from penstock.jobs.leases import _renew_leases
from penstock.jobs.running import Lease, LeaseLost, RunningJob
from penstock.providers.spec import Result
from penstock.schema import Caller, GenerationResult, Output, Request
from penstock.settings import Settings
from penstock.store.base import Store, Transaction
from penstock.store.groups import WriteGroups
from penstock.store.postgres import PostgresStore
from penstock.values import Nanos, OrgId, nanos
from tests.gateway import OpenGateway, RunningGateway, caller_with
from tests.leases import claim_lease

FAR_MS = 2**62
Work = Callable[[], Awaitable[Any]]
WAITING = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
PROCESS = "prc_of_a_killed_server"
CHAT = Request(task="chat", model="lab/talk", values={})


@dataclass(slots=True)
class Stop:
    """Stops a transaction before one of its statements."""

    before: int
    count: int = 0
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    async def pass_by(self) -> None:
        self.count += 1
        if self.count == self.before + 1:
            self.reached.set()
            await self.released.wait()


STOP: ContextVar[Stop | None] = ContextVar("STOP", default=None)


@dataclass(slots=True)
class Group:
    """Writes two items of `WriteGroups` in one transaction, in the task of the second."""

    items: list[Any] = field(default_factory=list)
    written: asyncio.Event = field(default_factory=asyncio.Event)

    async def add(self, groups: WriteGroups[Any, Any], item: Any, org_id: OrgId | None) -> None:
        self.items.append(item)
        if len(self.items) == 1:
            await self.written.wait()
            return
        try:
            await groups._store.write(lambda tx: groups._write(tx, self.items), org_id=org_id)
        finally:
            self.written.set()


GROUP: ContextVar[Group | None] = ContextVar("GROUP", default=None)


async def add_to_group(groups: WriteGroups[Any, Any], item: Any, org_id: OrgId | None = None) -> Any:
    """Write an item alone or in its task's group, instead of in a task that cannot be stopped."""
    if group := GROUP.get():
        return await group.add(groups, item, org_id)
    (result,) = await groups._store.write(lambda tx: groups._write(tx, [item]), org_id=org_id)
    return result


async def run_in_one_group(*works: Work) -> None:
    GROUP.set(Group())
    await asyncio.gather(*(work() for work in works))


class Stopped:
    """A transaction that stops where its task is told to, and notes deadlocks."""

    def __init__(self, tx: Transaction, deadlocks: list[str]) -> None:
        self._tx = tx
        self._deadlocks = deadlocks

    def __getattr__(self, method: str) -> Callable[..., Awaitable[Any]]:
        async def execute(name: str, /, *rows: Any, **values: Any) -> Any:
            if stop := STOP.get():
                await stop.pass_by()
            try:
                return await getattr(self._tx, method)(name, *rows, **values)
            except DeadlockDetected:
                self._deadlocks.append(name)
                raise

        return execute


@dataclass(slots=True)
class Scene:
    """What two transactions share: an open video with an attempt, a failed one with a message, chats, a recording."""

    running: RunningGateway
    job: Job
    failed_id: str
    limited: Any
    chats: list[Any]
    other: Caller  # of another organization

    @property
    def store(self) -> Store:
        return self.running.gateway.store

    @property
    def org_id(self) -> OrgId:
        return self.running.caller.org_id


async def accept_call(
    running: RunningGateway, task: str, caller: Caller | None = None, headers: Mapping[str, str] | None = None
) -> Lease:
    fields = {"model": "image-1", "size": "64x64"} if task == "image" else {"model": "video-1", "seconds": 4}
    hook = {"webhook_url": "https://receiver.example/hook"}
    call = running.call({"prompt": "a pear", **fields, **hook}, caller=caller, headers=headers)
    check = validate.image if task == "image" else validate.video
    planned = await make_plan(running.gateway, call, check(call, running.gateway.settings), (task,))
    accepted = await accept(running.gateway, call, planned)
    return accepted.lease or Lease(accepted.row.id, 0)


async def start_video(running: RunningGateway, caller: Caller | None = None) -> Job:
    request_id = (await accept_call(running, "video", caller)).id
    lease = await claim_lease(running.gateway.jobs, request_id)
    assert lease is not None
    return await read_job(running.gateway, RunningJob(lease))


def new_reservations(running: RunningGateway) -> ChatReservations:
    return ChatReservations(running.gateway.store, running.clock, PROCESS)


async def add_attempt(running: RunningGateway, job: Job) -> None:
    attempt = {
        "org_id": job.org_id,
        "part": 0,
        "candidate": 0,
        "count": 1,
        "provider": "lab",
        "upstream_model": "video-1",
        "account_id": None,
        "round": 0,
        "created_at_ms": running.clock.now_ms(),
    }
    values = {"id": f"att_{job.id}", "request_id": job.id, **attempt}
    await running.gateway.store.write(lambda tx: tx.run("add_attempt", **values))


async def set_scene(running: RunningGateway) -> Scene:
    gateway = running.gateway
    job = await start_video(running)
    await add_attempt(running, job)
    failed = await start_video(running)
    await fail(gateway, failed, UpstreamError("no"))
    limited = caller_with(running.caller, concurrent_requests=1_000_000, org_nanos_per_month=2**62)
    reservations = new_reservations(running)
    await gateway.store.write(lambda tx: tx.run("renew_process", id=PROCESS, until_ms=0))
    chats = [await reservations.reserve(running.call({}, endpoint="/chat"), CHAT, Nanos(5), None) for _ in range(2)]
    other = await running.create_caller_in_new_org("1000")
    return Scene(running, job, failed.id, limited, chats, other)


# -------------------------------------------------------------------------------------------------------- transactions


Begin = Callable[[Scene], Work]


def complete_video(scene: Scene) -> Work:
    result = GenerationResult("lab", "Lab", "video-1", nanos("0.1"), (Output("med_x", "video/mp4", 1),))
    new = NewResult(result, (), cost=nanos("0.1"))
    return lambda: complete(scene.running.gateway, scene.job, new)


def complete_videos_of_two_organizations(scene: Scene) -> Work:
    """The video that others change too, and a newer one."""

    async def complete_both() -> None:
        other = replace(scene, job=await start_video(scene.running, scene.other))
        await run_in_one_group(complete_video(other), complete_video(scene))

    return complete_both


def fail_video(scene: Scene) -> Work:
    return lambda: fail(scene.running.gateway, scene.job, UpstreamError("no"))


def cancel(scene: Scene) -> Work:
    return lambda: cancel_video(scene.running.gateway, scene.running.call(id=scene.job.id))


def record(scene: Scene) -> Work:
    result = Result(status="in_progress", upstream_id=scene.job.id, ref={"id": scene.job.id})
    return lambda: record_attempt(scene.running.gateway, scene.job, f"att_{scene.job.id}", "submitted", result=result)


def record_of_two_organizations(scene: Scene) -> Work:
    """The attempt of the video that others change too, and that of a newer one."""

    async def record_both() -> None:
        other = await start_video(scene.running, scene.other)
        await add_attempt(scene.running, other)
        await run_in_one_group(record(replace(scene, job=other)), record(scene))

    return record_both


def accept_image(scene: Scene) -> Work:
    return lambda: accept_call(scene.running, "image", headers={"x-service-replay": "record"})


def accept_images_of_two_organizations(scene: Scene) -> Work:
    def accept_one(caller: Caller) -> Work:
        return lambda: accept_call(scene.running, "image", caller)

    return lambda: run_in_one_group(accept_one(scene.other), accept_one(scene.running.caller))


def accept_video(scene: Scene) -> Work:
    return lambda: accept_call(scene.running, "video", headers={"idempotency-key": scene.job.id})


def hold_chat(scene: Scene) -> Work:
    reservations = new_reservations(scene.running)
    call = scene.running.call({}, endpoint="/chat", caller=scene.limited)
    return lambda: reservations.reserve(call, CHAT, Nanos(5), None)


def settle_chats(scene: Scene) -> Work:
    settlement = ChatSettlement(scene.store, scene.running.clock, new_reservations(scene.running))
    for reservation in reversed(scene.chats):
        settlement.settle_later(reservation, RequestEnd("completed", Nanos(3), 5))
    settlement.set_response_size(scene.org_id, scene.failed_id, 7)
    return lambda: settlement.catch_up(scene.org_id)


def release_chats(scene: Scene) -> Work:
    clock = scene.running.clock
    return lambda: release_abandoned(scene.store, clock, clock.now_ms() + 1000)


def end_chats_of_dead_process(scene: Scene) -> Work:
    return ChatLeases(scene.store, scene.running.clock, "prc_alive", 30).end_calls_of_dead_processes


def renew_process(scene: Scene) -> Work:
    return ChatLeases(scene.store, scene.running.clock, PROCESS, 30).renew


def purge_failed(scene: Scene) -> Work:
    return lambda: purge(scene.running.gateway, scene.running.call(request_id=scene.failed_id))


def strip_expired(scene: Scene) -> Work:
    return lambda: payloads.delete_expired(scene.running.gateway)


def reject(scene: Scene) -> Work:
    return lambda: scene.running.gateway.requests.reject(scene.running.call({}), InvalidRequest("no"), None)


def credit(scene: Scene) -> Work:
    return lambda: scene.store.write(lambda tx: add_credit(tx, scene.org_id, nanos("1"), 0, "a gift"))


def create_key(scene: Scene) -> Work:
    return lambda: scene.running.gateway.keys.create_key(scene.org_id)


def revoke_key(scene: Scene) -> Work:
    return lambda: scene.running.gateway.keys.revoke_key(scene.org_id, scene.running.caller.key_id)


def rotate_secret(scene: Scene) -> Work:
    return lambda: scene.running.gateway.webhook_secrets.rotate(scene.org_id)


def claim_messages(scene: Scene) -> Work:
    return lambda: scene.running.gateway.deliveries._claim(10)


def end_message(scene: Scene) -> Work:
    end = {"id": f"msg_{scene.failed_id}", "lease_token": 0, "state": "exhausted", "deliveries": 4}
    return lambda: scene.store.write(lambda tx: tx.run("end_message", **end, result="no", at_ms=0))


def renew_message_leases(scene: Scene) -> Work:
    leases = {"leases": msgspec.json.encode([(f"msg_{scene.failed_id}", 0)]).decode(), "until_ms": 1}
    return lambda: scene.store.write(lambda tx: tx.run("renew_message_leases", **leases))


def claim_leases(scene: Scene) -> Work:
    return lambda: scene.running.gateway.jobs._claim_all([scene.failed_id, scene.job.id], FAR_MS)


def renew_leases(scene: Scene) -> Work:
    leases = msgspec.json.encode([(scene.job.id, scene.job.lease_token), (scene.failed_id, 1)]).decode()
    return lambda: scene.store.write(partial(_renew_leases, leases, 1))


def wake_by_callback(scene: Scene) -> Work:
    attempt = CalledAttempt(f"att_{scene.job.id}", scene.job.id)
    return lambda: scene.running.gateway.callbacks._wake(attempt)


def claim_checks(scene: Scene) -> Work:
    due = {"now_ms": FAR_MS // 2, "checks_max": 5, "pause_ms": 1, "limit": 10}
    return lambda: scene.store.write(lambda tx: tx.all("claim_due_checks", **due))


def change_organization(scene: Scene) -> Work:
    return lambda: change_org(
        scene.store, scene.running.clock, scene.org_id, {"nanos_per_month": 2**62, "storage_bytes": None}
    )


def alert(scene: Scene) -> Work:
    alerts = Alerts(scene.store, scene.running.clock, Settings(alert_url="https://ops.example/alerts"), lambda: None)
    return lambda: alerts._store_once(Alert(f"alert {scene.failed_id}", "budget.reached", {}))


def redeliver_messages(scene: Scene) -> Work:
    return scene.running.gateway.deliveries.redeliver_exhausted


TRANSACTIONS: list[Begin] = [
    accept_image,
    accept_images_of_two_organizations,
    accept_video,
    complete_video,
    complete_videos_of_two_organizations,
    fail_video,
    cancel,
    record,
    record_of_two_organizations,
    hold_chat,
    settle_chats,
    release_chats,
    end_chats_of_dead_process,
    renew_process,
    purge_failed,
    strip_expired,
    reject,
    credit,
    create_key,
    revoke_key,
    rotate_secret,
    claim_messages,
    renew_message_leases,
    end_message,
    claim_leases,
    renew_leases,
    wake_by_callback,
    claim_checks,
    change_organization,
    alert,
    redeliver_messages,
]


# --------------------------------------------------------------------------------------------------------------- pairs


@asynccontextmanager
async def open_scene(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch, deadlocks: list[str]
) -> AsyncIterator[RunningGateway]:
    unchanged_write = PostgresStore.write

    async def write(store: PostgresStore, work: Callable[[Transaction], Awaitable[Any]], **options: Any) -> Any:
        return await unchanged_write(store, lambda tx: work(cast(Transaction, Stopped(tx, deadlocks))), **options)

    monkeypatch.setattr(PostgresStore, "write", write)
    monkeypatch.setattr(WriteGroups, "add", add_to_group)
    async with open_gateway(works=False, starting_credit_usd="100000", audited=False) as running:
        yield running


async def run_stopped(work: Work, stop: Stop) -> Any:
    STOP.set(stop)
    return await work()


async def run_pair(observer: psycopg.AsyncConnection[Any], first: Work, second: Work, before: int) -> bool:
    """Run `first` up to a statement, then `second` until it ends or waits for a lock, then the rest of `first`.

    Returns False if `first` ended before that statement.
    """
    stop = Stop(before)
    one = asyncio.create_task(run_stopped(first, stop))
    reached = asyncio.create_task(stop.reached.wait())
    await asyncio.wait({one, reached}, return_when=asyncio.FIRST_COMPLETED)
    is_stopped = stop.reached.is_set()
    two = asyncio.create_task(run_stopped(second, Stop(FAR_MS)))
    while is_stopped and not two.done():
        if await (await observer.execute(WAITING)).fetchone():
            break
    stop.reached.set()
    stop.released.set()
    outcomes = await asyncio.gather(one, two, reached, return_exceptions=True)
    unexpected = [
        outcome
        for outcome in outcomes
        if isinstance(outcome, BaseException) and not isinstance(outcome, Problem | LeaseLost)
    ]
    for outcome in unexpected:
        raise outcome
    return is_stopped


async def find_deadlocks(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch, pairs: Iterable[tuple[Begin, Begin]]
) -> set[str]:
    """The pairs that deadlock, with the statements that Postgres ended."""
    deadlocks: list[str] = []
    found: set[str] = set()
    async with open_scene(open_gateway, monkeypatch, deadlocks) as running:
        database = running.gateway.settings.database
        async with await psycopg.AsyncConnection.connect(database, autocommit=True) as observer:
            for first, second in pairs:
                before = 1
                while True:
                    scene = await set_scene(running)
                    if not await run_pair(observer, first(scene), second(scene), before):
                        break
                    if deadlocks:
                        found.add(f"{first.__name__} and {second.__name__}: {', '.join(deadlocks)}")
                        deadlocks.clear()
                    before += 1
    return found
