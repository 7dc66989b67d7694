"""Canonical results to the JSON the interface promises."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from penstock.imaging.formats import FORMATS
from penstock.schema import GenerationResult, Output, Plan, Quote, Request, Response
from penstock.store.base import Row
from penstock.values import Nanos, dollars, micros, nanos

CURRENCY = "USD"
_POLL_AFTER_MS = "1000"
_KEPT_NAMES = {
    "provider_name", "provider", "upstream_id", "model", "executed_model", "cost", "cost_estimate", "cost_currency",
}  # fmt: skip


def estimate(model: str, provider: str, quote: Quote) -> Response:
    """A dry run's answer; the components add up to the total exactly."""
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
        }
    )


def execution(settled: GenerationResult, model: str) -> dict[str, Any]:
    """Who did it, as images and videos both say."""
    return {
        "provider_name": settled.provider_name,
        "provider": settled.provider,
        "upstream_id": settled.upstream_id or "",
        "model": model,
        "executed_model": settled.executed_model,
    }


# -------------------------------------------------------------------------------------------------------------- images


def images(row: Row, settled: GenerationResult, data: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    first = settled.files[0]
    metadata = execution(settled, row["model"])
    metadata |= {"cost": dollars(settled.cost), "cost_currency": CURRENCY}
    if len(settled.tried) > 1:
        metadata["attempts"] = [msgspec.to_builtins(tried) for tried in settled.tried]
    return {
        "id": row["id"],
        "created": row["created_at_ms"] // 1000,
        "size": f"{first.width}x{first.height}",
        "output_format": FORMATS.get(first.content_type, first.content_type),
        "data": data,
        "metadata": metadata,
    }


def image(kept: Output, *, url: str | None = None, b64_json: str | None = None) -> dict[str, Any]:
    shown = {"url": url, "b64_json": b64_json, "revised_prompt": kept.revised_prompt}
    return {name: value for name, value in shown.items() if value is not None}


def image_status(row: Row) -> dict[str, Any]:
    """An asynchronous image that is not there yet, or never will be."""
    shown: dict[str, Any] = {
        "id": row["id"],
        "object": "image.generation",
        "created": row["created_at_ms"] // 1000,
        "status": row["status"],
        "model": row["model"],
    }
    if row["status"] == "failed":
        shown["error"] = error(row)
    return shown


# -------------------------------------------------------------------------------------------------------------- videos


def video_created(row: Row, plan: Plan, names: Mapping[str, str]) -> dict[str, Any]:
    """The subset that create returns."""
    full = video(row, plan, names, None)
    return {
        name: full[name] for name in ("id", "object", "created_at", "status", "model", "seconds", "size", "metadata")
    }


def video(row: Row, plan: Plan, names: Mapping[str, str], urls: Sequence[str] | None) -> dict[str, Any]:
    """The full object. `names` are the display names of providers; `urls` belong to the settled files, in order."""
    request = msgspec.json.decode(row["request"], type=Request) if row["request"] else None
    settled = msgspec.json.decode(row["result"], type=GenerationResult) if row["result"] else None
    shown: dict[str, Any] = {
        "id": row["id"],
        "object": "video",
        "created_at": row["created_at_ms"] // 1000,
        "completed_at": _seconds(row["completed_at_ms"]),
        "expires_at": _seconds(row["expires_at_ms"]),
        "status": row["status"],
        "model": row["model"],
        "progress": row["progress"],
        "prompt": request.values.get("prompt", "") if request else "",
        "seconds": _duration(request, settled),
        "size": _size(request, settled),
        "output": None,
        "error": error(row) if row["status"] == "failed" else None,
        "metadata": _video_metadata(row, plan, names, request, settled),
    }
    if settled and urls:
        outputs = [
            {"url": url, "content_type": kept.content_type, "size_bytes": kept.size_bytes}
            for url, kept in zip(urls, settled.files, strict=True)
        ]
        shown["output"] = outputs[0]
        if request and request.n > 1:
            shown["outputs"] = outputs
    return shown


def _video_metadata(
    row: Row, plan: Plan, names: Mapping[str, str], request: Request | None, settled: GenerationResult | None
) -> dict[str, Any]:
    """The caller's pairs beside what the gateway knows, whose names it keeps for itself, also before they are used."""
    own = request.metadata if request else {}
    metadata: dict[str, Any] = {name: value for name, value in own.items() if name not in _KEPT_NAMES}
    if settled:
        metadata |= execution(settled, row["model"])
        metadata |= {"cost": dollars(settled.cost), "cost_currency": CURRENCY}
        return metadata
    choice = plan.choices[0]
    metadata |= {
        "provider_name": names.get(choice.provider, choice.provider),
        "provider": choice.provider,
        "upstream_id": row.get("upstream_id") or "",
        "model": row["model"],
        "executed_model": f"{choice.provider}/{choice.upstream}",
        "cost_currency": CURRENCY,
    }
    if row["status"] in ("queued", "in_progress"):
        metadata["cost_estimate"] = dollars(Nanos(choice.hold))
    return metadata


def _seconds(at_ms: int | None) -> int | None:
    return None if at_ms is None else at_ms // 1000


def _duration(request: Request | None, settled: GenerationResult | None) -> str:
    if settled and settled.seconds is not None:
        return f"{settled.seconds:g}"
    return f"{request.seconds:g}" if request and request.seconds is not None else ""


def _size(request: Request | None, settled: GenerationResult | None) -> str:
    if settled and settled.files and settled.files[0].width:
        return f"{settled.files[0].width}x{settled.files[0].height}"
    frame = request.frame if request else None
    return frame.size if frame else ""


def error(row: Row) -> dict[str, str]:
    return {"code": row["error_code"], "message": row["error_message"] or ""}


def poll_headers(row: Row) -> dict[str, str]:
    """OpenAI's client waits as long as this says."""
    return {"openai-poll-after-ms": _POLL_AFTER_MS} if row["status"] in ("queued", "in_progress") else {}
