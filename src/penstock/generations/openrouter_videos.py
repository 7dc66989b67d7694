"""Videos in the shape of OpenRouter's API, on the same jobs as those in OpenAI's."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from penstock.errors import InvalidRequest, quoted
from penstock.fields import (
    VIDEO,
    array_field,
    check_field,
    field_table,
    number_field,
    object_field,
    text_field,
)
from penstock.gateway import Gateway
from penstock.generation_jobs.rows import ShownRow
from penstock.generations import respond
from penstock.generations.changed_videos import load_source
from penstock.generations.endpoints import start_video
from penstock.generations.retrieve import get_video_row
from penstock.providers.spec import Model
from penstock.schema import Call, Response
from penstock.values import dollars

PATH = "/compat/openrouter/v1"
OPENROUTER_VIDEO = field_table(
    VIDEO["model"],
    text_field("prompt", "Description of the video.", max_length=VIDEO["prompt"].max_length),
    number_field("duration", "Length of the video in seconds.", low=0, high=3600),
    VIDEO["aspect_ratio"],
    VIDEO["resolution"],
    VIDEO["size"],
    array_field("frame_images", "Images to begin or end with: `{type, image_url: {url}, frame_type}`."),
    array_field("input_references", "Images to refer to, or a video to change: `{type, image_url: {url}}`."),
    text_field("previous_job_id", "A completed video that is changed; `model` must take videos.", max_length=256),
    VIDEO["generate_audio"],
    number_field("upscale_factor", "Models that upscale videos: multiplies each side.", low=0, high=100),
    text_field("callback_url", "HTTPS URL that gets an event when the video ends.", max_length=2048),
    VIDEO["session_id"],
    VIDEO["user"],
    object_field("trace", "Your own pairs of strings, stored with the video."),
    VIDEO["provider"],
    *(VIDEO[name] for name in ("negative_prompt", "n", "media_retention", "idempotency_key", "labels", "provenance")),
)
# Their names for fields of ours that take the same values.
_RENAMED = {"upscale_factor": "scale_factor", "callback_url": "webhook_url"}
_STATUSES = {"queued": "pending"}
_FRAME_TYPES = ("first_frame", "last_frame")
_KINDS = ("image_url", "video_url")


async def start_openrouter_video(gateway: Gateway, call: Call) -> Response:
    """Accept a video, which is made after the response."""
    fields = {name: value for name, value in (call.json or {}).items() if value is not None}
    for name, value in fields.items():
        if name in OPENROUTER_VIDEO:
            check_field(OPENROUTER_VIDEO[name], value)
        elif name in VIDEO:
            raise InvalidRequest(f"`{name}` is not a field of OpenRouter's videos.", param=name)
    body = {_RENAMED.get(name, name): value for name, value in fields.items()}
    _rename_parts(body, call.headers)
    references = [*_frames(body.pop("frame_images", [])), *_references(body.pop("input_references", []))]
    if earlier := body.pop("previous_job_id", None):
        if references:
            message = "`previous_job_id` cannot be used with `frame_images` or `input_references`."
            raise InvalidRequest(message, param="previous_job_id")
        source = await load_source(gateway, earlier, call.caller.org_id, param="previous_job_id")
        references = [{"edit": source.file}]
    if references:
        body["input_reference"] = references
    try:
        response = await start_video(gateway, msgspec.structs.replace(call, json=body))
    except InvalidRequest as problem:
        problem.param = _their_name(problem.param, fields)
        raise
    if call.dry_run:
        return response
    row = await get_video_row(gateway, response.json["id"], call.caller.org_id)
    return msgspec.structs.replace(response, json=_job(row, call.base_url))


async def openrouter_video(gateway: Gateway, call: Call) -> Response:
    """One video, in whatever state it is."""
    row = await get_video_row(gateway, call.path["id"], call.caller.org_id)
    job = _job(row, call.base_url)
    result = row.decode_result()
    until_ms = row.expires_at_ms or 0
    if row.status == "completed" and result is not None and until_ms > gateway.clock.now_ms():
        content = f"{job['polling_url']}/content?index="
        job["unsigned_urls"] = [f"{content}{index}" for index in range(len(result.outputs))]
        job["urls"] = [
            await gateway.media.signed_url(output.media_id, until_ms, call.base_url) for output in result.outputs
        ]
        job["expires_at"] = until_ms // 1000
    return Response(json=job, headers=respond.poll_headers(row))


async def list_openrouter_video_models(gateway: Gateway, call: Call) -> Response:
    """The models that make videos, as far as the caller may use them."""
    catalog = gateway.catalog
    ids = [model for model in catalog.listed_ids(("video",)) if call.caller.may_use(model)]
    described = [catalog.describe(model, schema=True) for model in ids]
    data = [_describe(model, [each.model for each in catalog.serving(model["id"])]) for model in described]
    return Response(json={"data": data})


def _their_name(param: str | None, fields: Mapping[str, Any]) -> str | None:
    """The field that the caller sent for one of ours."""
    theirs = {ours: name for name, ours in _RENAMED.items()} | {"seconds": "duration", "metadata": "trace"}
    if param == "input_reference":
        return next((name for name in ("frame_images", "input_references") if fields.get(name)), "previous_job_id")
    return theirs.get(param or "", param)


# -------------------------------------------------------------------------------------------------------------- fields


def _rename_parts(body: dict[str, Any], headers: Mapping[str, str]) -> None:
    if "x-session-id" in headers:
        body.setdefault("session_id", headers["x-session-id"])
    if trace := body.pop("trace", None):
        body["metadata"] = {name: value if isinstance(value, str) else str(value) for name, value in trace.items()}
    if isinstance(provider := body.get("provider"), dict) and "options" in provider:
        if provider["options"]:
            message = "`provider.options` is not read: send the fields of a provider beside `model`."
            raise InvalidRequest(message, param="provider.options")
        body["provider"] = {name: value for name, value in provider.items() if name != "options"}
        if not body["provider"]:
            del body["provider"]


def _frames(items: list[Any]) -> list[dict[str, Any]]:
    frames = []
    for position, item in enumerate(items):
        param = f"frame_images[{position}]"
        frame_type = item.get("frame_type") if isinstance(item, dict) else None
        if frame_type not in _FRAME_TYPES:
            message = f"`frame_type` of `{param}` must be one of {quoted(_FRAME_TYPES)}."
            raise InvalidRequest(message, param="frame_images")
        frames.append({frame_type: _url(item, param, "frame_images", ("image_url",))[1]})
    return frames


def _references(items: list[Any]) -> list[dict[str, Any]]:
    references = []
    for position, item in enumerate(items):
        kind, url = _url(item, f"input_references[{position}]", "input_references", _KINDS)
        references.append({"edit" if kind == "video_url" else "reference": url})
    return references


def _url(item: Any, name: str, param: str, kinds: tuple[str, ...]) -> tuple[str, str]:
    """The kind of an input and its URL."""
    kind = item.get("type") if isinstance(item, dict) else None
    if kind not in kinds:
        raise InvalidRequest(f"`type` of `{name}` must be one of {quoted(kinds)}.", param=param)
    named = item.get(kind)
    url = named.get("url") if isinstance(named, dict) else None
    if url is None:
        raise InvalidRequest(f"`{name}` must have `{kind}` with a `url`.", param=param)
    return kind, url


# ----------------------------------------------------------------------------------------------------------- responses


def _job(row: ShownRow, base_url: str) -> dict[str, Any]:
    job: dict[str, Any] = {
        "id": row.id,
        "generation_id": row.id,
        "polling_url": f"{base_url}{PATH}/videos/{row.id}",
        "status": _STATUSES.get(row.status, row.status),
        "model": row.model,
    }
    if row.status == "failed":
        job["error"] = row.error_message or "The generation failed."
    result = row.decode_result()
    if row.status == "completed" and result is not None:
        job["usage"] = {"cost": dollars(result.cost), "is_byok": False}
    return job


def _describe(described: Mapping[str, Any], models: Sequence[Model]) -> dict[str, Any]:
    """A model with what it takes; null where nothing is listed."""
    taken = {
        name: schema
        for name, schema in described["schema"]["properties"].items()
        if schema.get("x-handling") not in ("ignored", "refused")
    }
    return {
        **{name: described[name] for name in ("id", "name", "description", "created")},
        "canonical_slug": described["id"],
        "supported_aspect_ratios": taken.get("aspect_ratio", {}).get("enum"),
        "supported_durations": taken.get("seconds", {}).get("enum"),
        "supported_frame_images": list(_FRAME_TYPES[: max(map(_frames_taken, models))]) or None,
        "supported_resolutions": taken.get("resolution", {}).get("enum"),
        "supported_sizes": taken.get("size", {}).get("enum"),
        "generate_audio": "generate_audio" in taken,
        "seed": "seed" in taken,
        "creativity": None,
        "upscale_factor": None,
        "allowed_passthrough_parameters": [name for name in taken if name not in VIDEO],
        "pricing_skus": {price["unit"]: price["usd"] for price in described["pricing"]},
    }


def _frames_taken(model: Model) -> int:
    """How many frames of the video a model takes."""
    row = model.op.param("input_reference")
    if row is None or row.handling == "refused":
        return 0
    return row.frames if row.max_items is None else min(row.frames, row.max_items)
