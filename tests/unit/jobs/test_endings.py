"""Jobs that wait for the end of another generation share the questions about it."""

import asyncio
from collections import Counter
from typing import Any

from penstock.errors import StorageUnavailable
from penstock.jobs.endings import Endings
from penstock.store.base import Row
from tests.api.raw_http import until
from tests.manual_clock import ManualClock


class Statuses:
    """A store that knows the status of each generation, and counts the questions."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.of: dict[str, str] = {}
        self.is_away = False

    async def one(self, name: str, /, **values: Any) -> Row | None:
        assert name == "get_generation_status"
        self.asked[values["id"]] += 1
        if self.is_away:
            raise StorageUnavailable("gone")
        status = self.of.get(values["id"])
        return None if status is None else {"status": status, "crashes": 0}


async def test_all_who_wait_for_a_generation_ask_together() -> None:
    store, clock = Statuses(), ManualClock()
    store.of = {"a": "queued", "b": "in_progress"}
    endings = Endings(store, clock)  # type: ignore[arg-type]
    waits = [asyncio.create_task(endings.wait(name)) for name in ["a"] * 1000 + ["b"]]
    await until(lambda: store.asked == {"a": 1, "b": 1})
    store.of["a"] = "completed"
    clock.advance(1)
    await until(lambda: sum(wait.done() for wait in waits) == 1000)
    assert store.asked == {"a": 2, "b": 2}
    store.of["b"] = "failed"
    clock.advance(1)
    await asyncio.gather(*waits)
    assert endings._asked == {}


async def test_a_generation_that_nobody_waits_for_is_not_asked_about() -> None:
    store, clock = Statuses(), ManualClock()
    store.of = {"a": "queued"}
    endings = Endings(store, clock)  # type: ignore[arg-type]
    first, second = (asyncio.create_task(endings.wait("a")) for _ in range(2))
    await until(lambda: store.asked["a"] == 1)
    first.cancel()
    await asyncio.wait([first])
    clock.advance(1)
    await until(lambda: store.asked["a"] == 2)
    second.cancel()
    await asyncio.wait([second])
    assert endings._asked == {}
    await until(lambda: len(asyncio.all_tasks()) == 1)


async def test_an_unknown_generation_is_not_waited_for() -> None:
    await Endings(Statuses(), ManualClock()).wait("a")  # type: ignore[arg-type]


async def test_an_unavailable_store_is_told_to_all() -> None:
    store = Statuses()
    store.is_away = True
    endings = Endings(store, ManualClock())  # type: ignore[arg-type]
    ended = await asyncio.gather(*(endings.wait("a") for _ in range(3)), return_exceptions=True)
    assert [type(problem) for problem in ended] == [StorageUnavailable] * 3
    store.is_away = False
    await endings.wait("a")
