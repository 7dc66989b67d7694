"""What a caller is told depends on the gravest miss, and on whether asking again could cost twice."""

import pytest

from penstock.errors import (
    AllProvidersExhausted,
    ContentPolicyViolation,
    Problem,
    UpstreamError,
    UpstreamOutcomeUnknown,
    UpstreamTimeout,
)
from penstock.upstream.client import AttemptFailed, OutcomeUnknown
from penstock.upstream.outcome import Failure, error_for

UNREACHED = Failure("broken", "could not be reached", sent=False)
BUSY = Failure("busy", "too many", retry_after_seconds=7.4)
BROKEN = Failure("broken", "fell over")
REFUSED = Failure("refused", "will not draw that")
DROPPED = Failure("timeout", "broke off", unknown=True)
LATE = Failure("timeout", "took too long", unknown=True, timeout=True)


@pytest.mark.parametrize(
    ("misses", "forced", "is_video", "kind", "retry"),
    [
        ([UNREACHED], False, False, AllProvidersExhausted, True),
        ([UNREACHED, BUSY], False, False, AllProvidersExhausted, True),
        ([UNREACHED, BROKEN], False, False, AllProvidersExhausted, False),
        ([BROKEN], True, False, UpstreamError, False),
        ([BUSY], True, False, UpstreamError, True),
        ([BROKEN, REFUSED], False, False, ContentPolicyViolation, False),
        ([BROKEN, DROPPED], False, False, UpstreamError, False),
        ([LATE], False, False, UpstreamTimeout, False),
        ([LATE], False, True, UpstreamOutcomeUnknown, False),
        ([DROPPED], True, True, UpstreamOutcomeUnknown, False),
    ],
)
def test_verdict(misses: list[Failure], forced: bool, is_video: bool, kind: type[Problem], retry: bool) -> None:
    problem = error_for(misses, forced=forced, is_video=is_video)
    assert type(problem) is kind
    assert problem.should_retry is retry


def test_the_last_speaks_for_all() -> None:
    assert "fell over" in error_for([UNREACHED, BROKEN], forced=False).message


def test_busy_providers_say_when_to_come_back() -> None:
    assert error_for([BUSY], forced=False).headers == {"retry-after": "7"}
    assert error_for([BUSY, BROKEN], forced=False).headers == {}


def test_misses_know_where_they_come_from() -> None:
    failed = Failure.from_error(AttemptFailed("lab", "busy", "no", sent=True, retry_after_seconds=3), 2)
    assert (failed.kind, failed.count, failed.retry_after_seconds, failed.allows_failover) == ("busy", 2, 3, True)
    unknown = Failure.from_error(OutcomeUnknown("lab", "gone", timeout=True))
    assert (unknown.unknown, unknown.timeout, unknown.allows_failover) == (True, True, False)
    assert not REFUSED.allows_failover
