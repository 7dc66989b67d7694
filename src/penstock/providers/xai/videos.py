"""Grok Imagine's films: done is not yet well done."""

from typing import Any

from penstock.providers.spec import (
    File,
    Model,
    Operation,
    Price,
    Reply,
    Result,
    Status,
    converted,
    duration,
    passthrough,
    frame,
    complete_table,
)
from penstock.providers.xai.told import BLOCKED, MODERATED, cost, pictured, usd

STATUS: dict[str, Status] = {"pending": "in_progress", "done": "completed", "failed": "failed", "expired": "failed"}


def read_film(reply: Reply) -> Result:
    """A request is named when it is made, and shown without its name; done is not yet well done."""
    job = reply.json
    if "request_id" in job:
        return Result(status="queued", ref={"id": job["request_id"]}, upstream_id=job["request_id"])
    status, film, error = STATUS[job["status"]], job.get("video") or {}, job.get("error") or {}
    blocked = job.get("block_reason") or (BLOCKED if film.get("respect_moderation") is False else None)
    told = blocked or error.get("message")
    fine = status == "completed" and film.get("url") and not blocked
    return Result(
        status="failed" if blocked else status,
        files=(File(film["url"], content_type="video/mp4"),) if fine else (),
        failure_kind="refused" if blocked or MODERATED.search(told or "") else "broken",
        message=told,
        cost_usd=cost(job),
        progress=(job.get("progress") or 0) / 100,
    )


def follow(fields: dict[str, Any]) -> dict[str, Any]:
    """A film that begins with a picture has its shape."""
    return {name: value for name, value in fields.items() if name != "aspect_ratio" or "image" not in fields}


def films(name: str, tiers: str, *prices: Price) -> Model:
    op = Operation(
        task="video",
        send="POST /videos/generations",
        poll="GET /videos/{id}",
        read=read_film,
        adjust_body=follow,
        params=complete_table(
            "video",
            passthrough("prompt", required=True, max_length=4096),
            passthrough("user"),
            duration(*range(1, 16), default=8),
            frame("16:9 9:16 1:1 4:3 3:4 3:2 2:3", *tiers.split()),
            converted("input_reference", ("image", "reference_images"), pictured, max_items=7),
        ),
    )
    return Model(id=name, upstream=name, op=op, prices=prices)


MODELS = (
    films(
        "grok-imagine-video",
        "720p 480p",
        usd("0.05", input_usd="0.002", resolution="480p"),
        usd("0.07", input_usd="0.002"),
    ),
    films(
        "grok-imagine-video-1.5",
        "720p 480p 1080p",
        usd("0.08", input_usd="0.01", resolution="480p"),
        usd("0.25", input_usd="0.01", resolution="1080p"),
        usd("0.14", input_usd="0.01"),
    ),
    films(
        "grok-imagine-video-1.5-lite",
        "720p 480p 1080p",
        usd("0.02", input_usd="0.01", resolution="480p"),
        usd("0.14", input_usd="0.01", resolution="1080p"),
        usd("0.03", input_usd="0.01"),
    ),
)
