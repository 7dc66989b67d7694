"""Requests wait for a connection while others get one fast enough, and open one when they do not."""

import asyncio
from typing import cast

from penstock.net.connection import Connection
from penstock.net.connection_queue import ConnectionQueue
from tests.loop_time import jumping_time

CONNECTION = cast(Connection, object())


def refuse(_: Connection) -> None:
    raise AssertionError


async def outcomes_of(count: int, *, passed_on_each_second: int) -> list[Connection | None]:
    """Let so many requests wait for up to a minute, while so many get a connection each second."""
    queue = ConnectionQueue()
    with jumping_time():
        waiting = [asyncio.create_task(queue.wait(60, refuse)) for _ in range(count)]
        await asyncio.sleep(0)
        while len(queue):
            for _ in range(passed_on_each_second // 10):
                queue.pass_on(CONNECTION)
            await asyncio.sleep(0.1)
        return await asyncio.gather(*waiting)


async def test_requests_wait_while_the_others_are_fast() -> None:
    assert (await outcomes_of(100, passed_on_each_second=240)).count(None) == 0


async def test_only_those_who_would_wait_too_long_open_connections() -> None:
    assert 10 <= (await outcomes_of(100, passed_on_each_second=120)).count(None) <= 40


async def test_requests_open_connections_when_the_others_are_slow() -> None:
    assert (await outcomes_of(100, passed_on_each_second=0)).count(None) == 100
    assert 60 <= (await outcomes_of(100, passed_on_each_second=20)).count(None) < 100


async def test_the_time_of_a_request_ends_its_wait() -> None:
    queue = ConnectionQueue()
    with jumping_time():
        waiting = asyncio.create_task(queue.wait(0.2, refuse))
        assert await waiting is None
    assert len(queue) == 0


async def test_a_cancelled_request_hands_its_connection_over() -> None:
    queue = ConnectionQueue()
    handed: list[Connection] = []
    waiting = asyncio.create_task(queue.wait(60, handed.append))
    await asyncio.sleep(0)
    assert queue.pass_on(CONNECTION)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert handed == [CONNECTION]
    assert not queue.pass_on(CONNECTION), "nobody waits"
