"""Replicate's predictions: whatever the model, a job is submitted, asked after and read alike."""

import re
from dataclasses import replace
from typing import Any

from penstock.providers.spec import (
    ImageUpload,
    File,
    FailureKind,
    Model,
    Operation,
    Param,
    Price,
    Reply,
    Result,
    Status,
    Task,
    Upload,
    passthrough,
    price_list,
    nest_under,
    complete_table,
)
from penstock.values import InputImage

STATUS: dict[str, Status] = {
    "starting": "queued",
    "processing": "in_progress",
    "succeeded": "completed",
    "failed": "failed",
    "canceled": "cancelled",
    "aborted": "failed",
}
UNSAFE = re.compile(r"NSFW|flagged as sensitive|\(E005\)|content policy|safety", re.IGNORECASE)
PERCENT = re.compile(r"(\d{1,3})%\|")  # a progress bar in the logs


def read(reply: Reply) -> Result:
    job = reply.json
    output, words = job.get("output") or (), str(job.get("error") or "")
    urls = [output] if isinstance(output, str) else [url for url in output if isinstance(url, str)]
    bars = PERCENT.findall(job.get("logs") or "")
    return Result(
        status=STATUS[job["status"]],
        ref={"id": job["id"]},
        upstream_id=job["id"],
        files=tuple(File(url=url) for url in urls),
        failure_kind=blame(words),
        message=words,
        progress=int(bars[-1]) / 100 if bars else None,
    )


def blame(words: str) -> FailureKind:
    if words.startswith("Input validation error"):
        return "rejected"
    return "refused" if UNSAFE.search(words) else "broken"


def error(reply: Reply) -> str | None:
    return str(reply.json["detail"])


def left(reference: InputImage) -> str:
    """Pictures are uploaded first; what is sent is where they were left."""
    return reference.name


def picture(reference: InputImage) -> tuple[tuple[str, Upload], ...]:
    name = f"picture.{reference.content_type.split('/')[1]}"
    return (("content", Upload(reference.data, reference.content_type, name)),)


JOB = Operation(
    task="image",
    params=(),
    send="POST /models/{model}/predictions",
    poll="GET /predictions/{id}",
    cancel="POST /predictions/{id}/cancel",
    read=read,
    adjust_body=nest_under("input"),
    priced_extras=frozenset({"google_search", "image_search"}),
    callback_field="webhook",
    callback_extras={"webhook_events_filter": ["completed"]},
    image_upload=ImageUpload(send="POST /files", form=picture, read=lambda reply: str(reply.json["urls"]["get"])),
)
PROMPT = passthrough("prompt", required=True)


def model(name: str, upstream: str, task: Task, rows: tuple[Param, ...], *prices: Price, **more: Any) -> Model:
    op = replace(
        JOB, task=task, params=complete_table(task, *rows), poll_seconds=5.0 if task == "video" else 1.0, **more
    )
    return Model(id=name, upstream=upstream, op=op, prices=prices, priority=30 if task == "video" else 20)


# How each price is known: none was read at Replicate itself.
usd = price_list("tables in other projects, looked up 2026-11-15; not checked with Replicate")
page = price_list("replicate.com/pricing as transcribed by api-evangelist, 2026-10-07")
