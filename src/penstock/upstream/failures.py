"""Say how an attempt failed: from a broken connection, an HTTP error, an error in a body, or a failed job."""

from contextlib import suppress
from dataclasses import replace

from penstock.net.errors import MaybeSent, NotSent
from penstock.providers.spec import Provider, Reply, Result
from penstock.upstream import replies
from penstock.upstream.candidate import Candidate
from penstock.upstream.errors import AttemptFailed, OutcomeUnknown
from penstock.upstream.replies import MALFORMED


def connection_failure(provider: Provider, problem: NotSent | MaybeSent) -> AttemptFailed | OutcomeUnknown:
    """The failure for a request that got no response."""
    if isinstance(problem, NotSent):
        return AttemptFailed(provider.slug, "unsent", f"{provider.name} could not be reached.", sent=False)
    ending = "did not respond in time" if problem.timeout else "closed the connection without a response"
    return OutcomeUnknown(provider.slug, f"{provider.name} {ending}.", timeout=problem.timeout)


def http_failure(candidate: Candidate, reply: Reply) -> AttemptFailed:
    """The failure for a response with the status of an error."""
    return AttemptFailed(
        candidate.provider.slug,
        replies.failure_kind(candidate.provider, reply),
        replies.failure_message(candidate.provider, reply, candidate.key),
        status=reply.status,
        retry_after_seconds=replies.retry_after_seconds(reply),
        words=replies.provider_message(candidate.provider, reply, candidate.key),
    )


def failure_in_body(candidate: Candidate, body: bytes) -> AttemptFailed:
    """The failure for an error that came with status 200. A code from 400 to 599 in it is used as the status."""
    reply = Reply(200, {}, body)
    with suppress(*MALFORMED):
        code = reply.json["error"]["code"]
        return http_failure(candidate, replace(reply, status=code if code in range(400, 600) else 500))
    return http_failure(candidate, replace(reply, status=500))


def job_failure(candidate: Candidate, result: Result) -> AttemptFailed:
    """The failure for a job that the provider reports as failed."""
    reason = replies.sanitize(result.message, candidate.key)
    message = reason or f"{candidate.provider.name} gave no reason for the failure."
    return AttemptFailed(candidate.provider.slug, result.failure_kind, message, cost_usd=result.cost_usd)
