"""Find the cheapest real call that checks a provider."""

import json
from base64 import b64encode
from collections.abc import Mapping
from decimal import Decimal
from importlib.resources import files
from typing import Any

import msgspec

from penstock.chat.endpoint import complete_chat
from penstock.errors import InvalidRequest, ModelNotFound, NotFound, Problem
from penstock.gateway import Gateway
from penstock.generations import endpoints
from penstock.models.catalog import ANY
from penstock.providers.spec import Model
from penstock.schema import Call, Caller, Response
from penstock.sound import wave
from penstock.speech.endpoint import create_speech
from penstock.transcription.endpoint import transcribe, translate
from penstock.values import new_id

_PROMPT = "a grey pebble on a white table"


async def hear_speech(gateway: Gateway, call: Call) -> Response:
    """Speech as a whole, of which nothing is kept but whether it came."""
    response = await create_speech(gateway, call)
    if response.chunks is None:
        return response
    return Response(body=b"".join([chunk async for chunk in response.chunks]), media_type=response.media_type)


ENDPOINTS = {
    "image": ("/compat/v1/images/generations", endpoints.make_images),
    "edit": ("/compat/v1/images/edits", endpoints.edit_images),
    "upscale": ("/compat/v1/images/edits", endpoints.edit_images),
    "video": ("/compat/v1/videos", endpoints.start_video),
    "chat": ("/compat/v1/chat/completions", complete_chat),
    "speech": ("/compat/v1/audio/speech", hear_speech),
    "transcription": ("/compat/v1/audio/transcriptions", transcribe),
    "translation": ("/compat/v1/audio/translations", translate),
    "sound": ("/compat/v1/audio/generations", endpoints.start_sound),
}
_MEDIA_TASKS = [task for task in ENDPOINTS if task not in ("chat", "speech", "transcription", "translation")]


class TrialCall(msgspec.Struct, frozen=True):
    """A call that could be made to check a provider, and what it would cost."""

    task: str
    model: str
    body: Mapping[str, Any]
    usd: Decimal


async def cheapest_trial(
    gateway: Gateway, caller: Caller, slug: str, model: str | None, *, recorded: bool = False
) -> TrialCall:
    """Return the call with the lowest estimate, among the models of the provider or for the named one."""
    wanted = model.removeprefix(f"{slug}/") if model else None
    if wanted and (found := await _live_trial(gateway, caller, slug, wanted)):
        return found
    trials: list[TrialCall] = []
    refusal: Exception = InvalidRequest(
        f"{slug} has no model that matches {model}." if model else f"{slug} accepts any model name; choose one.",
        param="model",
    )
    for known in gateway.catalog.providers.known[slug].models:
        takes_any = known.upstream == ANY
        if (takes_any and not wanted) or (wanted and not takes_any and wanted not in _names(slug, known)):
            continue
        if recorded and known.op.task not in _MEDIA_TASKS:
            message = "Chat, speech and transcripts are not recorded; choose another model, or omit --record."
            refusal = InvalidRequest(message)
            continue
        try:
            trials.append(
                await _estimate(gateway, caller, known.op.task, f"{slug}/{wanted if takes_any else known.id}")
            )
        except Problem as problem:
            refusal = problem
    if not trials:
        raise refusal
    return min(trials, key=lambda trial: trial.usd)


async def _live_trial(gateway: Gateway, caller: Caller, slug: str, wanted: str) -> TrialCall | None:
    """The call for a model that only the provider's own catalogue has, which says what the model does.

    None if the model is in a table, or may be one for chat at a provider that takes any of those.
    """
    provider = gateway.catalog.providers.known[slug]
    if not provider.live or any(wanted in _names(slug, known) for known in provider.models):
        return None
    refusal: InvalidRequest = ModelNotFound(f"{slug} has no model that matches {wanted}.", param="model")
    for task in _MEDIA_TASKS:
        try:
            return await _estimate(gateway, caller, task, f"{slug}/{wanted}")
        except NotFound:
            if any(known.upstream == ANY for known in provider.models):
                return None
            raise
        except InvalidRequest as problem:
            refusal = problem
    raise refusal


def _names(slug: str, model: Model) -> tuple[str, ...]:
    return model.id, model.id.removeprefix(f"{slug}/"), model.upstream


async def _estimate(gateway: Gateway, caller: Caller, task: str, model: str) -> TrialCall:
    """The call with its estimate. Raises the Problem of a call that the model does not take."""
    path, endpoint = ENDPOINTS[task]
    body = {"model": model, **_parameters(task)}
    try:
        response = await endpoint(gateway, trial_call(gateway, caller, path, body, query={"dryRun": "true"}))
    except Problem:
        if task != "video":
            raise
        body["input_reference"] = {"image_url": _image_url()}  # some models need an image to start from
        response = await endpoint(gateway, trial_call(gateway, caller, path, body, query={"dryRun": "true"}))
    return TrialCall(task, model, body, Decimal(response.json["total_cost_micros"]) / 1_000_000)


def _parameters(task: str) -> dict[str, Any]:
    if task == "chat":
        return {"messages": [{"role": "user", "content": "Say OK."}], "max_tokens": 16}
    if task == "speech":
        return {"input": "Good morning."}
    if task in ("transcription", "translation"):
        return {"input_audio": {"data": _buzz(), "format": "wav"}}
    if task == "sound":
        return {"prompt": "a short click"}
    parameters: dict[str, Any] = {"prompt": _PROMPT}
    if task in ("edit", "upscale"):
        parameters["image"] = _image_url()
    return parameters


def _buzz() -> str:
    """A second of sound, in base64."""
    samples = (b"\0\x10" * 40 + b"\0\xf0" * 40) * 100
    return b64encode(wave.header(len(samples) // 2, len(samples)) + samples).decode()


def _image_url() -> str:
    """A grey disc on white."""
    return "data:image/png;base64," + b64encode(files(__package__).joinpath("trial.png").read_bytes()).decode()


def trial_call(
    gateway: Gateway,
    caller: Caller,
    endpoint: str,
    body: Any,
    *,
    query: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    path: Mapping[str, str] | None = None,
) -> Call:
    at_ms = gateway.clock.now_ms()
    return Call(
        id=new_id("req", at_ms),
        caller=caller,
        endpoint=endpoint,
        at_ms=at_ms,
        started=gateway.clock.monotonic(),
        headers=headers or {},
        query=query or {},
        path=path or {},
        body=json.dumps(body).encode(),
        json=body,
        base_url=gateway.settings.base_url,
    )
