"""Counts in a window of time start over when it ends, and do not fill the memory."""

import pytest

from penstock import window_counts
from penstock.window_counts import WindowCounts
from tests.manual_clock import ManualClock


def test_each_name_is_counted_until_the_window_ends() -> None:
    clock = ManualClock()
    hour = WindowCounts(clock, 3600)
    assert [hour.add(name) for name in ("fox", "fox", "owl")] == [1, 2, 1]
    clock.advance(3599)
    assert (hour.seconds_left, hour.add("fox")) == (1, 3)
    clock.advance(1)
    assert (hour.add("fox"), hour.seconds_left) == (1, 3600)


def test_counts_do_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_counts, "_MAX_NAMES", 10)
    minute = WindowCounts(ManualClock(), 60)
    for number in range(1000):
        minute.add(str(number))
    assert len(minute._counts) <= 10
