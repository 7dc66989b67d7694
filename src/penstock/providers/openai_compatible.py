"""The OpenAI-compatible API, for servers that penstock.toml describes and for providers that share parts of it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock.providers.convert import data_uri, each_image, number_text, pixels, size_text
from penstock.providers.reported import fraction_at, usage_or_nothing
from penstock.providers.sounds import GENERATE
from penstock.providers.spec import (
    RASTER,
    FailureKind,
    File,
    Operation,
    Reply,
    Result,
    Speech,
    Status,
    Task,
    Transcription,
    Upload,
    complete_table,
    converted,
    emulated,
    ignored,
    passthrough,
)
from penstock.providers.speech import named_formats
from penstock.providers.transcription import WHISPER, read_openai
from penstock.values import InputFile

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
REFUSAL_CODES = ("moderation_blocked", "content_policy_violation", "content_filter", "sentinel_block")


def read_images(reply: Reply) -> Result:
    images = [image for image in reply.json["data"] if image.get("b64_json") or image.get("url")]
    files = tuple(
        File(url=image.get("url"), data=image.get("b64_json"), revised_prompt=image.get("revised_prompt"))
        for image in images
    )
    usage = usage_or_nothing(read_tokens, reply.json.get("usage"))
    return Result(files=files, usage=usage, upstream_id=reply.headers.get("x-request-id"))


def read_tokens(reported: Mapping[str, Any]) -> dict[str, int]:
    return {name: reported[f"{name}_tokens"] for name in ("input", "output") if f"{name}_tokens" in reported}


def read_video(reply: Reply) -> Result:
    """Read a video job; create, retrieve and cancel return the same object. The file is at its `content` URL."""
    job = reply.json
    status = STATUS[job["status"]]
    error = job.get("error") or {}
    file = File(url=f"/videos/{job['id']}/content", private=True, content_type="video/mp4")
    poll_after_ms = reply.headers.get("openai-poll-after-ms", "")
    return Result(
        status=status,
        ref={"id": job["id"]},
        upstream_id=job["id"],
        files=(file,) if status == "completed" else (),
        failure_kind="refused" if is_refusal(error) else "broken",
        message=error.get("message"),
        progress=fraction_at(job, "progress") or 0.0,
        poll_after_seconds=int(poll_after_ms) / 1000 if poll_after_ms.isdecimal() else None,
    )


def read_nothing(reply: Reply) -> Result:
    """An empty result: chat responses are passed on and never become a Result."""
    return Result()


def error_message(reply: Reply) -> str | None:
    error = _error(reply)
    return error if isinstance(error, str) else error.get("message")


def failure_kind(reply: Reply) -> FailureKind | None:
    """The kind of failure where the status is misleading; None: decide by the status.

    An account without credit gets the status of a rate limit. Google answers a wrong key, and an account that may not
    use the API, with the status of a bad request.
    """
    error = _error(reply)
    if isinstance(error, str):
        return None
    if is_refusal(error):
        return "refused"
    reasons = {detail.get("reason") for detail in error.get("details") or ()}
    is_unusable_key = "API_KEY_INVALID" in reasons or error.get("status") == "FAILED_PRECONDITION"
    return "broken" if is_unusable_key or error.get("code") == "insufficient_quota" else None


def is_refusal(error: Mapping[str, Any]) -> bool:
    """Whether an error is about content. OpenAI's codes are in lower case, those of another Penstock in upper case."""
    return str(error.get("code")).lower() in REFUSAL_CODES


def _error(reply: Reply) -> Any:
    """The error object; Google puts it into a list."""
    return (reply.json[0] if isinstance(reply.json, list) else reply.json)["error"]


def form_file(image: InputFile) -> Upload:
    """An input image as a file of a multipart form."""
    name = "mask" if image.role == "mask" else "image"
    return Upload(image.data, image.content_type, f"{name}.{image.content_type.split('/')[1]}")


def image_url_object(images: Sequence[InputFile]) -> dict[str, object]:
    return {"image_url": data_uri(images[0])}


_OUTPUT_FORMAT = (emulated("response_format"), RASTER, emulated("output_compression"))
IMAGE = Operation(
    task="image",
    send="POST /images/generations",
    read=read_images,
    params=(
        passthrough("prompt", required=True),
        emulated("n", to="n", high=10),
        converted("frame", to="size", convert=size_text(pixels())),
        *_OUTPUT_FORMAT,
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
        converted("images", to="image[]", convert=each_image(form_file), required=True, max_items=16),
        converted("mask", to="mask", convert=form_file),
        *ignored("scale_factor"),
    ),
)
UPSCALE = replace(
    EDIT,
    task="upscale",
    params=(
        converted("images", to="image[]", convert=each_image(form_file), required=True, max_items=1),
        passthrough("scale_factor", low=1, high=16),
        passthrough("user"),
        *_OUTPUT_FORMAT,
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
        passthrough("generate_audio"),
        *ignored("scale_factor"),
        converted("input_reference", to="input_reference", convert=image_url_object, max_items=1),
        passthrough("user"),
    ),
)
CHAT = Operation(task="chat", send="POST /chat/completions", read=read_nothing, params=())
SPEECH = Operation(
    task="speech",
    send="POST /audio/speech",
    read=read_nothing,
    params=complete_table(
        "speech",
        passthrough("input", required=True),
        passthrough("voice"),
        passthrough("instructions"),
        emulated("speed", to="speed"),
    ),
    speech=Speech(
        formats=named_formats("response_format", "wav mp3 opus aac flac pcm"), speeds=(0.25, 4), max_characters=4096
    ),
)
TRANSCRIPTION = Operation(
    task="transcription",
    send="POST /audio/transcriptions",
    body="form",
    read=read_nothing,
    params=complete_table(
        "transcription",
        passthrough("file", required=True),
        passthrough("language"),
        passthrough("prompt"),
        passthrough("temperature"),
    ),
    transcription=Transcription(details=WHISPER, read=read_openai),
)
TRANSLATION = replace(
    TRANSCRIPTION,
    task="translation",
    send="POST /audio/translations",
    params=complete_table(
        "translation", passthrough("file", required=True), passthrough("prompt"), passthrough("temperature")
    ),
    # Its endpoint takes no `timestamp_granularities`: there are no times of words.
    transcription=Transcription(details={detail: WHISPER[detail] for detail in ("text", "segment")}, read=read_openai),
)
OPERATIONS: Mapping[Task, Operation] = {
    "image": IMAGE,
    "edit": EDIT,
    "upscale": UPSCALE,
    "video": VIDEO,
    "chat": CHAT,
    "speech": SPEECH,
    "transcription": TRANSCRIPTION,
    "translation": TRANSLATION,
    "sound": GENERATE,
}
