"""Leases of other processes are judged only where their owners had the time to renew them."""

import pytest

from penstock.store.renewals import Renewals
from tests.manual_clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def renewals(clock: ManualClock) -> Renewals:
    return Renewals(clock, lease_seconds=30, seconds_between=10)


def renew(clock: ManualClock, renewals: Renewals, *pauses: float) -> list[bool]:
    """Renew after each of these pauses; return whether the others had time, each time."""
    found = []
    for seconds in pauses:
        clock.advance(seconds)
        renewals.note_renewal()
        found.append(renewals.others_had_time)
    return found


def test_a_process_that_was_just_started_waits(clock: ManualClock, renewals: Renewals) -> None:
    assert not renewals.others_had_time
    assert renew(clock, renewals, 10, 10, 10) == [False, True, True]


def test_after_a_failure_two_renewals_are_waited_for(clock: ManualClock, renewals: Renewals) -> None:
    renew(clock, renewals, 10, 10)
    renewals.note_failure()
    assert not renewals.others_had_time
    assert renew(clock, renewals, 10, 10) == [False, True]


def test_a_renewal_that_took_long_is_as_bad_as_one_that_failed(clock: ManualClock, renewals: Renewals) -> None:
    """The store may hang instead of failing, and a machine may be suspended."""
    renew(clock, renewals, 10, 10)
    assert renew(clock, renewals, 20, 21, 10, 10) == [True, False, False, True]


def test_a_process_that_has_not_renewed_for_long_judges_nothing(clock: ManualClock, renewals: Renewals) -> None:
    renew(clock, renewals, 10, 10)
    clock.advance(21)
    assert not renewals.others_had_time


def test_after_the_clock_of_the_database_was_set_two_renewals_are_waited_for(
    clock: ManualClock, renewals: Renewals
) -> None:
    """Leases from before are in another time: perhaps all of them look expired."""
    renew(clock, renewals, 10, 10)
    clock.steps += 1
    assert not renewals.others_had_time
    assert renew(clock, renewals, 10, 10, 10) == [False, False, True]
