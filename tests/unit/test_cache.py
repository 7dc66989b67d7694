"""Values are kept for their own time, and not too many of them."""

from penstock.cache import Cache, Recent
from tests.manual_clock import ManualClock


def test_each_value_is_kept_for_its_own_time() -> None:
    clock = ManualClock()
    cache: Cache[str, int] = Cache(clock.monotonic, 10)
    cache.put("a", 1, 5)
    cache.put("b", 2, 10)
    clock.advance(4.9)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, 2, None)
    clock.advance(0.1)
    assert (cache.get("a"), cache.get("b")) == (None, 2)
    cache.put("a", 3, 5)
    assert cache.get("a") == 3


def test_a_value_can_be_forgotten() -> None:
    cache: Cache[str, int] = Cache(ManualClock().monotonic, 10)
    cache.put("a", 1, 5)
    cache.discard("a")
    cache.discard("b")
    assert cache.get("a") is None


def test_the_value_that_was_put_in_first_is_dropped_when_there_are_too_many() -> None:
    cache: Cache[str, int] = Cache(ManualClock().monotonic, 2)
    cache.put("a", 1, 5)
    cache.put("b", 2, 5)
    cache.put("a", 3, 5)  # now `b` is the first
    cache.put("c", 4, 5)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (3, None, 4)


def test_no_recent_value_is_older_than_a_second() -> None:
    clock = ManualClock()
    recent: Recent[str, int] = Recent(clock.monotonic)
    assert recent.get("a") is None
    recent.put("a", 1)
    clock.advance(0.9)
    recent.put("b", 2)
    assert (recent.get("a"), recent.get("b")) == (1, 2)
    clock.advance(0.1)
    assert (recent.get("a"), recent.get("b")) == (None, None)
    recent.put("b", 3)
    assert (recent.get("a"), recent.get("b")) == (None, 3)
