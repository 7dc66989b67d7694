"""The error for a request that no candidate could serve, and whether a client may retry."""

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

UNREACHABLE = Failure("broken", "could not be reached", sent=False)
BUSY = Failure("busy", "too many", retry_after_seconds=7.4)
BROKEN = Failure("broken", "fell over")
REFUSED = Failure("refused", "will not draw that")
DROPPED = Failure("timeout", "broke off", unknown=True)
LATE = Failure("timeout", "took too long", unknown=True, timeout=True)


@pytest.mark.parametrize(
    ("failures", "forced", "is_video", "kind", "retry"),
    [
        ([UNREACHABLE], False, False, AllProvidersExhausted, True),
        ([UNREACHABLE, BUSY], False, False, AllProvidersExhausted, True),
        ([UNREACHABLE, BROKEN], False, False, AllProvidersExhausted, False),
        ([BROKEN], True, False, UpstreamError, False),
        ([BUSY], True, False, UpstreamError, True),
        ([BROKEN, REFUSED], False, False, ContentPolicyViolation, False),
        ([BROKEN, DROPPED], False, False, UpstreamError, False),
        ([LATE], False, False, UpstreamTimeout, False),
        ([LATE], False, True, UpstreamOutcomeUnknown, False),
        ([DROPPED], True, True, UpstreamOutcomeUnknown, False),
    ],
)
def test_the_error_for_several_failures(
    failures: list[Failure], forced: bool, is_video: bool, kind: type[Problem], retry: bool
) -> None:
    problem = error_for(failures, forced=forced, is_video=is_video)
    assert type(problem) is kind
    assert problem.should_retry is retry


def test_the_message_is_that_of_the_last_failure() -> None:
    assert "fell over" in error_for([UNREACHABLE, BROKEN], forced=False).message


def test_retry_after_if_all_providers_are_busy() -> None:
    assert error_for([BUSY], forced=False).headers == {"retry-after": "7"}
    assert error_for([BUSY, BROKEN], forced=False).headers == {}


def test_failures_are_made_from_errors() -> None:
    failed = Failure.from_error(AttemptFailed("lab", "busy", "no", sent=True, retry_after_seconds=3), 2)
    assert (failed.kind, failed.count, failed.retry_after_seconds, failed.allows_failover) == ("busy", 2, 3, True)
    unknown = Failure.from_error(OutcomeUnknown("lab", "gone", timeout=True))
    assert (unknown.unknown, unknown.timeout, unknown.allows_failover) == (True, True, False)
    assert not REFUSED.allows_failover
