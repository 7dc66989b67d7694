"""Messages are delivered on schedule, whatever happens in between."""

import asyncio
import random
from contextlib import AsyncExitStack
from typing import Any

import pytest

from penstock.clock import ManualClock
from penstock.errors import Conflict, NotFound, StorageUnavailable
from penstock.net.errors import MaybeSent, NotSent
from penstock.webhooks import deliveries as module
from tests.databases import BOTH, Database, database_for
from tests.webhook_receivers import URL, Process, Sent, hang, put, running, started, until


@pytest.fixture(params=BOTH)
def database(request: pytest.FixtureRequest) -> Database:
    return database_for(request, request.param)


@pytest.fixture
def sqlite(request: pytest.FixtureRequest) -> Database:
    return database_for(request, "sqlite")


# ------------------------------------------------------------------------------------------------------------- schedule


async def test_four_attempts_on_schedule_then_kept(database: Database) -> None:
    async def slow_refusal(_: Sent) -> int:
        one.clock.advance(10)  # the pauses count from the end of an attempt
        return 500

    async with started(database, slow_refusal) as one:
        (message_id,) = await put(one.store)
        await one.deliveries.deliver_due()
        for tries, delay in enumerate((5, 15, 45), 1):
            assert await one.state(message_id) == {"state": "waiting", "deliveries": tries, "last_result": "status 500"}
            one.clock.advance(delay - 0.01)
            await one.deliveries.deliver_due()
            assert len(one.receiver.sent) == tries, "too early"
            one.clock.advance(0.2 * delay + 0.01)
            await one.deliveries.deliver_due()
            assert len(one.receiver.sent) == tries + 1, "too late"
        assert await one.state(message_id) == {"state": "exhausted", "deliveries": 4, "last_result": "status 500"}
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
        assert await one.state(message_id) == {"state": expected, "deliveries": 1, "last_result": f"status {status}"}


async def test_what_the_network_does_counts_as_an_attempt(sqlite: Database) -> None:
    problems: list[Exception] = [
        NotSent("refused"),
        MaybeSent("reset"),
        MaybeSent("slow", timeout=True),
        TimeoutError(),
    ]

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
        assert await one.state(message_id) == {
            "state": "waiting",
            "deliveries": 0,
            "last_result": "too many open files",
        }
        assert one.deliveries._at_once == 8, "fewer at once while we are short"
        one.receiver.answer = 200
        await one.deliveries.deliver_due()
        assert await one.state(message_id) == {"state": "delivered", "deliveries": 1, "last_result": "status 200"}
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
                assert claim.deliveries == tries
                one.clock.advance(44)
                await one.deliveries.deliver_due()
                assert len(one.receiver.sent) == tries, "the lease still runs"
                one.clock.advance(1)
            await one.deliveries.deliver_due()
            assert len(one.receiver.sent) == tries + 1
            one.clock.advance(54)
        assert await one.state(message_id) == {"state": "exhausted", "deliveries": 4, "last_result": "status 500"}


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
        assert await one.state(message_id) == {"state": "exhausted", "deliveries": 0, "last_result": "interrupted"}
        await one.deliveries.redeliver(message_id)
        await one.deliveries.deliver_due()
        assert await one.state(message_id) == {"state": "delivered", "deliveries": 1, "last_result": "status 200"}


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
        assert await one.state(message_id) == {"state": state, "deliveries": 1, "last_result": f"status {answer}"}


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
        assert len(sent) - 1 < hanging + module._BATCH
        async with asyncio.timeout(20):
            while (await process.state(healthy))["state"] != "delivered":  # noqa: ASYNC110 (told by the store alone)
                await asyncio.sleep(0.001)


async def test_a_hanging_host_delays_no_other(database: Database) -> None:
    async with started(database) as one:
        await deliver_past(one, hosts=1, messages=300, hanging=128)


async def test_a_thousand_hanging_hosts_delay_no_other(sqlite: Database) -> None:
    async with started(sqlite) as one:
        await deliver_past(one, hosts=1000, messages=1000, hanging=1000)


async def test_a_place_that_gets_free_is_taken_at_once(sqlite: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BATCH", 1)
    monkeypatch.setattr(module, "_AT_ONCE_PER_HOST", 4)
    places, most = asyncio.Semaphore(0), 0

    async def answer(_: Sent) -> int:
        nonlocal most
        most = max(most, one.deliveries._crowds["hooks.example.com"])
        await places.acquire()
        return 200

    async with started(sqlite, answer) as one, running(one):
        await put(one.store, *[URL] * 8)
        one.deliveries.wake()
        for number in range(4, 9):  # without the clock having moved at all
            await until(lambda number=number: len(one.receiver.sent) == number and one.clock.sleeping == 1)  # type: ignore[misc]
            places.release()
        assert most == 4


async def test_a_host_that_has_answered_need_not_wait_for_our_books(
    sqlite: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BATCH", 4)
    monkeypatch.setattr(module, "_AT_ONCE_PER_HOST", 4)
    async with started(sqlite) as one:
        books, record = asyncio.Event(), one.deliveries._record

        async def slowly(*what: Any) -> None:
            await books.wait()
            await record(*what)

        monkeypatch.setattr(one.deliveries, "_record", slowly)
        async with running(one):
            ids = await put(one.store, *[URL] * 30)
            one.deliveries.wake()
            await until(lambda: len(one.receiver.sent) == len(ids))
            books.set()
            await until(lambda: not one.deliveries._running)


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
        assert (await one.state(later))["deliveries"] == 0


async def test_cancelling_gives_back_what_was_begun(database: Database) -> None:
    """It may have arrived or not, so it is sent again, and soon; but not for ever by those who cannot wait for it."""
    async with started(database, hang) as one:
        (message_id,) = await put(one.store)
        for times in range(1, 4):
            async with running(one):
                await until(lambda times=times: len(one.receiver.sent) == times)  # type: ignore[misc]
            assert await one.state(message_id) == {"state": "waiting", "deliveries": 0, "last_result": "interrupted"}
            one.clock.advance(2)
        (claim,) = await one.deliveries._claim(1)
        assert claim.unrecorded == 4
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
        assert (listed["id"], listed["event"], listed["url"], listed["deliveries"]) == (
            message_id,
            "video.failed",
            URL,
            4,
        )
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
