"""However many have long work to do, everybody else has a turn between any two of them."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import pytest

from penstock import event_loop
from penstock.event_loop import Turns, unobtrusive
from penstock.schema import Request
from tests.fake_providers import faults
from tests.gateway import OpenGateway, sqlite_only

LONG, SHORT = 2**20, 2**10
Told = TypeVar("Told")


async def rounds(work: Callable[[], Awaitable[object]], count: int) -> list[int]:
    """On which round of the loop each of so many pieces of work was done."""
    now, done = 0, list[int]()

    async def watch() -> None:
        nonlocal now
        while True:
            now += 1
            await asyncio.sleep(0)

    async def one() -> None:
        await work()
        done.append(now)

    watching = asyncio.create_task(watch())
    await asyncio.gather(*(one() for _ in range(count)))
    watching.cancel()
    return done


async def test_one_on_each_round_of_the_loop() -> None:
    one_by_one = Turns()
    assert len(set(await rounds(lambda: one_by_one.take(LONG), 20))) == 20


async def test_short_work_waits_for_nobody() -> None:
    one_by_one = Turns()
    assert set(await rounds(lambda: one_by_one.take(SHORT), 20)) == {1}


async def test_whoever_gives_up_does_not_hold_up_the_others() -> None:
    one_by_one = Turns()
    asking = [asyncio.create_task(one_by_one.take(LONG)) for _ in range(3)]
    await asyncio.sleep(0)
    asking[0].cancel()
    asking[1].cancel()
    await asyncio.wait_for(asking[2], 30)


@sqlite_only
async def test_long_replies_that_come_at_once(open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_loop, "_LONG_BYTES", 10)
    request = Request(task="image", model="picture", values={"prompt": "a pear", "size": "64x64"})
    async with open_gateway(works=False) as running:
        gate, gateway = faults.Gate(), running.gateway
        running.lab.images.always(gate)
        option = gateway.catalog.route("picture", ("image",), lambda *_: True).first
        asking = asyncio.create_task(rounds(lambda: gateway.upstream.submit(option, request, 1, {}), 30))
        await running.lab.images.reached(30)
        gate.open()
        assert len(set(await asking)) == 30


def in_thread(work: Callable[[], Told]) -> Told:
    """What work comes to in a thread of its own: how that one is scheduled stays there."""
    found: list[Told] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def scheduled(processors: Iterable[int], policy: int = os.SCHED_OTHER) -> tuple[int, int]:
    """How threads are that were begun unobtrusively on these processors, and their parent afterwards."""

    def work() -> tuple[int, int]:
        os.sched_setaffinity(0, processors)
        os.sched_setscheduler(0, policy, os.sched_param(0))
        with unobtrusive():
            inside = in_thread(lambda: os.sched_getscheduler(0))
        return inside, os.sched_getscheduler(0)

    return in_thread(work)


ONE = {min(os.sched_getaffinity(0))}


def test_on_one_processor_threads_do_not_break_in() -> None:
    assert scheduled(ONE) == (os.SCHED_BATCH, os.SCHED_OTHER)


def test_on_several_they_are_as_they_always_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})  # wherever this runs
    assert scheduled(ONE) == (os.SCHED_OTHER, os.SCHED_OTHER)


def test_who_scheduled_the_process_otherwise_is_not_overruled() -> None:
    assert scheduled(ONE, os.SCHED_IDLE) == (os.SCHED_IDLE, os.SCHED_IDLE)


LIBRARY_THREADS = """
import asyncio, os, pathlib
from penstock.net.client import HttpClient

async def main():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    wire = HttpClient()
    print(sorted(os.sched_getscheduler(int(task.name)) for task in pathlib.Path("/proc/self/task").iterdir()))
    await wire.close()

asyncio.run(main())
"""


def test_the_thread_that_sends_requests_is_such_a_thread() -> None:
    told = subprocess.run([sys.executable, "-c", LIBRARY_THREADS], capture_output=True, text=True, check=True)
    assert told.stdout.split() == [f"[{os.SCHED_OTHER},", f"{os.SCHED_BATCH}]"]
