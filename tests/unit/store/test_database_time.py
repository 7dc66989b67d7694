"""Processes take the times that they share from the database, whatever the clocks of their machines show."""

import pytest

from penstock.clock import Clock
from penstock.store.database_time import describe_difference, follow_database_time
from tests.gateway import OpenGateway, postgres_only, sqlite_only
from tests.manual_clock import SetClock


@postgres_only
@pytest.mark.parametrize("ahead", [90.0, -90.0, 86_400.0])
async def test_a_clock_that_was_set_follows_the_database(open_gateway: OpenGateway, ahead: float) -> None:
    async with open_gateway(works=False) as running:
        store = running.gateway.store
        clock = SetClock(ahead)
        await follow_database_time(store, clock)
        now = await store.one("get_time")
        assert now is not None
        assert abs(now["now_ms"] - clock.steady_ms()) < 60_000  # less than any of these clocks is ahead
        assert clock.steps == 1
        word = "ahead of" if ahead > 0 else "behind"
        found = describe_difference(store, clock) or ""
        assert found.startswith("The clock of this machine is ")
        assert found.endswith(f" s {word} the database's.")
        steady_ms = clock.steady_ms()
        await follow_database_time(store, clock)
        assert (clock.steps, clock.steady_ms() - steady_ms < 10_000) == (1, True)


@postgres_only
async def test_a_clock_that_is_right_is_left_alone(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        clock = Clock()
        await follow_database_time(running.gateway.store, clock)
        assert clock.steps == 0
        assert describe_difference(running.gateway.store, clock) is None


@sqlite_only
async def test_sqlite_has_no_clock_of_its_own(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        clock = SetClock(90)
        await follow_database_time(running.gateway.store, clock)
        assert (clock.steps, describe_difference(running.gateway.store, clock)) == (0, None)
