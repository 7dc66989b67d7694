"""The error for a request that no candidate could serve, and whether a client may retry."""

import pytest

from penstock.errors import (
    AllProvidersExhausted,
    ContentPolicyViolation,
    InvalidRequest,
    ModelNotFound,
    Problem,
    RateLimited,
    UnprocessableRequest,
    UpstreamError,
    UpstreamOutcomeUnknown,
    UpstreamTimeout,
)
from penstock.upstream.caller_error import caller_error
from penstock.upstream.failures import Failure

UNREACHABLE = Failure("broken", "could not be reached", sent=False)
BUSY = Failure("busy", "too many", retry_after_seconds=7.4)
BROKEN = Failure("broken", "fell over")
REFUSED = Failure("refused", "will not draw that")
DROPPED = Failure("timeout", "broke off", unknown=True)
LATE = Failure("timeout", "took too long", unknown=True, timed_out=True)


@pytest.mark.parametrize(
    ("failures", "forced", "is_job", "kind", "retry"),
    [
        ([UNREACHABLE], False, False, AllProvidersExhausted, True),
        ([UNREACHABLE, BUSY], False, False, AllProvidersExhausted, True),
        ([UNREACHABLE, BROKEN], False, False, AllProvidersExhausted, False),
        ([BROKEN], True, False, UpstreamError, False),
        ([BUSY], True, False, RateLimited, True),
        ([BUSY], True, True, UpstreamError, True),
        ([Failure("rejected", "no", status=404)], True, False, ModelNotFound, False),
        ([Failure("rejected", "no", status=422)], True, False, UnprocessableRequest, False),
        ([Failure("rejected", "no", status=400)], True, False, InvalidRequest, False),
        ([Failure("rejected", "no")], True, False, UpstreamError, False),
        ([Failure("rejected", "no", status=405)], True, False, UpstreamError, False),
        ([Failure("rejected", "no")], False, False, AllProvidersExhausted, False),
        ([BROKEN, REFUSED], False, False, ContentPolicyViolation, False),
        ([BROKEN, DROPPED], False, False, UpstreamError, False),
        ([LATE], False, False, UpstreamTimeout, False),
        ([LATE], False, True, UpstreamOutcomeUnknown, False),
        ([DROPPED], True, True, UpstreamOutcomeUnknown, False),
    ],
)
def test_the_error_for_several_failures(
    failures: list[Failure], forced: bool, is_job: bool, kind: type[Problem], retry: bool
) -> None:
    problem = caller_error(failures, forced=forced, is_job=is_job)
    assert type(problem) is kind
    assert problem.should_retry is retry


def test_the_message_is_that_of_the_last_failure() -> None:
    assert "fell over" in caller_error([UNREACHABLE, BROKEN], forced=False).message


def test_retry_after_if_all_providers_are_busy() -> None:
    assert caller_error([BUSY], forced=False).headers == {"retry-after": "7"}
    assert caller_error([BUSY, BROKEN], forced=False).headers == {}
