"""Which calls are repeated."""

import pytest

from penstock.client.calls import Call
from penstock.client.failures import CallFailed, NotConnected, Refused
from penstock.client.retries import retry_pause

PAID = Call("POST", "/compat/v1/videos", {}, {"Idempotency-Key": "k"})


def refused(status: int, code: str = "", **headers: str) -> Refused:
    return Refused(status, code, "no", None, {name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.parametrize(
    ("failure", "is_repeated"),
    [
        (NotConnected("broke"), True),
        (refused(429), True),
        (refused(503), True),
        (refused(502, "UPSTREAM_ERROR", x_should_retry="false"), False),
        (refused(502, "ALL_PROVIDERS_EXHAUSTED", x_should_retry="true"), True),
        (refused(504, "UPSTREAM_TIMEOUT", x_should_retry="false"), True),  # it goes on, and the key finds it
        (refused(400), False),
        (refused(402), False),
        (CallFailed("other"), False),
    ],
)
def test_what_may_work_later_is_repeated(failure: CallFailed, is_repeated: bool) -> None:
    assert (retry_pause(PAID, failure, 1, 5) is not None) is is_repeated


def test_a_call_that_could_be_paid_twice_is_never_repeated() -> None:
    assert retry_pause(Call("POST", "/compat/v1/videos", {}), NotConnected("broke"), 1, 5) is None


def test_pauses_grow_up_to_a_limit_and_end() -> None:
    pauses = [retry_pause(PAID, refused(503), tries, 20) for tries in range(1, 22)]
    assert pauses[:3] == [0.5, 1.0, 2.0]
    assert (pauses[-2], pauses[-1]) == (30.0, None)


def test_the_pause_that_is_asked_for_is_kept_unless_it_is_very_long() -> None:
    assert retry_pause(PAID, refused(429, retry_after="7"), 1, 5) == 7.0
    assert retry_pause(PAID, refused(429, retry_after="86400"), 1, 5) == 60.0
    assert retry_pause(PAID, refused(429, retry_after="soon"), 1, 5) == 0.5
