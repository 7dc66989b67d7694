"""Messages are delivered on schedule, also after crashes, and again when an operator asks."""

import asyncio
import logging
from typing import Any

import pytest

from penstock.errors import Conflict, NotFound, StorageUnavailable
from penstock.net.errors import LookupBusy, MaybeSent, NotSent
from penstock.settings import Settings
from penstock.values import OrgId
from penstock.webhooks import deliveries
from penstock.webhooks.records import list_messages, message_records
from tests.databases import Database
from tests.manual_clock import ManualClock
from tests.webhook_receivers import (
    ORG,
    URL,
    SentMessage,
    add_messages,
    open_process,
    until,
)

# ------------------------------------------------------------------------------------------------------------- schedule


async def test_deliveries_that_the_call_has_asked_to_drop_are_not_made(database: Database) -> None:
    """They count, and their pauses are the usual ones. Sending the message again drops none."""
    async with open_process(database) as process:
        (message_id,) = await add_messages(process.store, drops=2)
        for count in (1, 2):
            await process.deliveries.deliver_due_messages()
            assert (await process.state(message_id))[:2] == ("waiting", count)
            assert "dropped" in str((await process.state(message_id))[2])
            process.clock.advance(20)
        assert process.receiver.sent == []
        await process.deliveries.deliver_due_messages()
        assert (await process.state(message_id))[:2] == ("delivered", 3)
        await process.deliveries.redeliver(message_id)
        await process.deliveries.deliver_due_messages()
        assert (await process.state(message_id))[:2] == ("delivered", 1)


A_DAY = (5, 15, 45, 900, 3600, 7200, *[14_400] * 5)  # as docs/production.md proposes


def test_a_message_is_retried_three_times_unless_an_operator_says_otherwise() -> None:
    assert Settings().webhook_delays_seconds == (5, 15, 45)


@pytest.mark.parametrize("delays", [Settings().webhook_delays_seconds, A_DAY], ids=["default", "a day"])
async def test_deliveries_on_schedule_then_exhausted(database: Database, delays: tuple[float, ...]) -> None:
    count_max = 1 + len(delays)

    async def refuse_slowly(_: SentMessage) -> int:
        process.clock.advance(10)  # pauses begin when a delivery ends
        return 500

    async with open_process(database, refuse_slowly, delays=delays) as process:
        (message_id,) = await add_messages(process.store)
        await process.deliveries.deliver_due_messages()
        for count, delay in enumerate(delays, 1):
            assert await process.state(message_id) == ("waiting", count, "status 500")
            process.clock.advance(delay - 0.01)
            await process.deliveries.deliver_due_messages()
            assert len(process.receiver.sent) == count, "too early"
            process.clock.advance(0.2 * delay + 0.01)
            await process.deliveries.deliver_due_messages()
            assert len(process.receiver.sent) == count + 1, "too late"
        assert await process.state(message_id) == ("exhausted", count_max, "status 500")
        process.clock.advance(86_400)
        await process.deliveries.deliver_due_messages()
        assert len(process.receiver.sent) == count_max
        assert len({(sent.url, sent.body, sent.headers["webhook-id"]) for sent in process.receiver.sent}) == 1
        assert len({sent.headers["webhook-timestamp"] for sent in process.receiver.sent}) == count_max


async def test_only_2xx_is_success(sqlite: Database) -> None:
    statuses = (200, 202, 204, 299, 199, 300, 301, 302, 307, 308, 400, 404, 409, 411, 429, 500, 503)
    states = {}
    async with open_process(sqlite) as process:
        for status in statuses:
            process.receiver.respond = status
            (message_id,) = await add_messages(process.store)
            await process.deliveries.deliver_due_messages()
            states[status] = await process.state(message_id)
    assert states == {
        status: ("delivered" if 200 <= status < 300 else "waiting", 1, f"status {status}") for status in statuses
    }


