"""Build the JSON of the responses about images and videos."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from penstock.generation_jobs.rows import GenerationRow, ShownRow
from penstock.guards.configured import Guard
from penstock.imaging.formats import FORMATS
from penstock.long_bodies.base64_pieces import FileAsBase64
from penstock.models.routing import LeftOut
from penstock.provenance.statuses import worst
from penstock.schema import GenerationResult, Measures, Output, Quote, Request, Response
from penstock.upstream.candidate import Candidate
from penstock.values import Nanos, dollars, micros, nanos

CURRENCY = "USD"
_POLL_AFTER_MS = "1000"
_RESERVED_NAMES = {
    "provider_name", "provider", "upstream_id", "model", "executed_model", "cost", "cost_estimate", "cost_currency",
    "missing", "attempts", "content_credentials",
}  # fmt: skip


def estimate(
    model: str,
    provider: str,
    quote: Quote,
    candidates: Sequence[Mapping[str, Any]],
    left_out: Sequence[LeftOut],
    *,
    is_signed: bool = False,
    guards: Sequence[Guard] = (),
) -> Response:
    """The response to a dry run; the components add up to the total exactly. `candidates` are all that would be tried,
    in their order, each a `tried_candidate`. `is_signed`: the outputs would get Content Credentials. `guards` may
    refuse the outputs.
    """
    expected: dict[str, Any] = {"content_credentials": "expected"} if is_signed else {}
    if guards:
        expected["output_guards"] = [{"name": each.name, "charge_refused": each.charge_refused} for each in guards]
    components = [
        {
            "type": line.type,
            "metric": line.metric,
            "quantity": line.quantity,
            "billable_quantity": line.billable_quantity,
            "unit_price": dollars(nanos(line.unit_usd)),
            "total_cost": micros(line.total),
        }
        for line in quote.components
    ]
    return Response(
        json={
            "estimated": True,
            "model": model,
            "provider": provider,
            "total_cost_micros": sum(line["total_cost"] for line in components),
            "currency": CURRENCY,
            "components": components,
            "candidates": candidates,
            "left_out": [{**_names(each.candidate), "reason": each.reason} for each in left_out],
            **expected,
        }
    )


def tried_candidate(candidate: Candidate, cost: Nanos, reason: str) -> dict[str, Any]:
    """A candidate in the response to a dry run: what it would cost, and why it stands where it does."""
    return {**_names(candidate), "total_cost_micros": micros(cost), "reason": reason}


def _names(candidate: Candidate) -> dict[str, str]:
    return {"provider": candidate.provider.slug, "model": candidate.executed_model}


def _result_metadata(result: GenerationResult, model: str, url_expires_at: int | None = None) -> dict[str, Any]:
    """The metadata of a completed image or video: who made it and what it cost; how many of the requested outputs were
    not made, if any; and each call to a provider, if there were several.
    """
    metadata: dict[str, Any] = {
        "provider_name": result.provider_name,
        "provider": result.provider,
        "upstream_id": result.upstream_id or "",
        "model": model,
        "executed_model": result.executed_model,
        "cost": dollars(result.cost),
        "cost_currency": CURRENCY,
    }
    if result.missing:
        metadata["missing"] = result.missing
    if url_expires_at is not None:
        metadata["url_expires_at"] = url_expires_at
    if status := worst_status(result):
        metadata["content_credentials"] = status
    if len(result.attempts) > 1:
        metadata["attempts"] = msgspec.to_builtins(list(result.attempts))
    return metadata


# -------------------------------------------------------------------------------------------------------------- images


def images(
    row: GenerationRow,
    result: GenerationResult,
    data: Sequence[Mapping[str, Any]],
    url_expires_at: int | None = None,
) -> dict[str, Any]:
    """The result of an image request; `data` has one `image` for each output."""
    first = result.outputs[0]
    return {
        "id": row.id,
        "created": row.created_at_ms // 1000,
        "size": f"{first.width}x{first.height}",
        "output_format": FORMATS.get(first.content_type, first.content_type),
        "data": data,
        "metadata": _result_metadata(result, row.model, url_expires_at),
    }


def image(output: Output, *, url: str | None = None, b64_json: str | FileAsBase64 | None = None) -> dict[str, Any]:
    """One image of a result, without the fields that it lacks."""
    fields = {"url": url, "b64_json": b64_json, "revised_prompt": output.revised_prompt}
    return {name: value for name, value in fields.items() if value is not None} | output.further_fields


def worst_status(result: GenerationResult) -> str | None:
    """The worst status of the Content Credentials of all outputs."""
    return worst(output.credentials.status for output in result.outputs if output.credentials)


def credentials_header(result: GenerationResult | None) -> dict[str, str]:
    status = worst_status(result) if result else None
    return {"x-service-content-credentials": status} if status else {}


def image_status(row: GenerationRow) -> dict[str, Any]:
    """An asynchronous image request that is unfinished or failed."""
    body: dict[str, Any] = {
        "id": row.id,
        "object": "image.generation",
        "created": row.created_at_ms // 1000,
        "status": row.status,
        "model": row.model,
    }
    if row.status == "failed":
        body["error"] = error(row)
    return body


# -------------------------------------------------------------------------------------------------------------- sounds


def sound(
    row: ShownRow, names: Mapping[str, str], *, urls: Sequence[str] | None = None, upstream_id: str | None = None
) -> dict[str, Any]:
    """The object of a sound or of a transcript: that of a video without a size; see `video`."""
    request, result = row.decode_request(), row.decode_result()
    seconds = next((output.seconds for output in result.outputs), None) if result else None
    if seconds is None and request is not None:
        seconds = request.seconds or sum(item.seconds for item in request.inputs) or None
    own = {"object": "audio", "seconds": "" if seconds is None else f"{seconds:g}"}
    return _job(row, names, own, urls, upstream_id)


def speech(
    row: GenerationRow,
    request: Request,
    result: GenerationResult,
    data: Mapping[str, Any],
    url_expires_at: int | None,
) -> dict[str, Any]:
    """The result of a call of speech in JSON; `data` has the file or its URL."""
    output = result.outputs[0]
    return {
        "id": row.id,
        "object": "audio.speech",
        "created": row.created_at_ms // 1000,
        "model": row.model,
        "voice": output.voice,
        "seconds": output.seconds,
        "output_format": request.values.get("response_format") or request.values.get("output_format", "mp3"),
        "data": [{**data, **output.further_fields}],
        "metadata": _result_metadata(result, row.model, url_expires_at),
    }


def usd_text(cost: Nanos) -> str:
    """A cost in a header."""
    return format(dollars(cost), "f")


# -------------------------------------------------------------------------------------------------------------- videos


def video_created(row: GenerationRow, names: Mapping[str, str]) -> dict[str, Any]:
    """The part of a video object that its creation returns."""
    full = video(row, names)
    return {
        name: full[name] for name in ("id", "object", "created_at", "status", "model", "seconds", "size", "metadata")
    }


def video(
    row: ShownRow,
    names: Mapping[str, str],
    *,
    urls: Sequence[str] | None = None,
    upstream_id: str | None = None,
) -> dict[str, Any]:
    """The full video object.

    `names` are the display names of providers; `urls` are those of the outputs, in their order; `upstream_id` is the
    provider's id while the video is unfinished.
    """
    request = row.decode_request()
    measures = _measures(row, request, row.decode_result())
    return _job(row, names, {"object": "video", "seconds": measures.seconds, "size": measures.size}, urls, upstream_id)


def _job(
    row: ShownRow,
    names: Mapping[str, str],
    own: Mapping[str, Any],
    urls: Sequence[str] | None,
    upstream_id: str | None,
) -> dict[str, Any]:
    """What the objects of videos and sounds have in common, with their `own` fields."""
    request = row.decode_request()
    result = row.decode_result()
    body: dict[str, Any] = {
        "id": row.id,
        **own,
        "created_at": row.created_at_ms // 1000,
        "completed_at": _seconds(row.completed_at_ms),
        "expires_at": _seconds(row.expires_at_ms),
        "status": row.status,
        "model": row.model,
        "progress": row.progress,
        "prompt": _prompt(request),
        "output": None,
        "error": error(row) if row.status == "failed" else None,
        "metadata": {
            **_caller_metadata(request),
            **(_result_metadata(result, row.model) if result else _planned_metadata(row, names, upstream_id)),
        },
    }
    if result and urls:
        outputs = [
            {
                "url": url,
                "content_type": output.content_type,
                "size_bytes": output.size_bytes,
                **({"seconds": output.seconds} if output.seconds is not None else {}),
                **({"lyrics": output.lyrics} if output.lyrics else {}),
                **({"revised_prompt": output.revised_prompt} if output.revised_prompt else {}),
                **output.further_fields,
            }
            for url, output in zip(urls, result.outputs, strict=True)
        ]
        body["output"] = outputs[0]
        if request and request.n > 1:
            body["outputs"] = outputs
    return body


def _prompt(request: Request | None) -> str:
    """The text that a job was asked for by."""
    values = request.values if request else {}
    text = values.get("prompt") or values.get("input") or ""
    return text if isinstance(text, str) else "\n".join(turn["text"] for turn in text)


def _caller_metadata(request: Request | None) -> dict[str, Any]:
    """The caller's own pairs. Names that the gateway sets at some time are reserved from the start."""
    own = request.metadata if request else {}
    return {name: value for name, value in own.items() if name not in _RESERVED_NAMES}


