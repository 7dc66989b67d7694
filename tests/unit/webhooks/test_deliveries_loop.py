"""Many deliveries at once, and a delivery loop that is woken, stopped and cancelled."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import pytest

from penstock.errors import StorageUnavailable
from penstock.store.base import Transaction
from penstock.values import OrgId, new_id
from penstock.webhooks import deliveries as module
from penstock.webhooks import places
from penstock.webhooks.events import message_row
from penstock.webhooks.records import list_messages
from tests.databases import Database
from tests.webhook_receivers import (
    ORG,
    URL,
    Process,
    SentMessage,
    add_messages,
    hang,
    open_process,
    run_deliveries,
    until,
)

# -------------------------------------------------------------------------------------------------------- many at once


async def test_several_processes_deliver_each_message_once(database: Database) -> None:
    async def respond_later(_: SentMessage) -> int:
        await asyncio.sleep(0)
        return 200

    async with AsyncExitStack() as stack:
        processes = [await stack.enter_async_context(open_process(database, respond_later)) for _ in range(3)]
        ids = await add_messages(processes[0].store, *[URL] * 120)
        await asyncio.gather(*[process.deliveries.deliver_due_messages() for process in processes])
        sent_ids = [sent.headers["webhook-id"] for process in processes for sent in process.receiver.sent]
        assert sorted(sent_ids) == sorted(ids), "each message once"
        assert {message.state for message in await list_messages(processes[0].store, limit=1000)} == {"delivered"}


async def deliver_past(process: Process, hosts: int, messages: int, hanging: int) -> None:
    """Add messages to hosts that hang, wait until `hanging` are being sent, and check that another is delivered."""

    async def respond(sent: SentMessage) -> int:
        return 200 if sent.url == URL else await hang(sent)

    process.receiver.respond = respond
    sent = process.receiver.sent
    async with run_deliveries(process):
        await add_messages(process.store, *(f"https://h{number % hosts}.example.org/in" for number in range(messages)))
        process.deliveries.wake()
        await until(lambda: len(sent) >= hanging)
        (healthy,) = await add_messages(process.store)
        process.deliveries.wake()
        await until(lambda: sent[-1].url == URL)  # although the clock does not move
        assert len(sent) - 1 < hanging + module._BATCH
        await until_delivered(process, healthy)


async def until_delivered(process: Process, message_id: str) -> None:
    async with asyncio.timeout(20):
        while (await process.state(message_id)).state != "delivered":  # noqa: ASYNC110 (only the store knows)
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("all_of_them", [False, True])
async def test_what_an_operator_sends_again_is_sent_at_once(sqlite: Database, all_of_them: bool) -> None:
    async with open_process(sqlite, 500, delays=()) as process:
        (message_id,) = await add_messages(process.store)
        await process.deliveries.deliver_due_messages()
        process.receiver.respond = 200
        async with run_deliveries(process):
            await until(lambda: process.clock.sleeping > 0)  # nothing is due, and the clock does not move
            if all_of_them:
                await process.deliveries.redeliver_exhausted(ORG)
            else:
                await process.deliveries.redeliver(message_id)
            await until_delivered(process, message_id)


async def test_a_hanging_host_delays_no_other(database: Database) -> None:
    async with open_process(database) as process:
        await deliver_past(process, hosts=1, messages=300, hanging=128)


async def test_a_thousand_hanging_hosts_delay_no_other(sqlite: Database) -> None:
    async with open_process(sqlite) as process:
        await deliver_past(process, hosts=1000, messages=1000, hanging=1000)


async def test_hanging_hosts_of_some_organizations_delay_no_other_organization(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "_MOST", 60)
    monkeypatch.setattr(module, "_BATCH", 4)

    async def respond(sent: SentMessage) -> int:
        return 200 if sent.url == URL else await hang(sent)

    async with open_process(database, respond) as process, run_deliveries(process):
        for number, share in ((1, 30), (2, 12), (3, 5)):  # more than all places, each to many hosts
            org_id = OrgId(f"org_{number:032}")
            urls = [f"https://h{host % 17}.example.org/{number}" for host in range(100)]
            await add_messages(process.store, *urls, org_id=org_id)
            process.deliveries.wake()
            await until(lambda org_id=org_id, share=share: process.deliveries._places._per_org[org_id] >= share)  # type: ignore[misc]
            (healthy,) = await add_messages(process.store)
            process.deliveries.wake()
            await until_delivered(process, healthy)  # although the clock does not move
            assert len(process.deliveries._running) < 60


async def test_a_free_place_is_used_at_once(sqlite: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BATCH", 1)
    monkeypatch.setattr(places, "_PER_HOST", 4)
    responses = asyncio.Semaphore(0)
    most = 0

    async def respond(_: SentMessage) -> int:
        nonlocal most
        most = max(most, process.deliveries._places._per_host["hooks.example.com"])
        await responses.acquire()
        return 200

    async with open_process(sqlite, respond) as process, run_deliveries(process):
        await add_messages(process.store, *[URL] * 8)
        process.deliveries.wake()
        for number in range(4, 9):  # although the clock does not move
            await until(lambda number=number: len(process.receiver.sent) == number and process.clock.sleeping == 1)  # type: ignore[misc]
            responses.release()
        assert most == 4


async def test_a_host_is_free_before_its_result_is_recorded(sqlite: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BATCH", 4)
    monkeypatch.setattr(places, "_PER_HOST", 4)
    async with open_process(sqlite) as process:
        may_record = asyncio.Event()
        record = process.deliveries._record

        async def record_later(*arguments: Any) -> None:
            await may_record.wait()
            await record(*arguments)

        monkeypatch.setattr(process.deliveries, "_record", record_later)
        async with run_deliveries(process):
            ids = await add_messages(process.store, *[URL] * 30)
            process.deliveries.wake()
            await until(lambda: len(process.receiver.sent) == len(ids))
            may_record.set()
            await until(lambda: not process.deliveries._running)


# -------------------------------------------------------------------------------------- messages that this process adds


async def test_a_message_that_this_process_adds_is_sent_without_a_claim(database: Database) -> None:
    async with open_process(database) as process, run_deliveries(process):
        await until(lambda: process.clock.sleeping == 1)
        async with adding_message(process) as message_id:
            assert await leased(process, message_id), "no other process may claim it"
            assert not process.receiver.sent
        await until(
            lambda: len(process.receiver.sent) == 1
        )  # although nothing woke the loop, and the clock stands still
        await until_delivered(process, message_id)


async def test_a_message_without_a_place_waits_for_its_turn(sqlite: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_PER_HOST", 1)
    go = asyncio.Event()

    async def respond(_: SentMessage) -> int:
        await go.wait()
        return 200

    async with open_process(sqlite, respond) as process:
        async with adding_message(process) as before_the_start:
            assert not await leased(process, before_the_start), "this process delivers nothing yet"
        async with run_deliveries(process):
            await until(lambda: len(process.receiver.sent) == 1)
            async with adding_message(process) as to_a_busy_host:
                assert not await leased(process, to_a_busy_host)
            go.set()
            await until_delivered(process, to_a_busy_host)
            async with adding_message(process) as first, adding_message(process) as second:
                assert (await leased(process, first), await leased(process, second)) == (True, False)
            await until_delivered(process, second)
            assert process.deliveries._places._taken == len(process.deliveries._running)
        assert len(process.receiver.sent) == 4


@pytest.mark.parametrize("trouble", ["slow commit", "stopped", "killed after the commit"])
async def test_a_leased_message_that_is_not_sent_is_sent_later(sqlite: Database, trouble: str) -> None:
    async with open_process(sqlite) as process:
        async with run_deliveries(process) as task:
            await until(lambda: process.clock.sleeping == 1)
            with suppress(InterruptedError):
                async with adding_message(process) as message_id:
                    if trouble == "slow commit":
                        process.clock.advance(8)  # the lease would end before the result is recorded
                    elif trouble == "stopped":
                        process.deliveries.stop()
                    else:
                        raise InterruptedError
            if trouble == "stopped":
                await task
            await until(lambda: not process.deliveries._running)
            assert not process.receiver.sent
            assert process.deliveries._places._taken == 0
        process.clock.advance(16 if trouble == "killed after the commit" else 2)
        async with open_process(sqlite, clock=process.clock) as another:
            await another.deliveries.deliver_due_messages()
            assert await another.state(message_id) == ("delivered", 1, "status 200")
            assert len(another.receiver.sent) == 1


@asynccontextmanager
async def adding_message(process: Process) -> AsyncIterator[str]:
    """Add a message as the end of a generation does; the block runs after the commit."""
    request_id = new_id("req", 1)
    row = message_row(org_id=ORG, request_id=request_id, url=URL, event="video.failed", body=b"{}", at_ms=7)
    with process.deliveries.adding(row) as added:

        async def work(tx: Transaction) -> None:
            await tx.run("put_request", id=request_id, org_id=ORG)
            for name, values in added:
                await tx.put(name, **values)

        await process.store.write(work)
        yield row["id"]


async def leased(process: Process, message_id: str) -> bool:
    row = await process.store.one("get_message", id=message_id)
    assert row is not None
    return bool(row["next_at_ms"] > process.clock.steady_ms())


# ------------------------------------------------------------------------------------------------------------- running


async def test_a_message_is_sent_when_woken_or_within_a_second(database: Database) -> None:
    async with open_process(database) as process, run_deliveries(process):
        await until(lambda: process.clock.sleeping == 1)
        await add_messages(process.store)
        process.deliveries.wake()
        await until(lambda: len(process.receiver.sent) == 1)
        await until(lambda: not process.deliveries._running and process.clock.sleeping == 1)
        await add_messages(process.store)  # by another process, which cannot wake us
        process.clock.advance(1)
        await until(lambda: len(process.receiver.sent) == 2)


async def test_retries_are_on_time_while_running(sqlite: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "uniform", lambda low, high: 0.1)
    async with open_process(sqlite, 500) as process, run_deliveries(process):
        await add_messages(process.store)
        process.deliveries.wake()
        began = process.clock.monotonic()
        for _ in range(800):
            await until(lambda: process.clock.sleeping == 1 and not process.deliveries._running)
            process.clock.advance(0.1)
        times = [round(sent.at - began, 1) for sent in process.receiver.sent]
        assert times == [0, 5.5, 22, 71.5]


@pytest.mark.parametrize("is_stopping", [False, True])
async def test_a_delivery_that_takes_long_keeps_its_lease(database: Database, is_stopping: bool) -> None:
    """Leases are short, so that a killed process delays its messages by seconds only."""
    async with open_process(database, hang) as process, open_process(database, 200, process.clock) as another:
        (message_id,) = await add_messages(process.store)
        async with run_deliveries(process):
            await until(lambda: len(process.receiver.sent) == 1)
            if is_stopping:
                process.deliveries.stop()
            for _ in range(29):
                await until(lambda: process.clock.sleeping == 1)
                process.clock.advance(1)
                await another.deliveries.deliver_due_messages()
            assert another.receiver.sent == []
        process.clock.advance(2)
        await another.deliveries.deliver_due_messages()
        assert await another.state(message_id) == ("delivered", 1, "status 200")


async def test_leases_are_renewed_while_many_messages_are_started(
    sqlite: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an outage it may take longer to start all that is due than a lease lasts."""
    rounds_left = 10

    async def start_some() -> bool:
        nonlocal rounds_left
        rounds_left -= 1
        process.clock.advance(4)
        assert await leased(process, message_id)
        return rounds_left > 0

    async with open_process(sqlite, hang) as process:
        (message_id,) = await add_messages(process.store)
        (message,) = await process.deliveries._claim(1)
        process.deliver(message)
        await until(lambda: len(process.receiver.sent) == 1)
        monkeypatch.setattr(process.deliveries, "_start_due_deliveries", start_some)
        try:
            await process.deliveries._work_once()
        finally:
            for task in process.deliveries._running:
                task.cancel()
            await process.deliveries._wait_for_running()
    assert rounds_left == 0


