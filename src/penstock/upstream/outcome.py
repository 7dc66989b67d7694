"""What to tell a caller whom nobody could serve."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.errors import (
    AllProvidersExhausted,
    ContentPolicyViolation,
    Problem,
    UpstreamError,
    UpstreamOutcomeUnknown,
    UpstreamTimeout,
)
from penstock.providers.spec import FailureKind
from penstock.upstream.client import AttemptFailed, OutcomeUnknown


@dataclass(frozen=True, slots=True)
class Failure:
    """An attempt that brought nothing, and whether somebody else may be asked."""

    kind: FailureKind
    message: str
    count: int = 1
    sent: bool = True
    unknown: bool = False
    timeout: bool = False
    retry_after_seconds: float | None = None

    @classmethod
    def of(cls, problem: AttemptFailed | OutcomeUnknown, count: int = 1) -> "Failure":
        if isinstance(problem, OutcomeUnknown):
            return cls("timeout", problem.message, count, unknown=True, timeout=problem.timeout)
        return cls(problem.kind, problem.message, count, problem.sent, retry_after_seconds=problem.retry_after_seconds)

    @property
    def may_go_on(self) -> bool:
        """Not when content was refused, nor when it may have been made already: that is paid for."""
        return not self.unknown and self.kind not in ("refused", "unfetched")


def error_for(misses: Sequence[Failure], *, forced: bool, is_video: bool = False) -> Problem:
    """The gravest miss decides; otherwise the last one speaks for all."""
    if refusal := next((miss for miss in misses if miss.kind == "refused"), None):
        return ContentPolicyViolation(refusal.message, should_retry=False)
    if unknown := next((miss for miss in misses if miss.unknown), None):
        return _unknown(unknown, is_video)
    if unfetched := next((miss for miss in misses if miss.kind == "unfetched"), None):
        return UpstreamError(unfetched.message, should_retry=False)
    last = misses[-1]
    # A client may repeat by itself only what certainly reached nobody, or was turned away at the door.
    again = all(not miss.sent or miss.kind == "busy" for miss in misses)
    headers = {}
    if all(miss.kind == "busy" for miss in misses):
        seconds = max(miss.retry_after_seconds or 1 for miss in misses)
        headers["retry-after"] = str(max(1, round(seconds)))
    if forced:
        return UpstreamError(last.message, headers=headers, should_retry=again)
    message = f"No provider could serve this request. The last said: {last.message}"
    return AllProvidersExhausted(message, headers=headers, should_retry=again)


def _unknown(miss: Failure, is_video: bool) -> Problem:
    if is_video:
        return UpstreamOutcomeUnknown(miss.message, should_retry=False)
    return (UpstreamTimeout if miss.timeout else UpstreamError)(miss.message, should_retry=False)
