"""Any server that speaks OpenAI's shapes, described in penstock.toml alone."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.providers.convert import data_uri, each_image, size_text, number_text, pixels
from penstock.providers.spec import (
    File,
    FailureKind,
    Operation,
    Reply,
    Result,
    Status,
    Task,
    Upload,
    converted,
    emulated,
    ignored,
    passthrough,
)
from penstock.values import InputImage

STATUS: Mapping[str, Status] = {
    "queued": "queued",
    "pending": "queued",
    "in_progress": "in_progress",
    "processing": "in_progress",
    "running": "in_progress",
    "completed": "completed",
    "succeeded": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
    "canceled": "cancelled",
    "expired": "failed",
}
REFUSALS = ("moderation_blocked", "content_policy_violation", "content_filter", "sentinel_block")


def read_images(reply: Reply) -> Result:
    found = [one for one in reply.json["data"] if one.get("b64_json") or one.get("url")]
    files = tuple(
        File(url=one.get("url"), data=one.get("b64_json"), revised_prompt=one.get("revised_prompt")) for one in found
    )
    usage = reply.json.get("usage") or {}
    counted = {name: usage[f"{name}_tokens"] for name in ("input", "output") if f"{name}_tokens" in usage}
    return Result(files=files, usage=counted, upstream_id=reply.headers.get("x-request-id"))


def read_video(reply: Reply) -> Result:
    """Create, retrieve and cancel answer with the same object; the file lies behind `content`."""
    job = reply.json
    status = STATUS[job["status"]]
    error = job.get("error") or {}
    ref = {"id": job["id"]}
    done = status == "completed"
    hint = reply.headers.get("openai-poll-after-ms", "")
    return Result(
        status=status,
        ref=ref,
        upstream_id=job["id"],
        files=(File(url=f"/videos/{job['id']}/content", private=True, content_type="video/mp4"),) if done else (),
        failure_kind="refused" if error.get("code") in REFUSALS else "broken",
        message=error.get("message"),
        progress=(job.get("progress") or 0) / 100,
        poll_after_seconds=int(hint) / 1000 if hint.isdecimal() else None,
    )


def read_nothing(reply: Reply) -> Result:
    """Chat answers are carried through and never become a Result."""
    return Result()


def error_text(reply: Reply) -> str | None:
    error = _error(reply)
    return error if isinstance(error, str) else error.get("message")


def error_kind(reply: Reply) -> FailureKind | None:
    """An empty purse is told with the status of a full queue and, at Google, a bad key like a caller's mistake."""
    error = _error(reply)
    if isinstance(error, str):
        return None
    if error.get("code") in REFUSALS:
        return "refused"
    reasons = {one.get("reason") for one in error.get("details") or ()}
    account = "API_KEY_INVALID" in reasons or error.get("status") == "FAILED_PRECONDITION"
    return "broken" if account or error.get("code") == "insufficient_quota" else None


def _error(reply: Reply) -> Any:
    """Google puts its errors into a list."""
    return (reply.json[0] if isinstance(reply.json, list) else reply.json)["error"]


def upload(reference: InputImage) -> Upload:
    return Upload(reference.data, reference.content_type, f"{reference.name}.{reference.content_type.split('/')[1]}")


_FINISH = (emulated("response_format"), emulated("output_format"), emulated("output_compression"))
_SIZE = converted("frame", to="size", convert=size_text(pixels()))
IMAGE = Operation(
    task="image",
    send="POST /images/generations",
    read=read_images,
    params=(
        passthrough("prompt", required=True),
        emulated("n", to="n", high=10),
        _SIZE,
        *_FINISH,
        passthrough("quality"),
        passthrough("style"),
        passthrough("user"),
        *ignored("thinking", "prompt_enhancement"),
    ),
)
EDIT = replace(
    IMAGE,
    task="edit",
    send="POST /images/edits",
    body="form",
    params=(
        *(row for row in IMAGE.params if row.name != "style"),
        converted("images", to="image[]", convert=each_image(upload), required=True, max_items=16),
        converted("mask", to="mask", convert=upload),
        *ignored("scale_factor"),
    ),
)
UPSCALE = replace(
    EDIT,
    task="upscale",
    params=(
        converted("images", to="image[]", convert=each_image(upload), required=True, max_items=1),
        passthrough("scale_factor"),
        passthrough("user"),
        *_FINISH,
        emulated("n"),
        *ignored("prompt", "frame", "quality", "thinking", "prompt_enhancement", "mask"),
    ),
)
VIDEO = Operation(
    task="video",
    send="POST /videos",
    poll="GET /videos/{id}",
    cancel="DELETE /videos/{id}",
    read=read_video,
    params=(
        passthrough("prompt", required=True),
        converted("seconds", to="seconds", convert=number_text, default=4),
        converted("frame", to="size", convert=size_text(pixels(720, 2)), default="720x1280"),
        emulated("n"),
        passthrough("negative_prompt"),
        converted(
            "input_reference",
            to="input_reference",
            convert=lambda found: {"image_url": data_uri(found[0])},
            max_items=1,
        ),
        passthrough("user"),
    ),
)
CHAT = Operation(task="chat", send="POST /chat/completions", read=read_nothing, params=())
OPERATIONS: Mapping[Task, Operation] = {"image": IMAGE, "edit": EDIT, "upscale": UPSCALE, "video": VIDEO, "chat": CHAT}
