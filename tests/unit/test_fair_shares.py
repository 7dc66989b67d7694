"""Organizations take turns: no work waits behind all the work that another organization has queued."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from penstock.fair_shares import SharedPlaces
from penstock.values import OrgId


class Work:
    """Tasks that each hold a place until the test ends them, in the order in which they started."""

    def __init__(self, places: int) -> None:
        self.places = SharedPlaces(places)
        self.started: list[str] = []
        self.ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def queue(self, *names: str, long: bool = False) -> None:
        """Queue tasks; the first letter of a name is its organization."""
        for name in names:
            self.ends[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._run(name, long))
        await self.settle()

    async def _run(self, name: str, long: bool) -> None:
        async with self.places.place(OrgId(name[0]), long=long):
            self.started.append(name)
            await self.ends[name].wait()

    async def end(self, name: str) -> None:
        self.ends[name].set()
        await self.tasks[name]
        await self.settle()

    async def cancel(self, name: str) -> None:
        self.tasks[name].cancel()
        await asyncio.gather(self.tasks[name], return_exceptions=True)
        await self.settle()

    async def end_all(self) -> None:
        for end in self.ends.values():
            end.set()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)

    @staticmethod
    async def settle() -> None:
        for _ in range(5):
            await asyncio.sleep(0)


@pytest.mark.parametrize("places", [2, 4])
async def test_work_waits_for_one_place_however_much_another_organization_has_queued(places: int) -> None:
    work = Work(places)
    await work.queue(*(f"a{number}" for number in range(40)))
    await work.queue("b")
    assert "b" not in work.started
    await work.end("a0")
    assert work.started.index("b") == places, "it started after the tasks that had begun before it came"
    await work.end_all()


async def test_organizations_with_much_work_take_turns() -> None:
    work = Work(2)
    await work.queue(*(f"{org}{number}" for org in "abc" for number in range(4)))
    while len(work.started) < 12:
        await work.end(next(name for name in work.started if not work.ends[name].is_set()))
    assert all({name[0] for name in work.started[start : start + 3]} == set("abc") for start in (2, 5))
    await work.end_all()


async def test_an_organization_alone_uses_every_place() -> None:
    work = Work(3)
    await work.queue("a0", "a1", "a2", "a3")
    assert work.started == ["a0", "a1", "a2"]
    await work.end_all()
    assert work.started == ["a0", "a1", "a2", "a3"]


async def test_an_organization_with_work_under_way_yields_to_one_without() -> None:
    work = Work(2)
    await work.queue("a0", "a1", "a2", "b0", "b1")
    await work.end("a0")
    await work.end("b0")
    assert work.started == ["a0", "a1", "b0", "b1"], "a1 still runs, so b is next again"
    await work.end_all()


async def test_long_work_leaves_one_place_and_short_work_passes_it() -> None:
    work = Work(2)
    await work.queue("a0", "a1", "b0", long=True)
    assert work.started == ["a0"]
    await work.queue("a2")
    assert work.started == ["a0", "a2"]
    await work.end("a2")
    assert work.started == ["a0", "a2"]
    await work.end("a0")
    assert work.started == ["a0", "a2", "b0"]
    await work.end_all()


async def test_a_cancelled_wait_gives_its_place_to_nobody_and_a_cancelled_task_to_the_next() -> None:
    work = Work(1)
    await work.queue("a0", "b0", "c0")
    await work.cancel("b0")
    assert work.started == ["a0"]
    await work.cancel("a0")
    assert work.started == ["a0", "c0"]
    await work.end_all()
    await work.queue("d0")
    assert work.started[-1] == "d0"
    await work.end_all()


async def test_a_wait_that_is_cancelled_at_the_moment_of_its_turn_passes_the_place_on() -> None:
    work = Work(1)
    await work.queue("a0", "b0", "c0")
    work.ends["a0"].set()
    await asyncio.sleep(0)
    work.tasks["b0"].cancel()
    await work.settle()
    assert work.started == ["a0", "c0"]
    await work.end_all()


async def test_nothing_is_remembered_of_organizations_without_work() -> None:
    places = SharedPlaces(2)
    for number in range(100):
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(places.place(OrgId(f"org_{number}")))
    assert not places._shares