async def test_a_receiver_that_is_gone_is_not_asked_again_until_somebody_says_so(sqlite: Database) -> None:
    async with open_process(sqlite, 410) as process:
        (message_id,) = await add_messages(process.store)
        await process.deliveries.deliver_due_messages()
        assert await process.state(message_id) == ("exhausted", 1, "status 410: the receiver wants no more of them")
        process.clock.advance(86_400)
        await process.deliveries.deliver_due_messages()
        assert len(process.receiver.sent) == 1
        process.receiver.respond = 200
        await process.deliveries.redeliver(message_id)
        await process.deliveries.deliver_due_messages()
        assert await process.state(message_id) == ("delivered", 1, "status 200")


async def test_a_network_failure_counts_as_a_delivery(sqlite: Database) -> None:
    problems: list[Exception] = [
        NotSent("refused"),
        MaybeSent("reset"),
        MaybeSent("slow", timeout=True),
        TimeoutError(),
    ]

    async def fail(_: SentMessage) -> int:
        raise problems[len(process.receiver.sent) - 1]

    async with open_process(sqlite, fail) as process:
        (message_id,) = await add_messages(process.store)
        results = []
        for _ in problems:
            await process.deliveries.deliver_due_messages()
            results.append((await process.state(message_id)).last_result)
            process.clock.advance(60)
        assert results == ["refused", "reset", "slow", "timed out"]
        assert (await process.state(message_id)).state == "exhausted"


async def test_a_local_shortage_does_not_count_as_a_delivery(database: Database) -> None:
    async def short(_: SentMessage) -> int:
        raise NotSent("too many open files", local=True)

    async with open_process(database, short) as process:
        (message_id,) = await add_messages(process.store)
        for _ in range(10):
            await process.deliveries.deliver_due_messages()
            process.clock.advance(1.2)
        assert len(process.receiver.sent) == 10
        assert await process.state(message_id) == ("waiting", 0, "too many open files")
        assert process.deliveries._places._limit == 8, "fewer deliveries at once during a shortage"
        process.receiver.respond = 200
        await process.deliveries.deliver_due_messages()
        assert await process.state(message_id) == ("delivered", 1, "status 200")
        assert process.deliveries._places._limit == 9


async def test_a_delivery_without_a_place_to_look_up_its_host_does_not_count(sqlite: Database) -> None:
    async def busy(_: SentMessage) -> int:
        raise LookupBusy

    async with open_process(sqlite, busy) as process:
        (message_id,) = await add_messages(process.store)
        most = process.deliveries._places._limit
        for _ in range(10):
            await process.deliveries.deliver_due_messages()
            process.clock.advance(1.2)
        assert (await process.state(message_id)).deliveries == 0
        assert process.deliveries._places._limit == most, "slow names of one organization slow down no other"
        assert {sent.share for sent in process.receiver.sent} == {ORG}


async def test_a_url_is_checked_before_each_delivery(sqlite: Database) -> None:
    async with open_process(sqlite) as process:
        (message_id,) = await add_messages(process.store, "https://metadata.internal/in")
        for _ in range(4):
            await process.deliveries.deliver_due_messages()
            process.clock.advance(60)
        assert process.receiver.sent == []
        state = await process.state(message_id)
        assert (state.state, state.last_result) == ("exhausted", "the URL is refused")


async def test_a_jump_of_the_wall_clock_moves_no_retry(sqlite: Database) -> None:
    async with open_process(sqlite, 500) as process:
        await add_messages(process.store)
        await process.deliveries.deliver_due_messages()
        process.clock.jump(3600)
        await process.deliveries.deliver_due_messages()
        assert len(process.receiver.sent) == 1, "early"
        process.clock.jump(-7200)
        process.clock.advance(6)
        await process.deliveries.deliver_due_messages()
        assert len(process.receiver.sent) == 2, "late"
        skew = int(process.receiver.sent[0].headers["webhook-timestamp"]) - int(
            process.receiver.sent[1].headers["webhook-timestamp"]
        )
        assert skew == 3600 - 6, "the timestamp is the wall clock's"


