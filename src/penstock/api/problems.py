"""Problems to responses: the envelope, and whether repeating the call is safe."""

import sys
import traceback
from collections.abc import AsyncIterator
from types import TracebackType

from penstock.errors import (
    ContentPolicyViolation,
    InsufficientBalance,
    InvalidRequest,
    PermissionDenied,
    Problem,
    RateLimited,
    RequestTimeout,
    StorageUnavailable,
)
from penstock.schema import Response

# Passing troubles: repeated by whoever gets them before the endpoint was reached, when nothing can have been sent.
_PASSING = (RateLimited, RequestTimeout, StorageUnavailable)
# Refusals of our own; a ContentPolicyViolation is a provider's word.
_REFUSALS = (InvalidRequest, InsufficientBalance, PermissionDenied, RateLimited)


def is_refusal(problem: Problem) -> bool:
    """Whether the gateway itself said no, before any provider was called; such a call is recorded as `rejected`."""
    if problem.recorded or isinstance(problem, ContentPolicyViolation):
        return False
    return isinstance(problem, _REFUSALS)


def should_retry(problem: Problem, *, reached: bool) -> bool:
    """Whether a generation may be repeated at no risk of paying twice.

    Whoever raised the problem knows best. Where it did not say, a limit of ours may be tried again, other passing
    troubles only if the endpoint was not reached: past that point something may have been sent.
    """
    if problem.should_retry is not None:
        return problem.should_retry
    if isinstance(problem, RateLimited):
        return not problem.recorded
    return isinstance(problem, _PASSING) and not reached


def answer(problem: Problem, *, generation: bool, reached: bool) -> Response:
    headers = dict(problem.headers)
    if generation:
        headers["x-should-retry"] = "true" if should_retry(problem, reached=reached) else "false"
    return Response(status=problem.status, json=problem.body(), headers=headers)


async def out_of_range(answer: Response) -> Response:
    """A range that a file cannot satisfy is found out by who serves it, but the answer is ours."""
    if answer.chunks is not None:
        await close(answer.chunks)
    kept = {name: value for name, value in answer.headers.items() if name in ("accept-ranges", "content-range")}
    return Response(status=416, json=InvalidRequest("The file is shorter than this Range.").body(), headers=kept)


async def close(chunks: AsyncIterator[bytes]) -> None:
    """Let go of what an unfinished stream holds."""
    if (finish := getattr(chunks, "aclose", None)) is not None:
        await finish()


def trail(problem: BaseException) -> list[str]:
    """Where an exception came from, for the log, without its message: that may quote what a caller wrote."""
    return [f"{type(problem).__name__}", *_frames(problem.__traceback__)]


def _frames(trace: TracebackType | None) -> list[str]:
    root = sys.prefix
    return [
        f"{frame.filename.removeprefix(root)}:{frame.lineno} {frame.name}"
        for frame in traceback.extract_tb(trace, limit=-12)
    ]
