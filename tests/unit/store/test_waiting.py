"""Work that fails because the database is away is done again until it succeeds, or until the caller gives up."""

import asyncio

import pytest

from penstock.errors import StorageUnavailable
from penstock.store.waiting import retry_while_unavailable
from tests.manual_clock import ManualClock


class Work:
    """Fails a number of times, then returns how often it was run."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.runs = 0

    async def __call__(self) -> int:
        self.runs += 1
        if self.runs <= self.failures:
            raise StorageUnavailable("Storage is unavailable.")
        return self.runs


async def finish(clock: ManualClock, task: "asyncio.Task[int]", step_seconds: float) -> int:
    """Let time pass until the task has ended; return how many steps that took."""
    steps = 0
    while not task.done():
        await asyncio.sleep(0)
        if clock.sleeping:
            clock.advance(step_seconds)
            steps += 1
    return steps


async def test_work_that_succeeds_is_run_once() -> None:
    clock, work = ManualClock(), Work(0)
    assert await retry_while_unavailable(clock, work) == 1
    assert clock.sleeping == 0


async def test_failed_work_is_run_again_after_a_pause() -> None:
    clock, work = ManualClock(), Work(3)
    task = asyncio.create_task(retry_while_unavailable(clock, work, pause_seconds=5))
    assert await finish(clock, task, 5) == 3
    assert (task.result(), work.runs) == (4, 4)


async def test_the_last_failure_is_raised_when_the_caller_gives_up() -> None:
    clock, work = ManualClock(), Work(9)
    task = asyncio.create_task(retry_while_unavailable(clock, work, gives_up=lambda: work.runs == 3))
    await finish(clock, task, 1)
    with pytest.raises(StorageUnavailable):
        task.result()
    assert work.runs == 3


async def test_other_failures_are_not_repeated() -> None:
    async def work() -> None:
        raise ValueError("not the database")

    with pytest.raises(ValueError, match="not the database"):
        await retry_while_unavailable(ManualClock(), work)
