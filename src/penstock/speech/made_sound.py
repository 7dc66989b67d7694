"""Effects and music that are asked for as speech: clients that know only this endpoint get the sound that was made."""

from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.accounts.idempotency import other_call
from penstock.errors import InvalidRequest, quoted
from penstock.gateway import Gateway
from penstock.generation_jobs.rows import get_generation
from penstock.generations import endpoints, sounds
from penstock.generations.kept import is_async, with_headers
from penstock.generations.retrieve import unfinished_problem
from penstock.schema import Call, Response
from penstock.sound.formats import FILE_FORMATS
from penstock.speech.kept import kept_result

_TASK = "sound"
_RENAMED = {"input": "prompt", "response_format": "output_format"}
_IGNORED = ("voice", "speed", "instructions", "sample_rate", "stream_format")  # of speech only
_REFUSED = {
    "prompt": "`prompt` is not a field of this call: the sound is described in `input`.",
    "output_format": "`output_format` is not a field of this call; it is `response_format` here.",
    "reference_audio": "`reference_audio` must be left out: effects and music imitate no voice.",
}
_NOTHING = (None, "audio")


def is_sound(gateway: Gateway, body: Any) -> bool:
    """Whether the model of a call makes effects or music, and does not speak."""
    model = body.get("model") if isinstance(body, dict) else None
    tasks = {candidate.model.op.task for candidate in gateway.catalog.serving(model)} if isinstance(model, str) else ()
    return _TASK in tasks and "speech" not in tasks


async def make_sound(gateway: Gateway, call: Call) -> Response:
    """Have a sound made whose description is the text, and return its file when it is whole: it is a generation like
    any other of its kind. Raises the Problem of one that failed, and InvalidRequest.
    """
    asked = msgspec.structs.replace(call, json=_fields(call.json))
    try:
        begun = await endpoints.start_sound(gateway, asked)
    except InvalidRequest as problem:
        raise _in_words_of_speech(problem) from None
    if "idempotency-mismatch" in begun.headers:
        raise other_call(begun.json["id"])
    if call.dry_run or is_async(call) or begun.status != 202:
        return begun
    await sounds.waited(gateway, call, begun, int(gateway.settings.image_wait_seconds))
    row = await get_generation(gateway.store, begun.json["id"], call.caller.org_id)
    if row is None or row.status not in ("completed", "failed"):
        raise unfinished_problem(begun.json["id"], _TASK)
    return with_headers(await kept_result(gateway, call, row), _headers_of_the_job(begun.headers))


def _headers_of_the_job(headers: Mapping[str, str]) -> dict[str, str]:
    """Those that say that the sound was recorded, or made for an earlier call with the same idempotency key."""
    is_repeated = "idempotent-replayed" in headers
    names = ("idempotent-replayed", "x-request-id", "x-service-request-id") if is_repeated else ()
    return {name: value for name, value in headers.items() if name in names or name.startswith("x-service-replay")}


def _fields(body: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a sound. Raises InvalidRequest for those that would change the result and cannot be had."""
    for name, message in _REFUSED.items():
        if body.get(name) is not None:
            raise InvalidRequest(message, param=name)
    if body.get("stream_format") not in _NOTHING:
        message = "`stream_format` must be `audio` for effects and music: the sound comes as one file."
        raise InvalidRequest(message, param="stream_format")
    wanted = body.get("response_format")
    if wanted is not None and wanted not in FILE_FORMATS:
        message = f"`response_format` of effects and music must be one of {quoted(FILE_FORMATS)}."
        raise InvalidRequest(message, param="response_format")
    if body.get("n", 1) != 1:
        raise InvalidRequest("`n` must be 1: the response is one file.", param="n")
    return {_RENAMED.get(name, name): value for name, value in body.items() if name not in _IGNORED}


def _in_words_of_speech(problem: InvalidRequest) -> InvalidRequest:
    """The refusal, with the names of the fields that the caller wrote."""
    names = {after: before for before, after in _RENAMED.items()}
    if problem.param not in names:
        return problem
    name = names[problem.param]
    return InvalidRequest(problem.message.replace(f"`{problem.param}`", f"`{name}`"), param=name)
