"""The circuit breaker: when a pause starts, how long it lasts, and what ends it."""

import pytest

from penstock.models.health import Health
from penstock.providers.spec import FailureKind
from tests.manual_clock import ManualClock

MODEL = ("lab", "brush")


def new_health() -> tuple[Health, ManualClock]:
    clock = ManualClock()
    return Health(clock), clock


def fail(health: Health, times: int, retry_after_seconds: float | None = None) -> None:
    for _ in range(times):
        health.record_failure(*MODEL, "broken", retry_after_seconds)


def test_a_model_that_was_never_called_is_healthy() -> None:
    health, _ = new_health()
    assert health.is_healthy(*MODEL)
    assert health.report() == []


def test_three_failures_in_a_row_start_a_pause() -> None:
    health, _ = new_health()
    fail(health, 2)
    assert health.is_healthy(*MODEL)
    fail(health, 1)
    assert not health.is_healthy(*MODEL)


def test_a_success_resets_the_count_of_failures() -> None:
    health, _ = new_health()
    fail(health, 2)
    health.record_success(*MODEL)
    fail(health, 2)
    assert health.is_healthy(*MODEL)


def test_a_provider_that_rejects_or_refuses_a_request_works() -> None:
    health, _ = new_health()
    kinds: tuple[FailureKind, ...] = ("rejected", "refused")
    for kind in kinds:
        fail(health, 2)
        health.record_failure(*MODEL, kind)
        fail(health, 2)
        assert health.is_healthy(*MODEL), kind
        health.record_success(*MODEL)
    (row,) = health.report()
    assert (row["successes"], row["rejected"], row["failures"]) == (2, 2, 8)


def test_models_of_one_provider_have_separate_records() -> None:
    health, _ = new_health()
    fail(health, 3)
    assert health.is_healthy("lab", "reel")
    assert health.is_healthy("other", "brush")


def pause_seconds(health: Health, clock: ManualClock) -> float:
    """How long from now until it counts as healthy."""
    passed = 0.0
    while not health.is_healthy(*MODEL):
        clock.advance(0.5)
        passed += 0.5
    return passed


def test_each_pause_is_twice_as_long_up_to_five_minutes() -> None:
    health, clock = new_health()
    fail(health, 3)
    pauses = []
    for _ in range(8):
        pauses.append(pause_seconds(health, clock))
        fail(health, 1)  # the first call after a pause fails again
    assert pauses == [10, 20, 40, 80, 160, 300, 300, 300]


def test_failures_during_a_pause_do_not_make_it_longer() -> None:
    """Calls that ran at the same time fail at the same time; that is one outage and not ten."""
    health, clock = new_health()
    fail(health, 10)
    assert pause_seconds(health, clock) == 10


def test_thousands_of_pauses_do_not_overflow() -> None:
    """A provider that is down for days is still tried last, and fails thousands of times."""
    health, clock = new_health()
    for _ in range(5000):
        fail(health, 1)
        clock.advance(301)
    assert health.is_healthy(*MODEL)


def test_a_success_ends_the_pause_and_its_growth() -> None:
    health, clock = new_health()
    fail(health, 3)
    pause_seconds(health, clock)
    fail(health, 1)
    health.record_success(*MODEL)
    assert health.is_healthy(*MODEL)
    fail(health, 3)
    assert pause_seconds(health, clock) == 10


@pytest.mark.parametrize(("asked", "seconds"), [(7.0, 7), (0.0, 0), (86_400.0, 300)])
def test_retry_after_sets_the_pause_up_to_five_minutes(asked: float, seconds: float) -> None:
    health, clock = new_health()
    fail(health, 1, retry_after_seconds=asked)
    assert pause_seconds(health, clock) == seconds


def test_a_short_retry_after_does_not_cut_a_pause_short() -> None:
    health, clock = new_health()
    fail(health, 3)
    fail(health, 1, retry_after_seconds=1.0)
    assert pause_seconds(health, clock) == 10


def test_the_number_of_records_is_limited() -> None:
    health, _ = new_health()
    for number in range(10_000):
        health.record_success("hub", f"acme/{number}")
        health.record_failure("hub", f"acme/{number}", "broken")
    assert len(health.records) == 4096
    assert [row["model"] for row in health.report() if row["model"] in ("acme/0", "acme/9999")] == ["acme/9999"]


def test_recently_called_models_keep_their_records() -> None:
    health, _ = new_health()
    fail(health, 3)
    for number in range(10_000):
        health.record_success("hub", f"acme/{number}")
        if number % 4000 == 0:
            fail(health, 1)
    assert not health.is_healthy(*MODEL)
    assert len(health.records) == 4096


def test_the_report_for_operators() -> None:
    health, clock = new_health()
    health.record_success("zoo", "zebra")
    fail(health, 3)
    clock.advance(4)
    report = health.report()
    histories = [row.pop("history") for row in report]
    assert [[each["problem"] for each in history] for history in histories] == [["broken"] * 3, [None]]  # type: ignore[attr-defined]
    assert report == [
        {
            "provider": "lab",
            "account": None, "model": "brush", "healthy": False, "successes": 0, "rejected": 0, "failures": 3,
            "last_problem": "broken", "recovers_in_seconds": 6.0,
        },
        {
            "provider": "zoo",
            "account": None, "model": "zebra", "healthy": True, "successes": 1, "rejected": 0, "failures": 0,
            "last_problem": None, "recovers_in_seconds": 0.0,
        },
    ]  # fmt: skip
