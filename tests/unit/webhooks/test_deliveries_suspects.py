"""Kills exhaust no message, however many, unless it is the message that crashes processes."""

import asyncio
from dataclasses import replace

from penstock.settings import Settings
from penstock.webhooks.delivery import LeasedMessage
from tests.databases import Database
from tests.webhook_receivers import (
    FIRST_DELAYS,
    Process,
    SentMessage,
    add_messages,
    new_deliveries,
    open_process,
    run_deliveries,
    until,
)

LEASE_SECONDS = 15
NO_SUSPECTS_SECONDS = 10  # after this time a new process delivers suspects


def restarted(process: Process) -> Process:
    """The process that follows on one that was killed."""
    settings = Settings(webhook_delays_seconds=FIRST_DELAYS)
    return replace(process, deliveries=new_deliveries(process.store, process.receiver, process.clock, settings))


async def kill_after_claiming(process: Process, times: int) -> Process:
    """Kill one process after the other, each when it has leased what is due and has sent nothing."""
    for _ in range(times):
        await process.deliveries._claim(10)
        process.clock.advance(LEASE_SECONDS)
        process = restarted(process)
    return process


async def claim_suspects(process: Process) -> list[LeasedMessage]:
    process.clock.advance(NO_SUSPECTS_SECONDS)
    return await process.deliveries._claim(10)


async def test_processes_that_die_soon_exhaust_no_message(database: Database) -> None:
    """Whatever kills them, they come to no message often enough to blame it."""
    async with open_process(database, 500) as process:
        ids = await add_messages(process.store, *(f"https://h{number}.example.com/in" for number in range(4)))
        for count in range(1, 5):
            process = await kill_after_claiming(process, 30)
            process.clock.advance(NO_SUSPECTS_SECONDS)
            await process.deliveries.deliver_due_messages()
            assert len(process.receiver.sent) == 4 * count
            process.clock.advance(54)
        for message_id in ids:
            assert await process.state(message_id) == ("exhausted", 4, "status 500")


async def test_only_the_message_that_crashes_processes_is_exhausted(database: Database) -> None:
    async with open_process(database) as process:
        ids = await add_messages(process.store, *(f"https://h{number}.example.com/in" for number in range(4)))
        bad_id, crashes = ids[1], 0
        while (await process.state(bad_id)).state == "waiting":
            assert crashes <= 10
            due = await process.deliveries._claim(10) or await claim_suspects(process)
            if any(message.id == bad_id and message.unrecorded <= 10 for message in due):
                crashes += 1
                process.clock.advance(LEASE_SECONDS)
                process = restarted(process)
            else:
                for message in due:
                    process.deliver(message)
                await process.deliveries._wait_for_running()
        assert crashes == 10
        assert await process.state(bad_id) == ("exhausted", 0, "interrupted")
        process.clock.advance(LEASE_SECONDS)
        await process.deliveries.deliver_due_messages()
        assert {message_id for message_id in ids if (await process.state(message_id)).state == "delivered"} == {
            *ids
        } - {bad_id}
        await process.deliveries.redeliver(bad_id)
        await process.deliveries.deliver_due_messages()
        assert await process.state(bad_id) == ("delivered", 1, "status 200")


async def test_kills_are_shared_among_suspects(database: Database) -> None:
    """A suspect whose process was killed waits for its lease to end; meanwhile it is the turn of the others."""
    async with open_process(database) as process:
        ids = await add_messages(process.store, *(f"https://h{number}.example.com/in" for number in range(4)))
        process = await kill_after_claiming(process, 3)
        tried = []
        for _ in ids:
            (suspect,) = await claim_suspects(process)
            tried.append(suspect.id)
            process = restarted(process)
        assert sorted(tried) == sorted(ids)


async def test_a_suspect_that_hangs_delays_others_for_two_seconds(sqlite: Database) -> None:
    hanging = asyncio.Event()

    async def respond(sent: SentMessage) -> int:
        if len(process.receiver.sent) <= 2:
            await hanging.wait()
        return 200

    async with open_process(sqlite, respond) as process:
        ids = await add_messages(process.store, *(f"https://h{number}.example.com/in" for number in range(5)))
        process = await kill_after_claiming(process, 3)
        process.clock.advance(4.9)
        await process.deliveries._claim(10)
        async with run_deliveries(process):
            await until(lambda: process.clock.sleeping == 1)
            assert process.receiver.sent == [], "a young process delivers no suspect"
            for seconds, count in (6, 1), (1, 1), (1, 2), (1, 2):
                process.clock.advance(seconds)
                await until(lambda count=count: len(process.receiver.sent) == count and process.clock.sleeping == 1)  # type: ignore[misc]
            process.clock.advance(1)
            await until(lambda: len(process.receiver.sent) == 5)  # those that get a response follow at once
            hanging.set()
            await until(lambda: not process.deliveries._running)
        states = [(await process.state(message_id)).state for message_id in ids]
        assert states == ["delivered"] * 5
