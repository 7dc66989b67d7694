"""Speech whose sound is kept: a job makes the file, and the caller waits for it or comes back."""

from collections.abc import Sequence

import msgspec

from penstock.errors import InvalidRequest
from penstock.gateway import Gateway
from penstock.generation_jobs.rows import GenerationRow
from penstock.generations import respond, sounds, validate
from penstock.generations.kept import KeptResult, asks_for_file, is_async, keep, with_headers
from penstock.generations.plan import PlannedCall, drilled_route, live_plan, with_delivery
from penstock.models.routing import Choice
from penstock.schema import Call, Response
from penstock.speech.request import STREAMED_LENGTH_MAX, SpeechRequest
from penstock.values import Nanos

_FORMS = ("url", "b64_json")
_PROVENANCE = "Content Credentials are not written into sound, so they cannot be required of it."


def wants_json(call: Call) -> bool:
    """Whether the caller accepts JSON and nothing else. Clients that accept anything get the sound."""
    types = {kind.partition(";")[0].strip().lower() for kind in call.headers.get("accept", "").split(",")}
    return types == {"application/json"}


def read_kept(gateway: Gateway, call: Call, request: SpeechRequest) -> validate.ValidatedCall | None:
    """What a call says about the file that it asks for; None if the sound is only passed on.

    A file is asked for by a response in JSON, by `Prefer: respond-async`, by an idempotency key, and by the fields that
    are about files. Raises InvalidRequest.
    """
    is_job = is_async(call)
    if len(request.text) > STREAMED_LENGTH_MAX and not (is_job or call.dry_run):
        raise InvalidRequest(
            f"`input` may have at most {STREAMED_LENGTH_MAX} characters while the caller waits; send longer texts with "
            "the header `Prefer: respond-async`.",
            param="input",
        )
    has_key = call.json.get("idempotency_key") is not None or "idempotency-key" in call.headers
    if not (has_key or asks_for_file(call, call.json) or wants_json(call)):
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
    return await keep(gateway, call, planned, KeptResult("speech", kept_result))


async def kept_result(gateway: Gateway, call: Call, row: GenerationRow) -> Response:
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
        return with_headers(await sounds.file_of(gateway, sound, call), headers)
    body = await sounds.speech_object(gateway, sound, call.base_url, in_base64=call.query.get("data") == "b64_json")
    return Response(json=body, headers=headers)


def _voice_header(voice: str | None) -> dict[str, str]:
    return {"x-service-voice": voice} if voice and voice.isascii() and voice.isprintable() else {}
