"""A provider's health as its calls show it: when it is avoided, for how long, and how it comes back."""

import pytest

from penstock.clock import ManualClock
from penstock.upstream.health import Health

WHO = ("lab", "brush")


def health() -> tuple[Health, ManualClock]:
    clock = ManualClock()
    return Health(clock), clock


def fail(sick: Health, times: int, retry_after_seconds: float | None = None) -> None:
    for _ in range(times):
        sick.failed(*WHO, "broken", retry_after_seconds)


def test_strangers_are_well() -> None:
    sick, _ = health()
    assert sick.well(*WHO)
    assert sick.report() == []


def test_three_failures_in_a_row_make_unwell() -> None:
    sick, _ = health()
    fail(sick, 2)
    assert sick.well(*WHO)
    fail(sick, 1)
    assert not sick.well(*WHO)


def test_a_success_between_starts_the_count_anew() -> None:
    sick, _ = health()
    fail(sick, 2)
    sick.answered(*WHO)
    fail(sick, 2)
    assert sick.well(*WHO)


def test_models_of_one_provider_are_judged_apart() -> None:
    sick, _ = health()
    fail(sick, 3)
    assert sick.well("lab", "reel")
    assert sick.well("other", "brush")


def pause_seconds(sick: Health, clock: ManualClock) -> float:
    """How long from now until it counts as well."""
    passed = 0.0
    while not sick.well(*WHO):
        clock.advance(0.5)
        passed += 0.5
    return passed


def test_each_pause_is_twice_as_long_up_to_five_minutes() -> None:
    sick, clock = health()
    fail(sick, 3)
    pauses = []
    for _ in range(8):
        pauses.append(pause_seconds(sick, clock))
        fail(sick, 1)  # the first call after a pause fails again
    assert pauses == [10, 20, 40, 80, 160, 300, 300, 300]


def test_failures_during_a_pause_do_not_make_it_longer() -> None:
    """Calls that were under way together fail together; that is one outage and not ten."""
    sick, clock = health()
    fail(sick, 10)
    assert pause_seconds(sick, clock) == 10


def test_it_never_fails_too_often_to_count() -> None:
    """A provider that stays away for days is still asked as the last resort, and fails thousands of times."""
    sick, clock = health()
    for _ in range(5000):
        fail(sick, 1)
        clock.advance(301)
    assert sick.well(*WHO)


def test_a_success_ends_the_pause_and_its_growth() -> None:
    sick, clock = health()
    fail(sick, 3)
    pause_seconds(sick, clock)
    fail(sick, 1)
    sick.answered(*WHO)
    assert sick.well(*WHO)
    fail(sick, 3)
    assert pause_seconds(sick, clock) == 10


@pytest.mark.parametrize(("asked", "seconds"), [(7.0, 7), (0.0, 0), (86_400.0, 300)])
def test_a_provider_that_says_when_to_come_back_is_believed_within_reason(asked: float, seconds: float) -> None:
    sick, clock = health()
    fail(sick, 1, retry_after_seconds=asked)
    assert pause_seconds(sick, clock) == seconds


def test_a_short_retry_after_does_not_cut_a_pause_short() -> None:
    sick, clock = health()
    fail(sick, 3)
    fail(sick, 1, retry_after_seconds=1.0)
    assert pause_seconds(sick, clock) == 10


def test_memory_is_bounded_whatever_models_callers_invent() -> None:
    sick, _ = health()
    for number in range(10_000):
        sick.answered("hub", f"acme/{number}")
        sick.failed("hub", f"acme/{number}", "broken")
    assert len(sick.pulses) == 4096
    assert [one["model"] for one in sick.report() if one["model"] in ("acme/0", "acme/9999")] == ["acme/9999"]


def test_what_is_in_use_is_remembered_longer_than_what_was_called_once() -> None:
    sick, _ = health()
    fail(sick, 3)
    for number in range(10_000):
        sick.answered("hub", f"acme/{number}")
        if number % 4000 == 0:
            fail(sick, 1)
    assert not sick.well(*WHO)
    assert len(sick.pulses) == 4096


def test_report_for_operators() -> None:
    sick, clock = health()
    sick.answered("zoo", "zebra")
    fail(sick, 3)
    clock.advance(4)
    assert sick.report() == [
        {
            "provider": "lab", "model": "brush", "well": False, "good": 0, "bad": 3, "last_problem": "broken",
            "well_in_seconds": 6.0,
        },
        {
            "provider": "zoo", "model": "zebra", "well": True, "good": 1, "bad": 0, "last_problem": None,
            "well_in_seconds": 0.0,
        },
    ]  # fmt: skip