async def test_leases_are_renewed_no_more_often_than_needed(sqlite: Database) -> None:
    """However often the loop turns, a lease of fifteen seconds is renewed after a quarter of them."""
    lease_ends = set()
    async with open_process(sqlite, hang) as process:
        (message_id,) = await add_messages(process.store)
        await process.deliveries._work_once()
        await until(lambda: len(process.receiver.sent) == 1)
        try:
            for _ in range(60):
                row = await process.store.one("get_message", id=message_id)
                assert row is not None
                lease_ends.add(row["next_at_ms"])
                assert row["next_at_ms"] > process.clock.steady_ms()
                process.clock.advance(0.5)
                await process.deliveries._work_once()
        finally:
            for task in process.deliveries._running:
                task.cancel()
            await process.deliveries._wait_for_running()
    assert len(lease_ends) == 9, "the first, one as soon as it runs, and one every four seconds of thirty"


async def test_a_renewed_lease_changes_no_schedule(sqlite: Database) -> None:
    """A result may be recorded while the renewal is on its way."""
    async with open_process(sqlite, 503) as process:
        (message_id,) = await add_messages(process.store)
        (message,) = await process.deliveries._claim(1)
        process.deliver(message)
        running = dict(process.deliveries._running)
        await process.deliveries._wait_for_running()
        before = await process.store.one("get_message", id=message_id)
        process.deliveries._running.update(running)
        await process.deliveries._renew_leases()
        assert await process.store.one("get_message", id=message_id) == before


