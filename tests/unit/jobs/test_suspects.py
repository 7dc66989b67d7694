"""Suspects are tried one after the other, and none in the first seconds of a process."""

import asyncio

import pytest

from penstock.errors import StorageUnavailable
from penstock.jobs.running import Lease, RunningJob
from penstock.jobs.suspects import SuspectTrials
from tests.manual_clock import ManualClock


class Suspects:
    """Takes the place of `Jobs`: starts suspects that survive when a test says so."""

    def __init__(self, count: int) -> None:
        self.waiting = [RunningJob(Lease(f"req_{number}", 1, 2)) for number in range(count)]
        self.started: list[RunningJob] = []
        self.problem: Exception | None = None

    async def start_next(self) -> RunningJob | None:
        if self.problem:
            raise self.problem
        if not self.waiting:
            return None
        self.started.append(self.waiting.pop(0))
        return self.started[-1]


async def let_others_run() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_none_is_tried_in_the_first_seconds() -> None:
    """Five to ten, at random."""
    clock = ManualClock()
    suspects = Suspects(1)
    trials = SuspectTrials(clock, suspects.start_next)
    trials.begin()
    clock.advance(4.9)
    await let_others_run()
    assert suspects.started == []
    clock.advance(5.1)
    await let_others_run()
    assert len(suspects.started) == 1
    await trials.stop()


async def test_the_next_one_is_tried_when_the_last_was_survived() -> None:
    clock = ManualClock()
    suspects = Suspects(3)
    trials = SuspectTrials(clock, suspects.start_next)
    clock.advance(10)
    trials.begin()
    waiting = asyncio.create_task(trials.wait())
    for count in (1, 2, 3):
        await let_others_run()
        trials.begin()  # they are being tried already
        await let_others_run()
        assert len(suspects.started) == count
        assert not waiting.done()
        suspects.started[-1].survived.set()
    await asyncio.wait_for(waiting, 60)


async def test_one_that_takes_long_does_not_block_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.jobs.suspects._TRIAL_SECONDS", 0.0)
    clock = ManualClock()
    suspects = Suspects(2)
    trials = SuspectTrials(clock, suspects.start_next)
    clock.advance(10)
    trials.begin()
    await asyncio.wait_for(trials.wait(), 60)
    assert len(suspects.started) == 2


async def test_trials_go_on_after_an_outage_of_the_store() -> None:
    clock = ManualClock()
    suspects = Suspects(1)
    suspects.problem = StorageUnavailable("The store is unavailable.")
    trials = SuspectTrials(clock, suspects.start_next)
    clock.advance(10)
    trials.begin()
    await asyncio.wait_for(trials.wait(), 60)
    suspects.problem = None
    trials.begin()
    await let_others_run()
    assert len(suspects.started) == 1
    await trials.stop()


async def test_waiting_and_stopping_without_suspects() -> None:
    trials = SuspectTrials(ManualClock(), Suspects(0).start_next)
    await trials.wait()
    await trials.stop()
