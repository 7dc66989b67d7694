"""Which fault of a call happens at the moment."""

from penstock.upstream.drill import Drill, Fault
from tests.manual_clock import ManualClock


def test_a_fault_ends_so_long_after_the_call_was_accepted() -> None:
    clock = ManualClock()
    down, slow = Fault("fal", "status", 503, for_ms=60_000), Fault("fal", "slow", 4, "x")
    drill = Drill((down, slow), clock, clock.now_ms())
    clock.advance(59.9)
    assert (drill.current, drill.slowness) == (down, None)
    clock.advance(0.1)
    assert (drill.current, drill.slowness) == (slow, slow)
    assert Drill((down,), clock, clock.now_ms() - 60_000).current is None


def test_a_slow_provider_takes_some_times_or_seconds_longer() -> None:
    assert Fault("fal", "slow", 4, "x").whole_seconds(2.0) == 8.0
    assert Fault("fal", "slow", 3, "s").whole_seconds(2.0) == 5.0