def _planned_metadata(row: ShownRow, names: Mapping[str, str], upstream_id: str | None) -> dict[str, Any]:
    """What is known before there is a result: the first candidate."""
    candidate = row.decode_plan().candidates[0]
    metadata: dict[str, Any] = {
        "provider_name": names.get(candidate.provider, candidate.provider),
        "provider": candidate.provider,
        "upstream_id": upstream_id or "",
        "model": row.model,
        "executed_model": f"{candidate.provider}/{candidate.upstream}",
        "cost_currency": CURRENCY,
    }
    if row.is_unfinished:
        metadata["cost_estimate"] = dollars(candidate.hold)
    return metadata


def measures(row: GenerationRow) -> Measures:
    """The length and the size of a video."""
    return _measures(row, row.decode_request(), row.decode_result())


def _measures(row: ShownRow, request: Request | None, result: GenerationResult | None) -> Measures:
    if request is None:  # purged: they were kept with the result or, without one, with the plan
        kept = result.measures if result else row.decode_plan().measures
        return Measures(_duration(None, result) or kept.seconds, _size(None, result) or kept.size)
    return Measures(_duration(request, result), _size(request, result))


def _seconds(at_ms: int | None) -> int | None:
    return None if at_ms is None else at_ms // 1000


def _duration(request: Request | None, result: GenerationResult | None) -> str:
    if result and result.seconds is not None:
        return f"{result.seconds:g}"
    return f"{request.seconds:g}" if request and request.seconds is not None else ""


def _size(request: Request | None, result: GenerationResult | None) -> str:
    if result and result.outputs and result.outputs[0].width:
        return f"{result.outputs[0].width}x{result.outputs[0].height}"
    frame = request.frame if request else None
    return frame.size if frame else ""


def error(row: ShownRow) -> dict[str, str | None]:
    return {"code": row.error_code, "message": row.error_message or ""}


def poll_headers(row: ShownRow) -> dict[str, str]:
    """How long OpenAI's client waits before it asks again; nothing when there is no need to."""
    return {"openai-poll-after-ms": _POLL_AFTER_MS} if row.is_unfinished else {}
