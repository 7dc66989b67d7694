"""Choose the error that the caller gets when no candidate could serve the request."""

from collections.abc import Mapping, Sequence

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
from penstock.upstream.failures import Failure

# What a provider says about a request with these statuses; with others it says nothing that the caller could mend.
_STATUS_ERRORS: Mapping[int, type[Problem]] = {
    400: InvalidRequest,
    404: ModelNotFound,
    413: InvalidRequest,
    422: UnprocessableRequest,
}


def caller_error(failures: Sequence[Failure], *, forced: bool, is_only: bool = False, is_job: bool = False) -> Problem:
    """Choose one error for several failures: content refusal, unknown outcome, lost output, else the last failure.

    `forced`: the caller named the provider, so its own message is the whole error. `is_only`: there was no other
    candidate, so what it said about the request is said to the caller. A job fails later, with other codes.
    """
    if refusal := next((failure for failure in failures if failure.kind == "refused"), None):
        return ContentPolicyViolation(refusal.message, should_retry=False)
    if unknown := next((failure for failure in failures if failure.unknown), None):
        return _unknown_outcome(unknown, is_job)
    if unfetched := next((failure for failure in failures if failure.kind == "unfetched"), None):
        return UpstreamError(unfetched.message, should_retry=False)
    last = failures[-1]
    # Clients may retry automatically only if no provider started to work on the request.
    should_retry = all(not failure.sent or failure.kind == "busy" for failure in failures)
    headers = {}
    if all(failure.kind == "busy" for failure in failures):
        seconds = max(failure.retry_after_seconds or 1 for failure in failures)
        headers["retry-after"] = str(max(1, round(seconds)))
    if all(failure.kind == "busy" and not failure.sent for failure in failures):  # limits of our own accounts
        return RateLimited(last.message, headers=headers, should_retry=True)
    if (forced or is_only) and not is_job and (own := _own_error(last)):
        return own(last.message, headers=headers, should_retry=should_retry)
    if forced:
        return UpstreamError(last.message, headers=headers, should_retry=should_retry)
    message = f"No provider could serve this request. The last error was: {last.message}"
    return AllProvidersExhausted(message, headers=headers, should_retry=should_retry)


def _own_error(failure: Failure) -> type[Problem] | None:
    """The error for what the only provider said about the request: that it is at fault, or comes too early."""
    if failure.kind == "busy":
        return RateLimited
    if failure.kind != "rejected" or failure.status is None:
        return None
    # A provider's table says of some errors of the server that the request is to blame.
    return InvalidRequest if failure.status >= 500 else _STATUS_ERRORS.get(failure.status)


def _unknown_outcome(failure: Failure, is_job: bool) -> Problem:
    if is_job:
        return UpstreamOutcomeUnknown(failure.message, should_retry=False)
    return (UpstreamTimeout if failure.timed_out else UpstreamError)(failure.message, should_retry=False)
