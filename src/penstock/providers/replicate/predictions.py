"""Replicate's predictions: submitting, polling and reading jobs, the same for all models."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.providers.convert import nest_under
from penstock.providers.reported import value_at
from penstock.providers.spec import (
    FailureKind,
    File,
    ImageUpload,
    Model,
    Operation,
    Param,
    Price,
    Reply,
    Result,
    Source,
    Status,
    Task,
    Upload,
    complete_table,
    passthrough,
    price_list,
)
from penstock.values import InputFile

STATUS: dict[str, Status] = {
    "starting": "queued",
    "processing": "in_progress",
    "succeeded": "completed",
    "failed": "failed",
    "canceled": "cancelled",
    "aborted": "failed",
}
REFUSAL = re.compile(r"NSFW|flagged as sensitive|\(E005\)|content policy|safety", re.IGNORECASE)
PROGRESS_BAR = re.compile(r"(\d{1,3})%\|")  # in the logs
# Anybody can publish a model, and have it make as many outputs and as long logs as it likes.
OUTPUTS_MAX = 100
LOGS_CHARS_READ = 4000


def read_prediction(reply: Reply) -> Result:
    job = reply.json
    seconds = value_at(job, "metrics", "predict_time")
    message = str(job.get("error") or "")
    percents = PROGRESS_BAR.findall(str(job.get("logs") or "")[-LOGS_CHARS_READ:])
    return Result(
        status=STATUS[job["status"]],
        ref={"id": job["id"]},
        upstream_id=job["id"],
        files=tuple(File(url=url) for url in output_urls(job.get("output"))),
        failure_kind=message_kind(message),
        message=message,
        progress=int(percents[-1]) / 100 if percents else None,
        usage={"billed": seconds} if isinstance(seconds, int | float) else {},  # for prices by the compute second
    )


def output_urls(output: Any) -> list[str]:
    """The URLs of an output: one, a list of them, or those in an object; of many, the first."""
    if isinstance(output, str):
        return [output]
    values = list(output.values()) if isinstance(output, Mapping) else output
    found = [url for value in values[:OUTPUTS_MAX] for url in output_urls(value)] if isinstance(values, list) else []
    return found[:OUTPUTS_MAX]


def message_kind(message: str) -> FailureKind:
    if message.startswith("Input validation error"):
        return "rejected"
    return "refused" if REFUSAL.search(message) else "broken"


def error_message(reply: Reply) -> str | None:
    return str(reply.json["detail"])


def uploaded_url(file: InputFile) -> str:
    """The URL of an uploaded file, which `read_upload` has found in the reply."""
    return file.uploaded_name


def upload_form(file: InputFile) -> tuple[tuple[str, Upload], ...]:
    filename = file.content_type.replace("/", ".")  # `image.png`, `video.mp4`
    return (("content", Upload(file.data, file.content_type, filename)),)


def read_upload(reply: Reply) -> str:
    return str(reply.json["urls"]["get"])


PREDICTION = Operation(
    task="image",
    params=(),
    send="POST /models/{model}/predictions",
    poll="GET /predictions/{id}",
    cancel="POST /predictions/{id}/cancel",
    read=read_prediction,
    adjust_body=nest_under("input"),
    priced_extras=frozenset({"google_search", "image_search"}),
    callback_field="webhook",
    callback_extras={"webhook_events_filter": ["completed"]},
    image_upload=ImageUpload(send="POST /files", form=upload_form, read=read_upload),
)
PROMPT = passthrough("prompt", required=True)


def model(name: str, upstream: str, task: Task, rows: tuple[Param, ...], *prices: Price, **fields: Any) -> Model:
    is_video = task == "video"
    op = replace(
        PREDICTION,
        task=task,
        params=complete_table(task, *rows),
        poll_seconds=5.0 if is_video else 1.0,
        **fields,
    )
    return Model(id=name, upstream=upstream, op=op, prices=prices, priority=30 if is_video else 20)


# No price was read at Replicate itself.
other_price = price_list(Source("tables in other projects", "2026-11-15", is_second_hand=True))
transcribed_price = price_list(
    Source("replicate.com/pricing, as api-evangelist transcribed it", "2026-10-07", is_second_hand=True)
)
