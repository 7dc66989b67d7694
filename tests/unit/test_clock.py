"""The real clock agrees with the system; the manual clock moves only when told."""

import asyncio
import time

import pytest

from penstock.clock import Clock
from tests.manual_clock import ManualClock


def test_the_real_clock_has_the_times_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000_123_456_789)
    boot_ns = 5_000_000_000
    monkeypatch.setattr(time, "clock_gettime_ns", lambda _: boot_ns)
    monkeypatch.setattr(time, "monotonic", lambda: 12.5)
    clock = Clock()
    assert (clock.now_ms(), clock.steady_ms(), clock.monotonic()) == (1_700_000_000_123, 1_700_000_000_123, 12.5)
    boot_ns += 2_000_000
    assert (clock.now_ms(), clock.steady_ms()) == (1_700_000_000_123, 1_700_000_000_125)


async def test_the_real_clock_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    await Clock().sleep(0.01)
    assert slept == [0.01]


def test_steady_time_ignores_a_jump_of_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    wall_ns = 1_700_000_000 * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: wall_ns)
    monkeypatch.setattr(time, "clock_gettime_ns", lambda _: 5_000_000_000)
    clock = Clock()
    wall_ns += 3600 * 10**9
    assert (clock.now_ms(), clock.steady_ms()) == (1_700_003_600_000, 1_700_000_000_000)


def test_steady_time_moves_into_the_bounds_of_a_clock_that_it_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 10_000 * 10**6)
    monkeypatch.setattr(time, "clock_gettime_ns", lambda _: 5_000_000_000)
    clock = Clock()
    found = []
    for bounds in ((9_000, 11_000), (10_500, 10_600), (50_000, 50_010), (20_000, 20_010), (20_000, 90_000)):
        clock.follow(*bounds)
        found.append((clock.steady_ms(), clock.steps))
    assert found == [(10_000, 0), (10_500, 0), (50_000, 1), (20_010, 2), (20_010, 2)]


def test_sleepers_wake_in_the_order_of_their_times() -> None:
    woken: list[str] = []

    async def main() -> None:
        clock = ManualClock()

        async def sleeper(name: str, seconds: float) -> None:
            await clock.sleep(seconds)
            woken.append(name)

        tasks = [asyncio.create_task(sleeper(name, seconds)) for name, seconds in (("c", 9), ("a", 0.1), ("b", 5))]
        await asyncio.sleep(0)
        assert clock.sleeping == 3
        clock.advance(4.9)
        clock.advance(0.1)
        await asyncio.sleep(0)
        assert (woken, clock.sleeping) == (["a", "b"], 1)
        clock.advance(4)
        await asyncio.gather(*tasks)

    asyncio.run(main())
    assert woken == ["a", "b", "c"]


def test_a_cancelled_sleeper_no_longer_sleeps() -> None:
    async def main() -> None:
        clock = ManualClock()
        task = asyncio.create_task(clock.sleep(1))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert clock.sleeping == 0
        clock.advance(2)
        await clock.sleep(0)

    asyncio.run(main())


@pytest.mark.parametrize("clock", [Clock(), ManualClock()])
async def test_waiting_ends_with_the_event_or_the_time(clock: Clock) -> None:
    event = asyncio.Event()

    async def wait_and_clear() -> None:
        await clock.wait(event, 60)
        event.clear()

    waiting = asyncio.create_task(wait_and_clear())
    await asyncio.sleep(0)
    event.set()
    await waiting
    for _ in range(3):
        await asyncio.sleep(0)
    assert not event.is_set(), "the timer must not set it afterwards"

    waiting = asyncio.create_task(clock.wait(event, 0.01))
    await asyncio.sleep(0)
    if isinstance(clock, ManualClock):
        clock.advance(0.01)
        assert clock.sleeping == 0
    await waiting
    assert event.is_set()


def test_all_times_advance_but_only_the_wall_clock_jumps() -> None:
    clock = ManualClock(at_ms=1000)
    started = clock.monotonic()
    clock.advance(1.5)
    assert (clock.now_ms(), clock.steady_ms(), clock.monotonic() - started) == (2500, 2500, 1.5)
    clock.jump(-1)
    assert (clock.now_ms(), clock.steady_ms(), clock.monotonic() - started) == (1500, 2500, 1.5)
