"""The gateway's own time is all of the time of a call but its waits for providers."""

import asyncio

from penstock.telemetry.call_report import open_report, provider_wait, report_result
from penstock.values import Nanos
from tests.manual_clock import ManualClock


def test_waits_are_not_the_gateways_own_time() -> None:
    clock = ManualClock()
    report = open_report(clock)
    clock.advance(0.25)
    with provider_wait():
        clock.advance(10)
    clock.advance(0.5)
    assert report.overhead_ms == 750
    with provider_wait():
        clock.advance(3)
        assert report.overhead_ms == 750  # also while it waits


async def test_waits_at_the_same_time_count_once() -> None:
    clock = ManualClock()
    report = open_report(clock)

    async def attempt(seconds: float) -> None:
        with provider_wait():
            await clock.sleep(seconds)

    attempts = [asyncio.create_task(attempt(seconds)) for seconds in (2, 5, 3)]
    for _ in range(6):
        await asyncio.sleep(0)
        clock.advance(1)
    await asyncio.gather(*attempts)
    assert report.overhead_ms == 1000


async def test_a_job_reports_to_the_call_that_started_it_and_to_no_other() -> None:
    first = open_report(ManualClock())

    async def job() -> None:
        report_result("lab", Nanos(7))

    started = asyncio.create_task(job())
    second = open_report(ManualClock())
    await started
    assert (first.provider, first.cost) == ("lab", 7)
    assert (second.provider, second.cost) == (None, None)