async def test_a_clock_set_back_before_a_restart_delays_nothing(sqlite: Database) -> None:
    async with open_process(sqlite, 500) as process:
        await add_messages(process.store)
        await process.deliveries.deliver_due_messages()
        async with open_process(sqlite, clock=ManualClock(process.clock.now_ms() - 3_600_000)) as again:
            await again.deliveries.deliver_due_messages()
            assert len(again.receiver.sent) == 1


# -------------------------------------------------------------------------------------------------------------- crashes


async def test_a_crash_between_deliveries_resets_nothing(database: Database) -> None:
    async with open_process(database, 500) as process:
        (message_id,) = await add_messages(process.store)
        await process.deliveries.deliver_due_messages()
    async with open_process(database, 500, process.clock) as again:
        again.clock.advance(4.9)
        await again.deliveries.deliver_due_messages()
        assert again.receiver.sent == []
        for _ in range(5):
            again.clock.advance(54)
            await again.deliveries.deliver_due_messages()
        assert len(again.receiver.sent) == 3
        assert (await again.state(message_id)).state == "exhausted"


async def test_an_interrupted_delivery_is_made_again(database: Database) -> None:
    """The receiver still gets four deliveries on schedule, however often a process dies."""
    async with open_process(database, 500) as process:
        (message_id,) = await add_messages(process.store)
        for count in range(4):
            for _ in range(9):
                (claim,) = await process.deliveries._claim(10)  # then the process is killed, before or after sending
                assert claim.deliveries == count
                process.clock.advance(14)
                await process.deliveries.deliver_due_messages()
                assert len(process.receiver.sent) == count, "the lease still runs"
                process.clock.advance(2)
            await process.deliveries.deliver_due_messages()
            assert len(process.receiver.sent) == count + 1
            process.clock.advance(54)
        assert await process.state(message_id) == ("exhausted", 4, "status 500")


async def test_the_only_process_need_not_wait_for_the_leases_of_dead_ones(database: Database) -> None:
    async with open_process(database, 500) as process:
        await add_messages(process.store)
        for count in range(1, 3):
            for _ in range(20):
                assert len(await process.deliveries._claim(1)) == 1  # then the process is killed
                await process.deliveries.release_leases()
            await process.deliveries.deliver_due_messages()
            assert len(process.receiver.sent) == count
            await process.deliveries.release_leases()
            await process.deliveries.deliver_due_messages()
            assert len(process.receiver.sent) == count, "a recorded delivery keeps its schedule"
            process.clock.advance(6)


