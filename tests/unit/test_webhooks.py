"""Events are signed as the specification says and delivered on schedule, whatever happens in between."""

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import openai
import pytest
import standardwebhooks

from penstock import webhooks as module
from penstock.clock import ManualClock
from penstock.errors import Conflict, NotFound, StorageUnavailable
from penstock.netguard import NO_EXCEPTIONS, Egress
from penstock.settings import Settings
from penstock.store.base import Store, Transaction
from penstock.values import new_id
from penstock.vault import Vault
from penstock.webhooks import Deliveries, Secrets, event, queue, sign
from penstock.wire import NotSent, Unknown, Wire
from tests.stores import BOTH, Database, database_for

VAULT = Vault("v" * 43)
ORG = "org_" + "0" * 32
URL = "https://hooks.example.com/in"


@pytest.fixture(params=BOTH)
def database(request: pytest.FixtureRequest) -> Database:
    return database_for(request, request.param)


@pytest.fixture
def sqlite(request: pytest.FixtureRequest) -> Database:
    return database_for(request, "sqlite")


@dataclass(frozen=True, slots=True)
class Sent:
    url: str
    body: bytes
    headers: Mapping[str, str]
    at: float


Answer = Callable[[Sent], Awaitable[int]]


class Receiver(Wire):
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
        total_seconds: float,
        egress: Egress = NO_EXCEPTIONS,
        most_bytes: int = 16 * 2**10,
    ) -> int:
        assert total_seconds == 30
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
        return {name: row[name] for name in ("state", "tries", "last_result")}


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


# -------------------------------------------------------------------------------------------------------------- signing


