"""Speech whose sound is kept: a job makes the file, and the caller waits for it or comes back."""

from collections.abc import Mapping, Sequence

import msgspec

from penstock.errors import InvalidRequest, Problem, UnprocessableRequest
from penstock.gateway import Gateway
from penstock.generation_jobs.mailbox import Mailbox
from penstock.generation_jobs.rows import GenerationRow
from penstock.generation_jobs.run import start_generation
from penstock.generations import respond, sounds, validate
from penstock.generations.accept import accept
from penstock.generations.plan import PlannedCall, drilled_route, live_plan, with_delivery
from penstock.generations.repeats import finished_row
from penstock.generations.retrieve import unfinished_problem
from penstock.interrupts import ProcessStopped
from penstock.models.routing import Choice
from penstock.schema import Call, Response
from penstock.speech.request import STREAMED_LENGTH_MAX, SpeechRequest
from penstock.values import Nanos

_ASYNC = "respond-async"
_FORMS = ("url", "b64_json")
_FOR_FILES = ("media_retention", "webhook_url", "idempotency_key", "deliver_to", "deliver_required")
_PROVENANCE = "Content Credentials are not written into sound, so they cannot be required of it."


def is_async(call: Call) -> bool:
    """Whether the caller wants to come back for the sound."""
    return _ASYNC in call.headers.get("prefer", "")


def wants_json(call: Call) -> bool:
    """Whether the caller accepts JSON and nothing else. Clients that accept anything get the sound."""
    types = {kind.partition(";")[0].strip().lower() for kind in call.headers.get("accept", "").split(",")}
    return types == {"application/json"}


def read_kept(gateway: Gateway, call: Call, request: SpeechRequest) -> validate.ValidatedCall | None:
    """What a call says about the file that it asks for; None if the sound is only passed on.

    A file is asked for by a response in JSON, by `Prefer: respond-async`, and by the fields that are about files.
    Raises InvalidRequest.
    """
    is_job = is_async(call)
    if len(request.text) > STREAMED_LENGTH_MAX and not (is_job or call.dry_run):
        raise InvalidRequest(
            f"`input` may have at most {STREAMED_LENGTH_MAX} characters while the caller waits; send longer texts with "
            "the header `Prefer: respond-async`.",
            param="input",
        )
    named = any(call.json.get(name) is not None for name in _FOR_FILES) or "idempotency-key" in call.headers
    if not (is_job or named or wants_json(call)):
        return None
    if request.in_events:
        raise InvalidRequest("`stream_format` must be `audio` where the sound is kept.", param="stream_format")
    if call.query.get("data", _FORMS[0]) not in _FORMS:
        raise InvalidRequest("`data` must be `url` or `b64_json`.", param="data")
    validated = validate.speech(call, gateway.settings, call.json, is_job=is_job)
    policy = validated.request.provenance
    if policy is not None and policy.required:
        raise InvalidRequest(_PROVENANCE, param="provenance")
    return with_delivery(gateway, call.caller.org_id, validated)


async def keep_speech(
    gateway: Gateway, call: Call, validated: validate.ValidatedCall, choice: Choice, holds: Sequence[Nanos]
) -> Response:
    """Accept a call whose sound is kept, and respond with the job, or with the sound when it is whole.

    `holds` are the most that each candidate may cost.
    """
    route = choice.route
    labels = await gateway.label_values.limited(call.caller.org_id, validated.request.labels)
    request = msgspec.structs.replace(validated.request, labels=labels)
    candidates = drilled_route(gateway, call, request, route).candidates
    planned = PlannedCall(validated, request, live_plan(route, holds), candidates, choice=choice)
    accepted = await accept(gateway, call, planned, is_awaited=not is_async(call))
    if accepted.is_repeated:
        return await _repeated(gateway, call, accepted.row, validate.canonical_digest(validated))
    assert accepted.lease is not None, "the process that accepts speech makes it"
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
        raise unfinished_problem(call.id, "speech")
    if isinstance(mailbox.end, Problem):
        raise mailbox.take_problem()
    return await _result(gateway, call, accepted.row)


async def _repeated(gateway: Gateway, call: Call, first: GenerationRow, digest: bytes) -> Response:
    """The response to a call whose idempotency key was used before: that of the first call."""
    if first.body_digest != digest:
        message = f"The idempotency key was used for a call that asked for something else, {first.id}."
        raise UnprocessableRequest(message, param="idempotency_key")
    headers = {"idempotent-replayed": "true", "x-request-id": first.id, "x-service-request-id": first.id}
    if is_async(call):
        return sounds.created(gateway, first, headers)
    await finished_row(gateway, call, first)
    return _with_headers(await _result(gateway, call, first), headers)


async def _result(gateway: Gateway, call: Call, row: GenerationRow) -> Response:
    """The sound of a job that has ended, in the form that the caller wants. Raises the Problem of one that failed."""
    sound = await sounds.finished(gateway, row.org_id, row.id)
    output = sound.result.outputs[0]
    headers = {
        "x-service-executed-model": sound.result.executed_model,
        "x-service-cost": respond.usd_text(sound.result.cost),
        **_voice_header(output.voice),
        **respond.credentials_header(sound.result),
    }
    if not wants_json(call):
        return _with_headers(await sounds.file_of(gateway, sound, call), headers)
    body = await sounds.speech_object(gateway, sound, call.base_url, in_base64=call.query.get("data") == "b64_json")
    return Response(json=body, headers=headers)


def _voice_header(voice: str | None) -> dict[str, str]:
    return {"x-service-voice": voice} if voice and voice.isascii() and voice.isprintable() else {}


def _with_headers(response: Response, headers: Mapping[str, str]) -> Response:
    return msgspec.structs.replace(response, headers={**response.headers, **headers})
