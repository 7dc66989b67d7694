"""Videos of many providers through OpenRouter."""

from collections.abc import Callable, Sequence
from typing import Any

from penstock.providers.openai_compatible import STATUS
from penstock.providers.openrouter.media import cost_usd, image_object, price
from penstock.providers.spec import (
    ALWAYS_SOUND,
    NEVER_SOUND,
    File,
    Model,
    Operation,
    Param,
    Price,
    Reply,
    Result,
    complete_table,
    converted,
    duration,
    frame,
    passthrough,
)
from penstock.values import REFERENCE_IMAGE, InputFile


def read_job(reply: Reply) -> Result:
    """Read a job. Its files are fetched from OpenRouter itself, also if the response has other URLs for them."""
    job = reply.json
    count = len(job.get("unsigned_urls") or ()) if job["status"] == "completed" else 0
    content_url = f"/videos/{job['id']}/content?index="
    return Result(
        status=STATUS[job["status"]],
        files=tuple(File(f"{content_url}{number}", private=True, content_type="video/mp4") for number in range(count)),
        ref={"id": job["id"]},
        upstream_id=job["id"],
        message=job.get("error"),
        cost_usd=cost_usd(job),
    )


def frames_or_references(images: Sequence[InputFile]) -> tuple[Any, Any]:
    """Values for two fields, of which one is used: for frames that the video begins and ends with, or references."""
    if images[0].role == REFERENCE_IMAGE:
        return None, [image_object(image) for image in images]
    return [{**image_object(image), "frame_type": image.role} for image in images], None


def silent_by_default(fields: dict[str, Any]) -> dict[str, Any]:
    """Ask for a video without sound unless the caller wants sound, which costs half as much again."""
    return {"generate_audio": False, **fields}


def video_operation(params: tuple[Param, ...], **fields: Any) -> Operation:
    return Operation(
        task="video",
        send="POST /videos",
        poll="GET /videos/{id}",
        read=read_job,
        poll_seconds=10.0,
        priced_extras=frozenset({"previous_job_id", "upscale_factor", "input_references"}),
        params=params,
        **fields,
    )


def video_model(
    name: str,
    upstream: str,
    seconds: Sequence[int],
    frame_row: Param,
    *prices: Price,
    max_images: int = 2,
    sound: Param,
    adjust_body: Callable[[dict[str, Any]], dict[str, Any]] = dict,
) -> Model:
    """A model with the durations that it can make."""
    op = video_operation(
        adjust_body=adjust_body,
        params=complete_table(
            "video",
            passthrough("prompt", required=True),
            passthrough("user"),
            converted(
                "input_reference",
                to=("frame_images", "input_references"),
                convert=frames_or_references,
                max_items=max_images,
                frames=min(2, max_images),
            ),
            passthrough("seed"),
            sound,
            duration(*seconds, default=5 if 5 in seconds else 8),
            frame_row,
        ),
    )
    return Model(id=name, upstream=upstream, op=op, prices=prices, priority=20)


SOUND = passthrough("generate_audio", one_of=(True, False))
MODELS = (
    video_model(
        "kling-3",
        "kwaivgi/kling-v3.0-std",
        range(3, 16),
        frame("16:9 9:16 1:1", by_input=None),
        price("0.126", generate_audio=True),
        price("0.084"),
        sound=SOUND,
        adjust_body=silent_by_default,
    ),
    video_model(
        "kling-3-pro",
        "kwaivgi/kling-v3.0-pro",
        range(3, 16),
        frame("16:9 9:16 1:1", by_input=None),
        price("0.168", generate_audio=True),
        price("0.112"),
        sound=SOUND,
        adjust_body=silent_by_default,
    ),
    video_model(
        "wan-2.7",
        "alibaba/wan-2.7",
        range(2, 11),
        frame("16:9 9:16 1:1 4:3 3:4", "720p", "1080p"),
        price("0.1"),
        sound=ALWAYS_SOUND,
    ),
    video_model(
        "seedance-2",
        "bytedance/seedance-2.0",
        range(4, 16),
        frame("16:9 9:16 1:1 4:3 3:4 21:9", "720p", "480p", "1080p", "4K"),
        price("0.07", resolution="480p"),
        price("0.38", resolution="1080p"),
        price("0.79", resolution="4K"),
        price("0.16"),
        max_images=9,
        sound=SOUND,
    ),
    video_model(
        "veo-3.1",
        "google/veo-3.1",
        (4, 6, 8),
        frame("16:9 9:16", "720p", "1080p", "4K"),
        price("0.40", generate_audio=False, resolution="4K"),
        price("0.20", generate_audio=False),
        price("0.60", resolution="4K"),
        price("0.40"),
        max_images=3,
        sound=SOUND,
    ),
    video_model(
        "gen-4.5", "runway/gen-4.5", range(2, 11), frame("16:9 9:16"), price("0.12"), max_images=1, sound=NEVER_SOUND
    ),
    video_model(
        "grok-imagine-video",
        "x-ai/grok-imagine-video",
        range(1, 16),
        frame("16:9 9:16 1:1 4:3 3:4 3:2 2:3", "720p", "480p"),
        price("0.05", input_usd="0.002", resolution="480p"),
        price("0.07", input_usd="0.002"),
        max_images=1,
        sound=ALWAYS_SOUND,
    ),
)
