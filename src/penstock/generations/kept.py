"""Run a call whose outputs are kept: its caller waits for the end of the job, or comes back for it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from penstock.accounts.idempotency import other_call
from penstock.errors import InvalidRequest, Problem
from penstock.gateway import Gateway
from penstock.generation_jobs.mailbox import Mailbox
from penstock.generation_jobs.rows import GenerationRow
from penstock.generation_jobs.run import start_generation
from penstock.generations import sounds, validate
from penstock.generations.accept import accept
from penstock.generations.plan import PlannedCall
from penstock.generations.repeats import finished_row
from penstock.generations.retrieve import unfinished_problem
from penstock.interrupts import ProcessStopped
from penstock.recordings.replay_headers import ReplayOptions, no_match
from penstock.schema import Call, Response

_ASYNC = "respond-async"
_FOR_FILES = ("media_retention", "webhook_url", "deliver_to", "deliver_required")


def is_async(call: Call) -> bool:
    """Whether the caller wants to come back for the result."""
    return _ASYNC in call.headers.get("prefer", "")


def asks_for_file(call: Call, fields: Mapping[str, Any]) -> bool:
    """Whether a call, by its header or by fields that are about files, asks for a result that is kept."""
    return is_async(call) or any(fields.get(name) is not None for name in _FOR_FILES)


def kept_replay(options: ReplayOptions, what: str) -> Literal["live", "mocked"]:
    """How a call whose result is kept is answered. Raises InvalidRequest for a mode that would record, and
    RecordingNotFound where a recording is required: only what is passed on has recordings.
    """
    if options.records:
        message = f"{what} that is kept is not recorded: use another mode of `X-Service-Replay`, such as `mock`."
        raise InvalidRequest(message, param="X-Service-Replay")
    if options.mode == "replay-or-error":
        raise no_match()
    return "mocked" if options.mode.endswith("mock") else "live"


class KeptResult(NamedTuple):
    """How the result of such a call is returned to a caller that waits."""

    task: str
    respond: Callable[[Gateway, Call, GenerationRow], Awaitable[Response]]


async def keep(gateway: Gateway, call: Call, planned: PlannedCall, kept: KeptResult) -> Response:
    """Accept a call whose result is kept, and respond with the job, or with the result when it is whole."""
    accepted = await accept(gateway, call, planned, is_awaited=not is_async(call))
    if accepted.is_repeated:
        return await repeated(gateway, call, accepted.row, planned.validated, kept)
    assert accepted.lease is not None, "the process that accepts the call runs its job"
    mailbox = Mailbox()
    running = start_generation(gateway, accepted.lease, accepted.new, mailbox)
    if is_async(call):
        return sounds.created(gateway, accepted.row)
    try:
        with gateway.interrupts.allowed(call.line):  # of the wait only: the generation goes on
            is_finished = await running.wait(gateway.settings.image_wait_seconds)
    except ProcessStopped:
        is_finished = False
    if not is_finished:
        raise unfinished_problem(call.id, kept.task)
    if isinstance(mailbox.end, Problem):
        raise mailbox.take_problem()
    return await kept.respond(gateway, call, accepted.row)


async def repeated(
    gateway: Gateway, call: Call, first: GenerationRow, validated: validate.ValidatedCall, kept: KeptResult
) -> Response:
    """The response to a call whose idempotency key was used before: that of the first call."""
    if first.body_digest != validate.canonical_digest(validated):
        raise other_call(first.id)
    headers = {"idempotent-replayed": "true", "x-request-id": first.id, "x-service-request-id": first.id}
    if is_async(call):
        return sounds.created(gateway, first, headers)
    await finished_row(gateway, call, first)
    return with_headers(await kept.respond(gateway, call, first), headers)


def with_headers(response: Response, headers: Mapping[str, str]) -> Response:
    """The response with these headers, too."""
    return msgspec.structs.replace(response, headers={**response.headers, **headers})
