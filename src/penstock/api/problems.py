"""Turn problems into error responses, and decide whether repeating the call is safe."""

import sys
import traceback
from collections.abc import AsyncIterator
from types import TracebackType

from penstock.errors import (
    CallRefused,
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

# Temporary problems. A call may be repeated if they occurred before its endpoint was reached: nothing was sent then.
_TEMPORARY = (RateLimited, RequestTimeout, StorageUnavailable)
# Refusals by the gateway itself; another ContentPolicyViolation comes from a provider, or is about an output.
_REFUSALS = (InvalidRequest, InsufficientBalance, PermissionDenied, RateLimited)


def is_refusal(problem: Problem) -> bool:
    """Return True if the gateway refused the call before any provider was called; it is recorded as `rejected`."""
    if problem.recorded:
        return False
    if isinstance(problem, ContentPolicyViolation):
        return isinstance(problem, CallRefused)
    return isinstance(problem, _REFUSALS)


def should_retry(problem: Problem, *, reached: bool) -> bool:
    """Return whether a generation may be repeated without the risk of paying twice.

    A problem that has `should_retry` set decides for itself. Otherwise a call over a limit may be repeated, and one
    with another temporary problem only if its endpoint was not reached: after that, something may have been sent.
    """
    if problem.should_retry is not None:
        return problem.should_retry
    if isinstance(problem, RateLimited):
        return not problem.recorded
    return isinstance(problem, _TEMPORARY) and not reached


def problem_response(problem: Problem, *, generation: bool, reached: bool) -> Response:
    headers = dict(problem.headers)
    if generation:
        headers["x-should-retry"] = "true" if should_retry(problem, reached=reached) else "false"
    return Response(status=problem.status, json=problem.body(), headers=headers)


async def range_not_satisfiable(response: Response) -> Response:
    """Replace the body of a 416 response by an error, and keep the headers about ranges."""
    if response.chunks is not None:
        await close_stream(response.chunks)
    headers = {name: value for name, value in response.headers.items() if name in ("accept-ranges", "content-range")}
    message = "The Range begins after the end of the file."
    return Response(status=416, json=InvalidRequest(message).body(), headers=headers)


async def close_stream(chunks: AsyncIterator[bytes]) -> None:
    """Release the resources of a stream that was not read to its end."""
    if (finish := getattr(chunks, "aclose", None)) is not None:
        await finish()


def trail(problem: BaseException) -> list[str]:
    """Return where an exception was raised, for the log; without its message, which may contain what a caller sent."""
    return [f"{type(problem).__name__}", *_frames(problem.__traceback__)]


def _frames(trace: TracebackType | None) -> list[str]:
    root = sys.prefix
    return [
        f"{frame.filename.removeprefix(root)}:{frame.lineno} {frame.name}"
        for frame in traceback.extract_tb(trace, limit=-12)
    ]
