"""Grok Imagine videos; a job that is done may still have been blocked by moderation."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from penstock.providers.convert import data_uri, first_and_last
from penstock.providers.reported import fraction_at
from penstock.providers.spec import (
    COMFY,
    File,
    Model,
    Operation,
    Price,
    Reply,
    Result,
    Status,
    complete_table,
    converted,
    duration,
    frame,
    ignored,
    input_video,
    passthrough,
    price_list,
    refused,
)
from penstock.providers.xai.media import BLOCKED_MESSAGE, REFUSAL, cost_usd, drop_ratio, price
from penstock.values import EDIT_VIDEO, EXTEND_VIDEO, FIRST_FRAME, InputFile

STATUS: dict[str, Status] = {"pending": "in_progress", "done": "completed", "failed": "failed", "expired": "failed"}


def read_job(reply: Reply) -> Result:
    """Read the reply to a submission, which has only an id, or to a poll, which has everything but the id."""
    job = reply.json
    if "request_id" in job:
        return Result(status="queued", ref={"id": job["request_id"]}, upstream_id=job["request_id"])
    status = STATUS[job["status"]]
    video = job.get("video") or {}
    error = job.get("error") or {}
    blocked = job.get("block_reason") or (BLOCKED_MESSAGE if video.get("respect_moderation") is False else None)
    message = blocked or error.get("message")
    is_ready = status == "completed" and video.get("url") and not blocked
    return Result(
        status="failed" if blocked else status,
        files=(File(video["url"], content_type="video/mp4"),) if is_ready else (),
        failure_kind="refused" if blocked or REFUSAL.search(message or "") else "broken",
        message=message,
        cost_usd=cost_usd(job),
        progress=fraction_at(job, "progress") or 0.0,
    )


def url_object(file: InputFile) -> dict[str, object]:
    return {"url": data_uri(file)}


def frames_or_references(images: Sequence[InputFile]) -> tuple[Any, Any, Any]:
    """Values for three fields: the first frame, the last frame, and references."""
    if images[0].role == FIRST_FRAME:
        return (*first_and_last(url_object)(images), None)
    return None, None, [url_object(image) for image in images]


def fit_images(fields: dict[str, Any]) -> dict[str, Any]:
    """Remove the aspect ratio if there is a first frame; videos from references have 720p at most."""
    if "reference_images" in fields and fields.get("resolution") == "1080p":
        return {**fields, "resolution": "720p"}
    return drop_ratio(fields)


(OTHER_DESTINATION,) = refused("output")  # the video would be delivered to the caller, and could not be charged
# The docs of @ai-sdk/xai name it; without it, a video has sound. The price is the same.
SOUND = passthrough("generate_audio", one_of=(True, False))


def video_model(name: str, resolutions: str, *prices: Price, max_images: int = 7, frames: int = 1) -> Model:
    """A model that takes up to `frames` frames or, if it takes more than one image, up to `max_images` references. xAI
    itself refuses videos of more than 10 seconds from references to `grok-imagine-video`.
    """
    images = converted(
        "input_reference",
        to=("image", "last_frame", "reference_images"),
        convert=frames_or_references,
        max_items=max_images,
        frames=frames,
    )
    op = Operation(
        task="video",
        send="POST /videos/generations",
        poll="GET /videos/{id}",
        read=read_job,
        adjust_body=fit_images,
        params=complete_table(
            "video",
            passthrough("prompt", required=True, max_length=4096),
            passthrough("user"),
            OTHER_DESTINATION,
            SOUND,
            duration(*range(1, 16), default=8),
            frame("16:9 9:16 1:1 4:3 3:4 3:2 2:3", *resolutions.split()),
            images,
        ),
    )
    return Model(id=name, upstream=name, op=op, prices=prices)


JOB = Operation(task="video", send="", poll="GET /videos/{id}", read=read_job, params=())
MAX_VIDEO_BYTES = 50 * 10**6
# Comfy's nodes have the limits of seconds and bytes. The result has the shape of the input, up to 720p.
EDIT = replace(
    JOB,
    send="POST /videos/edits",
    params=complete_table(
        "video",
        passthrough("prompt", required=True, max_length=4096),
        passthrough("user"),
        OTHER_DESTINATION,
        *ignored("seconds"),
        input_video(EDIT_VIDEO, to="video", convert=url_object, max_seconds=8.7, max_bytes=MAX_VIDEO_BYTES),
    ),
)
EXTENSION = replace(
    JOB,
    send="POST /videos/extensions",
    params=complete_table(
        "video",
        passthrough("prompt", required=True, max_length=4096),
        OTHER_DESTINATION,
        duration(*range(2, 11), default=6),
        input_video(EXTEND_VIDEO, to="video", convert=url_object, max_seconds=15, max_bytes=MAX_VIDEO_BYTES),
    ),
)

# A cent for each second of an input video is part of these prices; xAI reports what it charges.
video_price = price_list(COMFY)
MODELS = (
    Model(id="grok-imagine-video", upstream="grok-imagine-video", op=EDIT, prices=(video_price("0.08"),)),
    Model(
        id="grok-imagine-video",
        upstream="grok-imagine-video",
        op=EXTENSION,
        prices=(video_price("0.07", each_usd="0.15"),),
    ),
    video_model(
        "grok-imagine-video",
        "720p 480p",
        price("0.05", input_usd="0.002", resolution="480p"),
        price("0.07", input_usd="0.002"),
    ),
    video_model(
        "grok-imagine-video-1.5",
        "720p 480p 1080p",
        price("0.08", input_usd="0.01", resolution="480p"),
        price("0.25", input_usd="0.01", resolution="1080p"),
        price("0.14", input_usd="0.01"),
        frames=2,
    ),
    video_model(
        "grok-imagine-video-1.5-lite",
        "720p 480p 1080p",
        price("0.02", input_usd="0.01", resolution="480p"),
        price("0.14", input_usd="0.01", resolution="1080p"),
        price("0.03", input_usd="0.01"),
        max_images=1,
    ),
)
