"""Choose the error for a request that no candidate could serve."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
from penstock.providers.spec import FailureKind
from penstock.upstream.errors import AttemptFailed, OutcomeUnknown

# What a provider says about a request with these statuses; with others it says nothing that the caller could mend.
_STATUS_ERRORS: Mapping[int, type[Problem]] = {
    400: InvalidRequest,
    404: ModelNotFound,
    413: InvalidRequest,
    422: UnprocessableRequest,
}
_PASSING_KINDS = frozenset({"unsent", "busy", "down"})


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt failed."""

    kind: FailureKind
    message: str
    status: int | None = None  # of the HTTP response, if that was the failure
    sent: bool = True
    unknown: bool = False  # the provider may have made the outputs
    timeout: bool = False
    retry_after_seconds: float | None = None
    accepted: bool = False  # the provider had accepted the job and failed it later
    words: str = ""  # the provider's own, where the message hides them from callers: for the log

    @classmethod
    def from_error(cls, problem: AttemptFailed | OutcomeUnknown) -> "Failure":
        if isinstance(problem, OutcomeUnknown):
            return cls("timeout", problem.message, unknown=True, timeout=problem.timeout)
        return cls(
            problem.kind,
            problem.message,
            status=problem.status,
            sent=problem.sent,
            retry_after_seconds=problem.retry_after_seconds,
            words=problem.words,
        )

    @property
    def may_pass(self) -> bool:
        """Whether the same request may be sent again later: the provider refused it unseen, because it was not
        reachable, busy or unavailable.
        """
        return self.kind in _PASSING_KINDS and not self.accepted

    @property
    def allows_failover(self) -> bool:
        """Whether another provider may be tried: not for refused content, nor if outputs may exist and cost money."""
        return not self.unknown and self.kind not in ("refused", "unfetched")


def error_for(failures: Sequence[Failure], *, forced: bool, is_only: bool = False, is_video: bool = False) -> Problem:
    """Choose one error for several failures: content refusal, unknown outcome, lost output, else the last failure.

    `forced`: the caller named the provider, so its own message is the whole error. `is_only`: there was no other
    candidate, so what it said about the request is said to the caller. A video fails later, with other codes.
    """
    if refusal := next((failure for failure in failures if failure.kind == "refused"), None):
        return ContentPolicyViolation(refusal.message, should_retry=False)
    if unknown := next((failure for failure in failures if failure.unknown), None):
        return _unknown_outcome(unknown, is_video)
    if unfetched := next((failure for failure in failures if failure.kind == "unfetched"), None):
        return UpstreamError(unfetched.message, should_retry=False)
    last = failures[-1]
    # Clients may retry automatically only if no provider started to work on the request.
    should_retry = all(not failure.sent or failure.kind == "busy" for failure in failures)
    headers = {}
    if all(failure.kind == "busy" for failure in failures):
        seconds = max(failure.retry_after_seconds or 1 for failure in failures)
        headers["retry-after"] = str(max(1, round(seconds)))
    if (forced or is_only) and not is_video and (own := _own_error(last)):
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


def _unknown_outcome(failure: Failure, is_video: bool) -> Problem:
    if is_video:
        return UpstreamOutcomeUnknown(failure.message, should_retry=False)
    return (UpstreamTimeout if failure.timeout else UpstreamError)(failure.message, should_retry=False)
