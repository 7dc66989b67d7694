"""Ask the candidates of a chat, a speech or a transcript in order until one responds; settle the call if none does."""

from collections.abc import Awaitable, Callable

import msgspec

from penstock.chat.reserved import ReservedCall
from penstock.errors import Cancelled, Problem, Unavailable
from penstock.interrupts import CallerGone
from penstock.models.routing import Route
from penstock.schema import Response
from penstock.upstream.caller_error import caller_error
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed, Failure, limit_of_operator, over_limit

Ask = Callable[[Candidate], Awaitable[Response]]


async def first_response(reserved: ReservedCall, route: Route, ask: Ask) -> Response:
    """Return the response of the first candidate that gives one; raise the problem if none does.

    `ask` settles the call if it responds, or raises CallerGone or a problem that it has recorded, because what that
    costs depends on the candidate.
    """
    try:
        response = await _ask_in_order(reserved, route, ask)
    except CallerGone:
        raise
    except Problem as problem:
        if problem.recorded:
            await reserved.free_place()
            raise
        status = "cancelled" if isinstance(problem, Unavailable) else "upstream_failure"
        reserved.settle(status, problem=problem, response_bytes=len(msgspec.json.encode(problem.body())))
        await reserved.free_place()
        raise
    except BaseException:
        reserved.settle("cancelled", problem=Cancelled("The call was cancelled."))
        raise
    if response.chunks is None:
        await reserved.free_place()
    return response


async def _ask_in_order(reserved: ReservedCall, route: Route, ask: Ask) -> Response:
    failures: list[Failure] = []
    for candidate in route.candidates:
        if wait := limit_of_operator(candidate):
            failures.append(over_limit(candidate, wait))
            continue
        try:
            reserved.begin_use(candidate)
            response = await ask(candidate)
        except AttemptFailed as problem:
            failures.append(problem.failure)
            reserved.record_failure(candidate, problem.failure)
            if not problem.failure.allows_failover:
                break
        else:
            if candidate.is_rated:
                reserved.gateway.health.record_success(*candidate.health_key)
                reserved.gateway.vendor_accounts.note_success(candidate)
            return response
    raise caller_error(failures, forced=route.forced, is_only=len(route.candidates) == 1)
