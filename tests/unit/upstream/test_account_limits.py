"""How much an account takes: set limits, what refusals and headers teach, and what other processes have learned."""

from penstock.upstream.account_limits import AccountLimits, AccountUse, Wait, span_seconds
from tests.manual_clock import ManualClock


def new_limits() -> tuple[AccountLimits, ManualClock]:
    clock = ManualClock()
    return AccountLimits(clock), clock


def start(limits: AccountLimits, count: int) -> None:
    for _ in range(count):
        limits.begin()
        limits.end()


def test_an_account_that_nobody_limits_takes_any_number() -> None:
    limits, _ = new_limits()
    start(limits, 1000)
    assert limits.wait(None, None) is None


def test_set_limits_are_kept() -> None:
    limits, clock = new_limits()
    limits.begin()
    assert limits.wait(2, None) is None
    limits.begin()
    assert limits.wait(2, None) == Wait(1.0, is_set=True)
    limits.end()
    assert limits.wait(2, None) is None
    limits.end()
    taken = 0
    for _ in range(600):
        clock.advance(1)
        while limits.wait(None, 60) is None:
            start(limits, 1)
            taken += 1
    assert 595 <= taken <= 610


def test_a_refusal_pauses_and_teaches_a_rate() -> None:
    limits, clock = new_limits()
    start(limits, 101)
    limits.refuse(7.0, is_concurrency=False)
    assert limits.rate == 80
    wait = limits.wait(None, None)
    assert wait is not None
    assert (wait.seconds, wait.is_set) == (7.0, False)
    clock.advance(61)
    assert limits.wait(None, None) is None
    assert round(limits.rate or 0, 2) == 84
    limits.forget()
    assert limits.rate is None


def test_a_single_refused_call_says_nothing_about_the_rate() -> None:
    limits, clock = new_limits()
    start(limits, 1)
    limits.refuse(None, is_concurrency=False)
    assert limits.rate is None
    assert limits.wait(None, None) == Wait(5.0)
    clock.advance(5)
    assert limits.wait(None, None) is None


def test_too_many_at_a_time_teach_how_many_fit() -> None:
    limits, clock = new_limits()
    for _ in range(4):
        limits.begin()
    limits.refuse(None, is_concurrency=True)
    limits.end()
    assert limits.concurrent == 3
    assert limits.wait(None, None) == Wait(1.0)
    clock.advance(60)
    assert limits.wait(None, None) is None, "it grows again"
    assert limits.free_share(None) == 0.25


def test_what_is_learned_comes_close_to_the_vendors_limit() -> None:
    """A vendor that takes 120 calls in each of its minutes, and callers who want more."""
    limits, clock = new_limits()
    accepted: list[int] = []
    for second in range(13 * 60):
        if second % 60 == 0:
            accepted.append(0)
        for _ in range(5):
            if limits.wait(None, None) is not None:
                break
            limits.begin()
            if accepted[-1] < 120:
                accepted[-1] += 1
            else:
                limits.refuse(60 - second % 60, is_concurrency=False)
            limits.end()
        clock.advance(1)
    settled = accepted[3:]
    assert 0.9 * 120 <= sum(settled) / len(settled) <= 120, accepted
    assert min(settled) >= 0.75 * 120, accepted


def test_the_vendors_headers_win() -> None:
    limits, clock = new_limits()
    start(limits, 101)
    limits.refuse(1.0, is_concurrency=False)
    names = ("limit", "remaining", "reset")

    def headers(*values: str) -> dict[str, str]:
        return {f"x-ratelimit-{name}-requests": value for name, value in zip(names, values, strict=True)}

    limits.read_headers(headers("600", "599", "100ms"))
    assert limits.rate == 600
    limits.read_headers(headers("600", "0", "1m30s"))
    clock.advance(80)
    wait = limits.wait(None, None)
    assert wait is not None
    assert wait.seconds == 10
    for nonsense in (("x", "y", "z"), ("", "", ""), ("1" * 5000, "1", "never")):
        limits.read_headers(headers(*nonsense))
    assert limits.rate is not None
    limits.read_headers({})


def test_spans_of_time_are_read_as_vendors_write_them() -> None:
    assert [span_seconds(text) for text in ("1s", "6m0s", "12ms", "30", "1h2m")] == [1, 360, 0.012, 30, 3720]
    assert [span_seconds(text) for text in ("", "soon", "1x", "-5s")] == [None] * 4


def test_processes_share_what_they_learn_and_use() -> None:
    limits, clock = new_limits()
    limits.begin()
    limits.follow([AccountUse(open=2, starts=9, refused_at_ms=clock.steady_ms() + 1, rate=50.0, concurrent=3)])
    assert (limits.rate, limits.concurrent) == (50.0, 3)
    assert limits.wait(None, None) == Wait(max(1.0, 60 / 41))
    clock.advance(180)
    limits.wait(None, None)
    grown = limits.rate
    limits.follow([AccountUse(refused_at_ms=1, rate=50.0)])
    assert limits.rate == grown, "what was learned before is not taken over again"
    limits.follow([AccountUse(pause_seconds=40.0)])
    assert limits.wait(None, None) == Wait(40.0)
    use = limits.use()
    assert (use.open, use.pause_seconds) == (1, 40.0)