@pytest.mark.parametrize(("status", "state"), [(200, "delivered"), (503, "waiting")])
async def test_a_process_that_lost_the_lease_records_nothing(
    database: Database, status: int, state: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    go = asyncio.Event()

    async def stopped(_: SentMessage) -> int:
        await go.wait()
        return 500

    async with open_process(database, stopped) as process, open_process(database, status, process.clock) as two:
        (message_id,) = await add_messages(process.store)
        paused = asyncio.create_task(process.deliveries.deliver_due_messages())
        await until(lambda: bool(process.receiver.sent))
        two.clock.advance(15)
        await two.deliveries.deliver_due_messages()
        go.set()
        await paused
        assert await process.state(message_id) == (state, 1, f"status {status}")
        lost = f"webhook {message_id}, delivery 1: status 500 (not recorded: the lease was lost)"
        assert [text for text in caplog.messages if "lost" in text] == [lost]


async def test_a_lost_lease_spoils_no_result_that_is_recorded_at_the_same_moment(database: Database) -> None:
    go = asyncio.Event()

    async def stopped(_: SentMessage) -> int:
        await go.wait()
        return 200

    async with open_process(database, stopped) as process, open_process(database, 200, process.clock) as two:
        message_ids = await add_messages(process.store, URL, URL, URL)
        paused = asyncio.create_task(process.deliveries.deliver_due_messages())
        await until(lambda: len(process.receiver.sent) == 3)
        two.clock.advance(15)
        (taken,) = await two.deliveries._claim(1)
        go.set()
        await paused
        records = await message_records(process.store, await list_messages(process.store))
        found = {record["id"]: (record["status"], len(record["deliveries"])) for record in records}
        expected = dict.fromkeys(message_ids, ("delivered", 1))
        assert found == {**expected, taken.id: ("waiting", 0)}


async def test_the_result_of_a_delivery_waits_for_an_unavailable_database(
    sqlite: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_process(sqlite) as process:
        (message_id,) = await add_messages(process.store)
        write, left = process.store.write, 3

        async def flaky(work: Any, **_: Any) -> Any:
            nonlocal left
            if process.receiver.sent and left:
                left -= 1
                raise StorageUnavailable("not reachable")
            return await write(work)

        monkeypatch.setattr(process.store, "write", flaky)
        task = asyncio.create_task(process.deliveries.deliver_due_messages())
        for remaining in (2, 1, 0):
            await until(lambda remaining=remaining: left == remaining and process.clock.sleeping == 1)  # type: ignore[misc]
            process.clock.advance(1)
        await task
        assert (await process.state(message_id)).state == "delivered"
        assert len(process.receiver.sent) == 1


# ------------------------------------------------------------------------------------------------------------ operators


async def test_an_operator_sends_a_message_again(database: Database) -> None:
    async with open_process(database, 500) as process:
        (message_id,) = await add_messages(process.store)
        for _ in range(4):
            await process.deliveries.deliver_due_messages()
            process.clock.advance(60)
        (listed,) = await list_messages(process.store, "exhausted")
        assert (listed.id, listed.event) == (message_id, "video.failed")
        assert (listed.url, listed.deliveries) == (URL, 4)
        assert await list_messages(process.store, "delivered") == []
        process.receiver.respond = 200
        for attempt in (5, 6):  # a delivered one may be sent again as well
            await process.deliveries.redeliver(message_id)
            await process.deliveries.deliver_due_messages()
            assert len(process.receiver.sent) == attempt
        assert (await process.state(message_id)).state == "delivered"
        assert len({(sent.body, sent.headers["webhook-id"]) for sent in process.receiver.sent}) == 1
        with pytest.raises(NotFound):
            await process.deliveries.redeliver("msg_none")


async def test_a_waiting_message_is_sent_now_unless_it_is_being_sent(database: Database) -> None:
    async with open_process(database, 500) as process:
        (message_id,) = await add_messages(process.store)
        await process.deliveries.deliver_due_messages()
        await process.deliveries.deliver_due_messages()
        assert len(process.receiver.sent) == 1, "it is not due yet"
        await process.deliveries.redeliver(message_id)
        await process.deliveries.deliver_due_messages()
        assert len(process.receiver.sent) == 2
        (listed,) = await list_messages(process.store, "waiting")
        assert listed.deliveries == 2, "the deliveries that were made still count"
        await process.deliveries.redeliver(message_id)
        await process.deliveries._claim(1)
        with pytest.raises(Conflict, match="being delivered right now"):
            await process.deliveries.redeliver(message_id)


async def test_all_exhausted_messages_are_sent_again(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "_REQUEUED_AT_ONCE", 2)
    other = OrgId("org_" + "1" * 32)
    async with open_process(database, 500) as process:
        ids = [*await add_messages(process.store, *[URL] * 5), *await add_messages(process.store, org_id=other)]
        for _ in range(4):
            await process.deliveries.deliver_due_messages()
            process.clock.advance(60)
        assert {(await process.state(message_id)).state for message_id in ids} == {"exhausted"}
        process.receiver.respond = 200
        assert await process.deliveries.redeliver_exhausted(ORG) == 5
        await process.deliveries.deliver_due_messages()
        assert [(await process.state(message_id)).state for message_id in ids] == ["delivered"] * 5 + ["exhausted"]
        assert [await process.deliveries.redeliver_exhausted() for _ in range(2)] == [1, 0]
