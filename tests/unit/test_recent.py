"""Values are kept for a second and not longer."""

from penstock.recent import Recent


def test_no_value_is_older_than_a_second() -> None:
    now = 100.0
    recent: Recent[str, int] = Recent(lambda: now)
    assert recent.get("a") is None
    recent.put("a", 1)
    now = 100.9
    recent.put("b", 2)
    assert (recent.get("a"), recent.get("b")) == (1, 2)
    now = 101.0
    assert (recent.get("a"), recent.get("b")) == (None, None)
    recent.put("b", 3)
    assert (recent.get("a"), recent.get("b")) == (None, 3)