async def test_stopping_waits_for_running_deliveries(sqlite: Database) -> None:
    go = asyncio.Event()

    async def respond(_: SentMessage) -> int:
        await go.wait()
        return 200

    async with open_process(sqlite, respond) as process, run_deliveries(process) as task:
        (message_id,) = await add_messages(process.store)
        process.deliveries.wake()
        await until(lambda: bool(process.receiver.sent))
        process.deliveries.stop()
        (later,) = await add_messages(process.store)
        await asyncio.sleep(0)
        assert not task.done()
        go.set()
        await task
        assert (await process.state(message_id)).state == "delivered"
        assert (await process.state(later)).deliveries == 0


async def test_a_process_that_stops_starts_no_more_of_a_backlog(
    sqlite: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = 0

    async def start_some() -> bool:
        nonlocal started
        started += 1
        process.deliveries.stop()
        return started < 5  # there are more

    async with open_process(sqlite) as process:
        monkeypatch.setattr(process.deliveries, "_start_due_deliveries", start_some)
        await process.deliveries._work_once()
    assert started == 1


async def test_cancelling_reschedules_running_deliveries(database: Database) -> None:
    """The message may have arrived or not, so it is soon sent again."""
    async with open_process(database, hang) as process:
        (message_id,) = await add_messages(process.store)
        for times in range(1, 4):
            async with run_deliveries(process):
                await until(lambda times=times: len(process.receiver.sent) == times)  # type: ignore[misc]
            assert await process.state(message_id) == ("waiting", 0, "interrupted")
            process.clock.advance(2)
        process.receiver.respond = 200
        await process.deliveries.deliver_due_messages()
        assert (await process.state(message_id)).state == "delivered"


async def test_cancelling_loses_no_result(database: Database) -> None:
    """What was sent and answered would be sent again if its result, which waits for others, were not recorded."""
    async with open_process(database) as process:
        (message_id,) = await add_messages(process.store)
        async with run_deliveries(process):
            await until(lambda: bool(process.receiver.sent) and not process.deliveries._places._per_host)
        assert await process.state(message_id) == ("delivered", 1, "status 200")


async def test_cancelling_reschedules_claimed_messages(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_process(database) as process:
        await add_messages(process.store)
        write, committed, go = process.store.write, asyncio.Event(), asyncio.Event()

        async def slow(work: Any, **_: Any) -> Any:
            done = await write(work)
            committed.set()
            await go.wait()
            return done

        monkeypatch.setattr(process.store, "write", slow)
        async with run_deliveries(process) as task:
            await committed.wait()
            task.cancel()
            go.set()
        assert process.receiver.sent == []
        process.clock.advance(2)
        await process.deliveries.deliver_due_messages()
        assert len(process.receiver.sent) == 1


async def test_a_message_whose_claim_took_long_is_given_back(sqlite: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lease would end before the result is recorded, and another process would send it too."""
    async with open_process(sqlite) as process:
        (message_id,) = await add_messages(process.store)
        write = process.store.write

        async def slow(work: Any, **options: Any) -> Any:
            done = await write(work, **options)
            process.clock.advance(8)
            return done

        with monkeypatch.context() as patched:
            patched.setattr(process.store, "write", slow)
            assert not await process.deliveries._start_due_deliveries()
        await process.deliveries._wait_for_running()
        assert (await process.state(message_id)).last_result == "stopped before it was sent"
        process.clock.advance(2)
        await process.deliveries.deliver_due_messages()
        assert await process.state(message_id) == ("delivered", 1, "status 200")
        assert len(process.receiver.sent) == 1


async def test_an_unavailable_database_is_waited_for(sqlite: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_process(sqlite) as process:
        await add_messages(process.store)
        write = process.store.write

        async def gone(work: Any, **_: Any) -> Any:
            raise StorageUnavailable("not reachable")

        monkeypatch.setattr(process.store, "write", gone)
        async with run_deliveries(process):
            await until(lambda: process.clock.sleeping == 1)
            monkeypatch.setattr(process.store, "write", write)
            process.clock.advance(1)
            await until(lambda: len(process.receiver.sent) == 1)


@pytest.mark.parametrize("dialect", ["postgres"], indirect=True)
async def test_a_locked_message_delays_no_result_of_another_organization(database: Database) -> None:
    """Results are recorded together, but not those of two organizations."""
    locked_now, go = asyncio.Event(), asyncio.Event()
    async with open_process(database) as process:
        (locked_id,) = await add_messages(process.store)
        (other_id,) = await add_messages(process.store, org_id=OrgId("org_" + "1" * 32))

        async def lock(tx: Transaction) -> None:
            await tx.run("purge_message", request_id=locked_id.removeprefix("msg_"), org_id=ORG, body=b"{}")
            locked_now.set()
            await go.wait()

        messages = {message.id: message for message in await process.deliveries._claim(2)}
        purge = asyncio.create_task(process.store.write(lock))
        await locked_now.wait()
        for message_id in (locked_id, other_id):
            process.deliver(messages[message_id])
        try:
            await until(lambda: len(process.deliveries._running) == 1)
            assert (await process.state(other_id)).state == "delivered"
        finally:
            go.set()
            await purge
            await process.deliveries._wait_for_running()
        assert (await process.state(locked_id)).state == "delivered"
