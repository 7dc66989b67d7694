"""Why an attempt at a provider failed: a broken connection, an HTTP error, an error in a body, or a failed job."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from penstock.net.errors import MaybeSent, NotSent
from penstock.providers.spec import FailureKind, Provider, Reply, Result
from penstock.upstream import replies
from penstock.upstream.account_limits import Wait
from penstock.upstream.candidate import Candidate
from penstock.upstream.replies import MALFORMED
from penstock.values import ZERO, Nanos

_PASSING_KINDS = frozenset({"unsent", "busy", "down"})


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt failed."""

    kind: FailureKind
    message: str
    status: int | None = None  # of the HTTP response, if that was the failure
    sent: bool = True
    unknown: bool = False  # the provider may have made the outputs, or still make them: do not send the request again
    timed_out: bool = False  # the outcome is unknown because no response came in time
    accepted: bool = False  # the provider had accepted the job and failed it later
    retry_after_seconds: float | None = None
    cost_usd: str | None = None  # what the provider reports that it bills nevertheless
    usage: Mapping[str, int | float] = field(default_factory=dict)  # or the quantities that it reports
    charged: Nanos = ZERO  # the part of it that the caller pays
    words: str = ""  # the provider's own, where the message hides them from callers: for the log

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


class AttemptFailed(Exception):
    """Raised where an attempt fails, or a call that belongs to it."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure

    @property
    def kind(self) -> FailureKind:
        """By which traces name the error."""
        return self.failure.kind


# -------------------------------------------------------------------------------------------------------- ways to fail


def unknown_outcome(message: str, *, timed_out: bool = False) -> Failure:
    """The failure for a request that was sent and got no usable response: the provider may be working on it."""
    return Failure("timeout", message, unknown=True, timed_out=timed_out)


def connection_failure(provider: Provider, problem: NotSent | MaybeSent) -> Failure:
    """The failure for a request that got no response."""
    if isinstance(problem, NotSent):
        return Failure("unsent", f"{provider.name} could not be reached.", sent=False)
    ending = "did not respond in time" if problem.timeout else "closed the connection without a response"
    return unknown_outcome(f"{provider.name} {ending}.", timed_out=problem.timeout)


def limit_of_operator(candidate: Candidate) -> Wait | None:
    """Why the limits that the operator has set let an account take no call now; what was learned is only a guess."""
    wait = None if candidate.account is None else candidate.account.wait
    return wait if wait and wait.is_set else None


def over_limit(candidate: Candidate, wait: Wait) -> Failure:
    """The failure of a candidate whose account takes no call now: nothing was sent."""
    message = f"The gateway's account at {candidate.provider.name} has reached its limits."
    return Failure("busy", message, sent=False, retry_after_seconds=wait.seconds)


def http_failure(candidate: Candidate, reply: Reply) -> Failure:
    """The failure for a response with the status of an error."""
    return Failure(
        replies.failure_kind(candidate.provider, reply),
        replies.failure_message(candidate.provider, reply, candidate.key),
        status=reply.status,
        retry_after_seconds=replies.retry_after_seconds(reply),
        words=replies.provider_message(candidate.provider, reply, candidate.key),
    )


def failure_in_body(candidate: Candidate, body: bytes | bytearray) -> Failure:
    """The failure for an error that came with status 200. A code from 400 to 599 in it is used as the status."""
    reply = Reply(200, {}, body)
    with suppress(*MALFORMED):
        code = reply.json["error"]["code"]
        return http_failure(candidate, replace(reply, status=code if code in range(400, 600) else 500))
    return http_failure(candidate, replace(reply, status=500))


def job_failure(candidate: Candidate, result: Result) -> Failure:
    """The failure for a job that the provider reports as failed, or as cancelled although nobody asked for it."""
    name = candidate.provider.name
    if result.status == "cancelled":
        return Failure("broken", f"{name} cancelled the job.", cost_usd=result.cost_usd, usage=result.usage)
    message = replies.sanitize(result.message, candidate.key) or f"{name} gave no reason for the failure."
    return Failure(result.failure_kind, message, cost_usd=result.cost_usd, usage=result.usage)