def test_the_signature_of_the_specification() -> None:
    signature = sign(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
    )
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_QQ==", "whsec_" + "A" * 28, "whsec_????"])
def test_a_worthless_secret_signs_nothing(secret: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (of the decoder or ours)
        sign(secret, "msg_1", 1, b"")


async def test_receivers_verify_with_the_published_libraries(database: Database) -> None:
    async with started(database) as one:
        (message_id,) = await put(one.store)
        await one.deliveries.deliver_due()
        (sent,) = one.receiver.sent
        secret = await Secrets(one.store, VAULT, one.clock).secret(ORG)
        assert sent.headers["webhook-id"] == message_id
        assert sent.headers["webhook-timestamp"] == str(one.clock.now_ms() // 1000)
        assert sent.headers["content-type"] == "application/json"
        standardwebhooks.Webhook(secret).verify(sent.body, dict(sent.headers))
        openai.OpenAI(api_key="x").webhooks.verify_signature(sent.body, sent.headers, secret=secret)
        with pytest.raises(standardwebhooks.WebhookVerificationError):
            standardwebhooks.Webhook(secret).verify(sent.body + b" ", dict(sent.headers))


# -------------------------------------------------------------------------------------------------------------- secrets


async def test_a_secret_is_made_once(database: Database) -> None:
    async with started(database) as one, started(database) as two:
        ways = [Secrets(each.store, VAULT, each.clock) for each in (one, two)]
        found = await asyncio.gather(*[ways[number % 2].secret(ORG) for number in range(50)])
        assert len(set(found)) == 1
        assert found[0].startswith("whsec_")
        row = await one.store.one("get_secrets", org_id=ORG)
        assert row is not None
        assert found[0].encode() not in row["secret"]
        with pytest.raises(NotFound):
            await ways[0].secret("org_none")


async def test_after_a_rotation_both_secrets_verify_for_a_day(database: Database) -> None:
    async with started(database) as one:
        known = Secrets(one.store, VAULT, one.clock)
        old = await known.secret(ORG)
        new = await known.rotate(ORG)
        assert new != old
        assert await known.secret(ORG) == new
        await put(one.store)
        await one.deliveries.deliver_due()
        (sent,) = one.receiver.sent
        assert len(sent.headers["webhook-signature"].split(" ")) == 2
        for secret in (old, new):
            standardwebhooks.Webhook(secret).verify(sent.body, dict(sent.headers))
        one.clock.advance(24 * 3600)
        assert await known.signing(ORG) == (new,)


async def test_secrets_are_sealed_anew_after_the_master_secret_changed(database: Database) -> None:
    async with started(database) as one:
        old = Secrets(one.store, VAULT, one.clock)
        await old.secret(ORG)
        await old.rotate(ORG)
        before = await old.signing(ORG)
        both = Secrets(one.store, Vault("w" * 43, "v" * 43), one.clock)
        assert [await both.reseal(), await both.reseal()] == [1, 0]
        assert await Secrets(one.store, Vault("w" * 43), one.clock).signing(ORG) == before


# --------------------------------------------------------------------------------------------------------------- events


def test_the_body_of_a_completed_video() -> None:
    file = {"url": "https://x/1", "content_type": "video/mp4", "size_bytes": 5}
    body = event("video.completed", "req_1", "m", outputs=[file])
    assert json.loads(body) == {
        "type": "video.completed",
        "data": {"object": "video.generation", "id": "req_1", "model": "m", "status": "completed", "output": file},
    }
    assert body == event("video.completed", "req_1", "m", outputs=[dict(file)])
    several = json.loads(event("image.completed", "req_1", "m", outputs=[file, {"url": "https://x/2"}]))
    assert several["data"]["object"] == "image.generation"
    assert several["data"]["output"] == file
    assert [one["url"] for one in several["data"]["outputs"]] == ["https://x/1", "https://x/2"]


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_the_body_of_a_video_that_did_not_complete(status: str) -> None:
    error = {"code": "CANCELLED", "message": "Überraschung", "secret": "not for them"}
    data = json.loads(event(f"video.{status}", "req_1", "m", error=error))["data"]
    assert data["status"] == status
    assert data["error"] == {"code": "CANCELLED", "message": "Überraschung"}
    assert "output" not in data


async def test_a_request_has_one_event(database: Database) -> None:
    async with started(database) as one:
        (message_id,) = await put(one.store)
        request_id = message_id.removeprefix("msg_")
        other: dict[str, Any] = {"kind": "video.completed", "body": b"{}", "url": URL, "at_ms": 8}
        await one.store.write(lambda tx: queue(tx, org_id=ORG, request_id=request_id, **other))
        await one.deliveries.deliver_due()
        assert [json.loads(sent.body)["type"] for sent in one.receiver.sent] == ["video.failed"]


async def test_no_message_without_its_news(database: Database) -> None:
    async with started(database) as one:

        async def work(tx: Transaction) -> None:
            await tx.run("put_request", id="req_1", org_id=ORG)
            await queue(tx, org_id=ORG, request_id="req_1", url=URL, kind="video.failed", body=b"{}", at_ms=1)
            raise RuntimeError("settling failed")

        with pytest.raises(RuntimeError):
            await one.store.write(work)
        assert await one.deliveries.list_messages() == []


# ------------------------------------------------------------------------------------------------------------- schedule


async def test_four_attempts_on_schedule_then_kept(database: Database) -> None:
    async def slow_refusal(_: Sent) -> int:
        one.clock.advance(10)  # the pauses count from the end of an attempt
        return 500

    async with started(database, slow_refusal) as one:
        (message_id,) = await put(one.store)
        await one.deliveries.deliver_due()
        for tries, delay in enumerate((5, 15, 45), 1):
            assert await one.state(message_id) == {"state": "waiting", "tries": tries, "last_result": "status 500"}
            one.clock.advance(delay - 0.01)
            await one.deliveries.deliver_due()
            assert len(one.receiver.sent) == tries, "too early"
            one.clock.advance(0.2 * delay + 0.01)
            await one.deliveries.deliver_due()
            assert len(one.receiver.sent) == tries + 1, "too late"
        assert await one.state(message_id) == {"state": "exhausted", "tries": 4, "last_result": "status 500"}
        one.clock.advance(86_400)
        await one.deliveries.deliver_due()
        assert len(one.receiver.sent) == 4
        assert len({(sent.url, sent.body, sent.headers["webhook-id"]) for sent in one.receiver.sent}) == 1
        assert len({sent.headers["webhook-timestamp"] for sent in one.receiver.sent}) == 4


@pytest.mark.parametrize("status", [200, 202, 204, 299, 199, 300, 301, 302, 307, 308, 400, 404, 410, 429, 500, 503])
async def test_only_2xx_is_success(sqlite: Database, status: int) -> None:
    async with started(sqlite, status) as one:
        (message_id,) = await put(one.store)
        await one.deliveries.deliver_due()
        expected = "delivered" if 200 <= status < 300 else "waiting"
        assert await one.state(message_id) == {"state": expected, "tries": 1, "last_result": f"status {status}"}


async def test_what_the_network_does_counts_as_an_attempt(sqlite: Database) -> None:
    problems: list[Exception] = [NotSent("refused"), Unknown("reset"), Unknown("slow", timeout=True), TimeoutError()]

    async def fail(_: Sent) -> int:
        raise problems[len(one.receiver.sent) - 1]

    async with started(sqlite, fail) as one:
        (message_id,) = await put(one.store)
        results = []
        for _ in problems:
            await one.deliveries.deliver_due()
            results.append((await one.state(message_id))["last_result"])
            one.clock.advance(60)
        assert results == ["refused", "reset", "slow", "timed out"]
        assert (await one.state(message_id))["state"] == "exhausted"


async def test_our_own_shortage_counts_as_none(database: Database) -> None:
    async def short(_: Sent) -> int:
        raise NotSent("too many open files", local=True)

    async with started(database, short) as one:
        (message_id,) = await put(one.store)
        for _ in range(10):
            await one.deliveries.deliver_due()
            one.clock.advance(1.2)
        assert len(one.receiver.sent) == 10
        assert await one.state(message_id) == {"state": "waiting", "tries": 0, "last_result": "too many open files"}
        assert one.deliveries._at_once == 8, "fewer at once while we are short"
        one.receiver.answer = 200
        await one.deliveries.deliver_due()
        assert await one.state(message_id) == {"state": "delivered", "tries": 1, "last_result": "status 200"}
        assert one.deliveries._at_once == 9


async def test_an_address_is_checked_again_before_each_attempt(sqlite: Database) -> None:
    async with started(sqlite) as one:
        (message_id,) = await put(one.store, "https://metadata.internal/in")
        for _ in range(4):
            await one.deliveries.deliver_due()
            one.clock.advance(60)
        assert one.receiver.sent == []
        state = await one.state(message_id)
        assert (state["state"], state["last_result"]) == ("exhausted", "the address is refused")


async def test_a_jump_of_the_wall_clock_moves_no_retry(sqlite: Database) -> None:
    async with started(sqlite, 500) as one:
        await put(one.store)
        await one.deliveries.deliver_due()
        one.clock.jump(3600)
        await one.deliveries.deliver_due()
        assert len(one.receiver.sent) == 1, "early"
        one.clock.jump(-7200)
        one.clock.advance(6)
        await one.deliveries.deliver_due()
        assert len(one.receiver.sent) == 2, "late"
        skew = int(one.receiver.sent[0].headers["webhook-timestamp"]) - int(
            one.receiver.sent[1].headers["webhook-timestamp"]
        )
        assert skew == 3600 - 6, "the timestamp is the wall clock's"


async def test_a_clock_set_back_before_a_restart_delays_nothing(sqlite: Database) -> None:
    async with started(sqlite, 500) as one:
        await put(one.store)
        await one.deliveries.deliver_due()
        async with started(sqlite, clock=ManualClock(one.clock.now_ms() - 3_600_000)) as again:
            await again.deliveries.deliver_due()
            assert len(again.receiver.sent) == 1


# -------------------------------------------------------------------------------------------------------------- crashes


async def test_a_crash_between_attempts_resets_nothing(database: Database) -> None:
    async with started(database, 500) as one:
        (message_id,) = await put(one.store)
        await one.deliveries.deliver_due()
    async with started(database, 500, one.clock) as again:
        again.clock.advance(4.9)
        await again.deliveries.deliver_due()
        assert again.receiver.sent == []
        for _ in range(5):
            again.clock.advance(54)
            await again.deliveries.deliver_due()
        assert len(again.receiver.sent) == 3
        assert (await again.state(message_id))["state"] == "exhausted"


async def test_an_attempt_that_a_crash_cut_short_is_made_again(database: Database) -> None:
    """However often: the receiver has four chances all the same, each at its time."""
    async with started(database, 500) as one:
        (message_id,) = await put(one.store)
        for tries in range(4):
            for _ in range(9):
                (claim,) = await one.deliveries._claim(10)  # and then the process is killed, before or after sending
                assert claim.tries == tries
                one.clock.advance(44)
                await one.deliveries.deliver_due()
                assert len(one.receiver.sent) == tries, "the lease still runs"
                one.clock.advance(1)
            await one.deliveries.deliver_due()
            assert len(one.receiver.sent) == tries + 1
            one.clock.advance(54)
        assert await one.state(message_id) == {"state": "exhausted", "tries": 4, "last_result": "status 500"}


async def test_who_is_alone_need_not_wait_for_the_leases_of_the_dead(database: Database) -> None:
    async with started(database, 500) as one:
        await put(one.store)
        for _ in range(3):
            assert len(await one.deliveries._claim(1)) == 1  # and then the process is killed
            await one.deliveries.free()
        await one.deliveries.deliver_due()
        assert len(one.receiver.sent) == 1
        await one.deliveries.free()
        await one.deliveries.deliver_due()
        assert len(one.receiver.sent) == 1, "what was answered keeps its schedule"
        one.clock.advance(6)
        for _ in range(4):
            assert len(await one.deliveries._claim(1)) == 1
            await one.deliveries.free()
        await one.deliveries.deliver_due()
        assert len(one.receiver.sent) == 1, "by now it may be what kills"
        one.clock.advance(45)
        await one.deliveries.deliver_due()
        assert len(one.receiver.sent) == 2


async def test_a_message_that_kills_whoever_sends_it(database: Database) -> None:
    async with started(database) as one:
        (message_id,) = await put(one.store)
        for _ in range(10):
            assert len(await one.deliveries._claim(10)) == 1  # and then the process is killed
            one.clock.advance(45)
        await one.deliveries.deliver_due()
        assert one.receiver.sent == []
        assert await one.state(message_id) == {"state": "exhausted", "tries": 0, "last_result": "interrupted"}
        await one.deliveries.redeliver(message_id)
        await one.deliveries.deliver_due()
        assert await one.state(message_id) == {"state": "delivered", "tries": 1, "last_result": "status 200"}


@pytest.mark.parametrize(("answer", "state"), [(200, "delivered"), (503, "waiting")])
async def test_whoever_lost_the_lease_writes_nothing(database: Database, answer: int, state: str) -> None:
    go = asyncio.Event()

    async def stopped(_: Sent) -> int:
        await go.wait()
        return 500

    async with started(database, stopped) as one, started(database, answer, one.clock) as two:
        (message_id,) = await put(one.store)
        paused = asyncio.create_task(one.deliveries.deliver_due())
        await until(lambda: bool(one.receiver.sent))
        two.clock.advance(45)
        await two.deliveries.deliver_due()
        go.set()
        await paused
        assert await one.state(message_id) == {"state": state, "tries": 1, "last_result": f"status {answer}"}


async def test_a_database_that_is_away_after_a_2xx_is_waited_for(
    sqlite: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with started(sqlite) as one:
        (message_id,) = await put(one.store)
        write, left = one.store.write, 3

        async def flaky(work: Any) -> Any:
            nonlocal left
            if one.receiver.sent and left:
                left -= 1
                raise StorageUnavailable("gone for a moment")
            return await write(work)

        monkeypatch.setattr(one.store, "write", flaky)
        task = asyncio.create_task(one.deliveries.deliver_due())
        for remaining in (2, 1, 0):
            await until(lambda remaining=remaining: left == remaining and one.clock.sleeping == 1)  # type: ignore[misc]
            one.clock.advance(1)
        await task
        assert (await one.state(message_id))["state"] == "delivered"
        assert len(one.receiver.sent) == 1


# -------------------------------------------------------------------------------------------------------- many at once


async def test_processes_share_the_work(database: Database) -> None:
    async def yielding(_: Sent) -> int:
        await asyncio.sleep(0)
        return 200

    async with AsyncExitStack() as stack:
        processes = [await stack.enter_async_context(started(database, yielding)) for _ in range(3)]
        ids = await put(processes[0].store, *[URL] * 120)
        await asyncio.gather(*[process.deliveries.deliver_due() for process in processes])
        sent = [one.headers["webhook-id"] for process in processes for one in process.receiver.sent]
        assert sorted(sent) == sorted(ids), "each message once"
        assert {row["state"] for row in await processes[0].deliveries.list_messages(limit=1000)} == {"delivered"}


async def deliver_past(process: Process, hosts: int, messages: int, hanging: int) -> None:
    """Let `messages` hang at as many hosts, `hanging` of them at a time, and see a healthy receiver served."""

    async def answer(sent: Sent) -> int:
        return 200 if sent.url == URL else await hang(sent)

    process.receiver.answer, sent = answer, process.receiver.sent
    async with running(process):
        await put(process.store, *(f"https://h{number % hosts}.example.org/in" for number in range(messages)))
        process.deliveries.wake()
        await until(lambda: len(sent) >= hanging)
        (healthy,) = await put(process.store)
        process.deliveries.wake()
        await until(lambda: sent[-1].url == URL)  # without the clock having moved at all
        assert len(sent) - 1 < hanging + 32
        await until(lambda: process.deliveries._crowds["hooks.example.com"] == 0)
        assert (await process.state(healthy))["state"] == "delivered"


async def test_a_hanging_host_delays_no_other(database: Database) -> None:
    async with started(database) as one:
        await deliver_past(one, hosts=1, messages=300, hanging=128)


async def test_a_thousand_hanging_hosts_delay_no_other(sqlite: Database) -> None:
    async with started(sqlite) as one:
        await deliver_past(one, hosts=1000, messages=1000, hanging=1000)


async def test_a_place_that_gets_free_is_taken_at_once(sqlite: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BATCH", 4)
    monkeypatch.setattr(module, "_AT_ONCE_PER_HOST", 4)
    places, most = asyncio.Semaphore(0), 0

    async def answer(_: Sent) -> int:
        nonlocal most
        most = max(most, one.deliveries._crowds["hooks.example.com"])
        await places.acquire()
        return 200

    async with started(sqlite, answer) as one, running(one):
        await put(one.store, *[URL] * 30)
        one.deliveries.wake()
        await until(lambda: len(one.receiver.sent) == 4)
        for _ in range(30):
            await until(places.locked)
            places.release()
        await until(lambda: len(one.receiver.sent) == 30)  # without the clock having moved at all
        assert most < 4 + 4, "a host may have its share and one batch"


# ------------------------------------------------------------------------------------------------------------- running


async def test_a_message_goes_out_when_woken_or_within_a_second(database: Database) -> None:
    async with started(database) as one, running(one):
        await until(lambda: one.clock.sleeping == 1)
        await put(one.store)
        one.deliveries.wake()
        await until(lambda: len(one.receiver.sent) == 1)
        await until(lambda: not one.deliveries._running and one.clock.sleeping == 1)
        await put(one.store)  # by another process, which cannot wake us
        one.clock.advance(1)
        await until(lambda: len(one.receiver.sent) == 2)


async def test_retries_are_on_time_while_running(sqlite: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "uniform", lambda low, high: 0.1)
    async with started(sqlite, 500) as one, running(one):
        await put(one.store)
        one.deliveries.wake()
        began = one.clock.monotonic()
        for _ in range(800):
            await until(lambda: one.clock.sleeping == 1 and not one.deliveries._running)
            one.clock.advance(0.1)
        times = [round(sent.at - began, 1) for sent in one.receiver.sent]
        assert times == [0, 5.5, 22, 71.5]


async def test_stopping_lets_attempts_end(sqlite: Database) -> None:
    go = asyncio.Event()

    async def answer(_: Sent) -> int:
        await go.wait()
        return 200

    async with started(sqlite, answer) as one, running(one) as task:
        (message_id,) = await put(one.store)
        one.deliveries.wake()
        await until(lambda: bool(one.receiver.sent))
        one.deliveries.stop()
        (later,) = await put(one.store)
        await asyncio.sleep(0)
        assert not task.done()
        go.set()
        await task
        assert (await one.state(message_id))["state"] == "delivered"
        assert (await one.state(later))["tries"] == 0


async def test_cancelling_gives_back_what_was_begun(database: Database) -> None:
    """It may have arrived or not, so it is sent again, and soon; but not for ever by those who cannot wait for it."""
    async with started(database, hang) as one:
        (message_id,) = await put(one.store)
        for times in range(1, 4):
            async with running(one):
                await until(lambda times=times: len(one.receiver.sent) == times)  # type: ignore[misc]
            assert await one.state(message_id) == {"state": "waiting", "tries": 0, "last_result": "interrupted"}
            one.clock.advance(2)
        (claim,) = await one.deliveries._claim(1)
        assert claim.begun == 4
        one.receiver.answer = 200
        one.clock.advance(45)
        await one.deliveries.deliver_due()
        assert (await one.state(message_id))["state"] == "delivered"


async def test_cancelling_gives_back_what_was_only_claimed(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    async with started(database) as one:
        await put(one.store)
        write, committed, go = one.store.write, asyncio.Event(), asyncio.Event()

        async def slow(work: Any) -> Any:
            done = await write(work)
            committed.set()
            await go.wait()
            return done

        monkeypatch.setattr(one.store, "write", slow)
        async with running(one) as task:
            await committed.wait()
            task.cancel()
            go.set()
        assert one.receiver.sent == []
        one.clock.advance(2)
        await one.deliveries.deliver_due()
        assert len(one.receiver.sent) == 1


async def test_a_database_that_is_away_is_waited_for(sqlite: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    async with started(sqlite) as one:
        await put(one.store)
        write = one.store.write

        async def gone(work: Any) -> Any:
            raise StorageUnavailable("gone for a moment")

        monkeypatch.setattr(one.store, "write", gone)
        async with running(one):
            await until(lambda: one.clock.sleeping == 1)
            monkeypatch.setattr(one.store, "write", write)
            one.clock.advance(1)
            await until(lambda: len(one.receiver.sent) == 1)


# ------------------------------------------------------------------------------------------------------------ operators


async def test_an_operator_sends_a_message_again(database: Database) -> None:
    async with started(database, 500) as one:
        (message_id,) = await put(one.store)
        with pytest.raises(Conflict):
            await one.deliveries.redeliver(message_id)
        for _ in range(4):
            await one.deliveries.deliver_due()
            one.clock.advance(60)
        (listed,) = await one.deliveries.list_messages("exhausted")
        assert (listed["id"], listed["event"], listed["url"], listed["tries"]) == (message_id, "video.failed", URL, 4)
        assert await one.deliveries.list_messages("delivered") == []
        one.receiver.answer = 200
        for attempt in (5, 6):  # a delivered one may be sent again as well
            await one.deliveries.redeliver(message_id)
            await one.deliveries.deliver_due()
            assert len(one.receiver.sent) == attempt
        assert (await one.state(message_id))["state"] == "delivered"
        assert len({(sent.body, sent.headers["webhook-id"]) for sent in one.receiver.sent}) == 1
        with pytest.raises(NotFound):
            await one.deliveries.redeliver("msg_none")
